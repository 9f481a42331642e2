/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * MOD's structures from C11. Each function of <holdfast/mod.h> does what its comment promises,
 * and its effect survives a clean close. A process that is killed keeps what was committed.
 * Names of the functions here are claims. */
#include <holdfast/mod.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static void check(int holds, const char* what, int line) {
    if (holds) return;
    fprintf(stderr, "mod_test.c:%d: %s\nlast error: %s\n", line, what, hf_error_text());
    exit(1);
}
#define CHECK(...) check(__VA_ARGS__, #__VA_ARGS__, __LINE__)
#define OK(...) check((__VA_ARGS__) == HF_OK, #__VA_ARGS__, __LINE__)

static char path[4096];

static hf_pool* pool_opened(void) {
    const struct hf_open_options options = {.layout = "mod_test/1"};
    hf_pool* pool;
    OK(hf_pool_open(path, &options, &pool));
    return pool;
}

static int is(hf_bytes found, const char* text) {
    return found.bytes == strlen(text) && memcmp(found.data, text, found.bytes) == 0;
}

/* The cursor's elements (a map's: key=value), in its order, each followed by a space. Closes it. */
static const char* shown(hf_mod_cursor* cursor) {
    static char line[4096];
    size_t used = 0;
    hf_bytes element, value = {NULL, 0};
    while (hf_mod_cursor_next(cursor, &element, &value) == HF_OK)
        used += (size_t)snprintf(line + used, sizeof line - used, "%.*s%s%.*s ", (int)element.bytes,
                                 (const char*)element.data, value.data != NULL ? "=" : "",
                                 (int)value.bytes, (const char*)value.data);
    line[used] = 0;
    hf_mod_cursor_close(cursor);
    return line;
}

static void a_map_keeps_what_was_put(hf_pool* pool) {
    hf_mod_map* map;
    int inserted = -1;
    hf_bytes value;
    OK(hf_mod_map_open(pool, "prices", &map));
    OK(hf_mod_map_put(map, hf_text("apple"), hf_text("1.20"), &inserted));
    CHECK(inserted == 1);
    OK(hf_mod_map_put(map, hf_text("apple"), hf_text("1.30"), &inserted));
    CHECK(inserted == 0);
    OK(hf_mod_map_insert(map, hf_text("apple"), hf_text("9.99"), &inserted));
    CHECK(inserted == 0);
    OK(hf_mod_map_insert(map, hf_text(""), (hf_bytes){"\0\1", 2}, NULL));
    OK(hf_mod_map_get(map, hf_text("apple"), &value));
    CHECK(is(value, "1.30") && hf_mod_map_count(map) == 2);
    OK(hf_mod_map_get(map, (hf_bytes){NULL, 0}, &value));
    CHECK(value.bytes == 2 && memcmp(value.data, "\0\1", 2) == 0);
    CHECK(hf_mod_map_get(map, hf_text("pear"), NULL) == HF_NOT_FOUND);
    CHECK(strcmp(hf_error_text(), "not_found") == 0);

    hf_mod_map_snapshot* before;
    OK(hf_mod_map_snapshot_take(map, &before));
    const struct hf_mod_map_step steps[] = {{hf_text("pear"), hf_text("2"), 0},
                                            {hf_text("apple"), hf_text(""), 1},
                                            {hf_text(""), hf_text(""), 1}};
    OK(hf_mod_map_update(map, steps, 3));
    hf_mod_cursor* cursor;
    OK(hf_mod_map_iterate(map, &cursor));
    CHECK(strcmp(shown(cursor), "pear=2 ") == 0);
    CHECK(hf_mod_map_snapshot_count(before) == 2);
    OK(hf_mod_map_snapshot_get(before, hf_text("apple"), &value));
    CHECK(is(value, "1.30"));
    OK(hf_mod_map_take(map, hf_text("pear"), &value));
    CHECK(is(value, "2") && hf_mod_map_count(map) == 0);
    CHECK(hf_mod_map_take(map, hf_text("pear"), &value) == HF_NOT_FOUND);
    OK(hf_mod_map_put(map, hf_text("kept"), hf_text("map"), NULL));
    OK(hf_mod_map_snapshot_iterate(before, &cursor));
    CHECK(strstr(shown(cursor), "apple=1.30 ") != NULL);
    hf_mod_map_snapshot_close(before);
    hf_mod_map_close(map);
}

static void a_set_has_each_once(hf_pool* pool) {
    hf_mod_set* set;
    int inserted = -1;
    OK(hf_mod_set_open(pool, "seen", &set));
    OK(hf_mod_set_insert(set, hf_text("a"), &inserted));
    CHECK(inserted == 1);
    OK(hf_mod_set_insert(set, hf_text("a"), &inserted));
    CHECK(inserted == 0 && hf_mod_set_count(set) == 1);
    hf_mod_set_snapshot* before;
    OK(hf_mod_set_snapshot_take(set, &before));
    const struct hf_mod_set_step steps[] = {
        {hf_text("b"), 0}, {hf_text("a"), 1}, {hf_text("x"), 1}};
    OK(hf_mod_set_update(set, steps, 3));
    OK(hf_mod_set_find(set, hf_text("b")));
    CHECK(hf_mod_set_find(set, hf_text("a")) == HF_NOT_FOUND);
    OK(hf_mod_set_snapshot_find(before, hf_text("a")));
    CHECK(hf_mod_set_snapshot_count(before) == 1);
    OK(hf_mod_set_erase(set, hf_text("b")));
    CHECK(hf_mod_set_erase(set, hf_text("b")) == HF_NOT_FOUND);
    OK(hf_mod_set_insert(set, hf_text("kept"), NULL));
    hf_mod_cursor* cursor;
    OK(hf_mod_set_iterate(set, &cursor));
    CHECK(strcmp(shown(cursor), "kept ") == 0);
    OK(hf_mod_set_snapshot_iterate(before, &cursor));
    CHECK(strcmp(shown(cursor), "a ") == 0);
    hf_mod_set_snapshot_close(before);
    hf_mod_set_close(set);
}

static const char* all_of(const hf_mod_vector* vector) {
    hf_mod_cursor* cursor;
    OK(hf_mod_vector_iterate(vector, &cursor));
    return shown(cursor);
}

static void a_vector_is_spliced_anywhere(hf_pool* pool) {
    hf_mod_vector* vector;
    hf_bytes element;
    OK(hf_mod_vector_open(pool, "lines", &vector));
    hf_mod_vector_set_durability(vector, HF_MOD_ON_RETURN);
    OK(hf_mod_vector_push(vector, hf_text("a")));
    OK(hf_mod_vector_push(vector, hf_text("b")));
    hf_mod_vector_snapshot* before;
    OK(hf_mod_vector_snapshot_take(vector, &before));
    const hf_bytes more[] = {hf_text("x"), hf_text("y"), hf_text("z")};
    OK(hf_mod_vector_splice(vector, 1, 0, more, 3));
    CHECK(strcmp(all_of(vector), "a x y z b ") == 0);
    OK(hf_mod_vector_splice(vector, 0, 2, more, 1));
    CHECK(strcmp(all_of(vector), "x y z b ") == 0);
    OK(hf_mod_vector_splice(vector, 1, 1, more, 3));
    CHECK(strcmp(all_of(vector), "x x y z z b ") == 0);
    OK(hf_mod_vector_splice(vector, 4, 2, more, 3));
    CHECK(strcmp(all_of(vector), "x x y z x y z ") == 0);
    OK(hf_mod_vector_splice(vector, 7, 0, more, 1));
    CHECK(hf_mod_vector_splice(vector, 9, 0, more, 1) == HF_NOT_FOUND);
    CHECK(hf_mod_vector_splice(vector, 7, 2, more, 1) == HF_NOT_FOUND);
    CHECK(hf_mod_vector_splice(vector, 1, UINT64_MAX, more, 1) == HF_NOT_FOUND);
    const struct hf_mod_vector_step good[] = {{0, hf_text("first")}, {7, hf_text("last")}};
    const struct hf_mod_vector_step bad[] = {{1, hf_text("no")}, {8, hf_text("no")}};
    CHECK(hf_mod_vector_update(vector, bad, 2) == HF_NOT_FOUND);
    OK(hf_mod_vector_update(vector, good, 2));
    OK(hf_mod_vector_set(vector, 1, hf_text("second")));
    CHECK(hf_mod_vector_set(vector, 8, hf_text("no")) == HF_NOT_FOUND);
    CHECK(strcmp(all_of(vector), "first second y z x y z last ") == 0);
    OK(hf_mod_vector_pop(vector, &element));
    CHECK(is(element, "last") && hf_mod_vector_count(vector) == 7);
    OK(hf_mod_vector_get(vector, 1, &element));
    CHECK(is(element, "second") && hf_mod_vector_get(vector, 7, &element) == HF_NOT_FOUND);
    OK(hf_mod_vector_clear(vector));
    CHECK(hf_mod_vector_pop(vector, NULL) == HF_NOT_FOUND);
    OK(hf_mod_vector_push(vector, hf_text("kept")));
    OK(hf_mod_vector_snapshot_get(before, 1, &element));
    CHECK(is(element, "b") && hf_mod_vector_snapshot_count(before) == 2);
    hf_mod_cursor* cursor;
    OK(hf_mod_vector_snapshot_iterate(before, &cursor));
    CHECK(strcmp(shown(cursor), "a b ") == 0);
    hf_mod_vector_snapshot_close(before);
    hf_mod_vector_close(vector);
}

static void a_stack_gives_the_last_first(hf_pool* pool) {
    hf_mod_stack* stack;
    hf_bytes element;
    OK(hf_mod_stack_open(pool, "todo", &stack));
    CHECK(hf_mod_stack_peek(stack, &element) == HF_NOT_FOUND);
    CHECK(hf_mod_stack_pop(stack, &element) == HF_NOT_FOUND);
    OK(hf_mod_stack_push(stack, hf_text("kept")));
    const hf_bytes more[] = {hf_text("x"), hf_text("y")};
    OK(hf_mod_stack_push_all(stack, more, 2));
    OK(hf_mod_stack_push_all(stack, NULL, 0));
    hf_mod_stack_snapshot* before;
    OK(hf_mod_stack_snapshot_take(stack, &before));
    OK(hf_mod_stack_peek(stack, &element));
    CHECK(is(element, "y"));
    OK(hf_mod_stack_pop(stack, &element));
    CHECK(is(element, "y"));
    OK(hf_mod_stack_pop(stack, NULL));
    CHECK(hf_mod_stack_count(stack) == 1 && hf_mod_stack_snapshot_count(before) == 3);
    OK(hf_mod_stack_snapshot_peek(before, &element));
    CHECK(is(element, "y"));
    hf_mod_cursor* cursor;
    OK(hf_mod_stack_snapshot_iterate(before, &cursor));
    CHECK(strcmp(shown(cursor), "y x kept ") == 0);
    OK(hf_mod_stack_iterate(stack, &cursor));
    CHECK(strcmp(shown(cursor), "kept ") == 0);
    hf_mod_stack_snapshot_close(before);
    hf_mod_stack_close(stack);
}

static void a_queue_gives_the_first_first(hf_pool* pool) {
    hf_mod_queue* queue;
    hf_bytes element;
    OK(hf_mod_queue_open(pool, "jobs", &queue));
    CHECK(hf_mod_queue_peek(queue, &element) == HF_NOT_FOUND);
    CHECK(hf_mod_queue_pop(queue, &element) == HF_NOT_FOUND);
    const hf_bytes more[] = {hf_text("x"), hf_text("y")};
    OK(hf_mod_queue_push_all(queue, more, 2));
    OK(hf_mod_queue_push(queue, hf_text("kept")));
    hf_mod_queue_snapshot* before;
    OK(hf_mod_queue_snapshot_take(queue, &before));
    OK(hf_mod_queue_peek(queue, &element));
    CHECK(is(element, "x"));
    OK(hf_mod_queue_pop(queue, &element));
    CHECK(is(element, "x"));
    OK(hf_mod_queue_pop(queue, &element));
    CHECK(is(element, "y") && hf_mod_queue_count(queue) == 1);
    OK(hf_mod_queue_snapshot_peek(before, &element));
    CHECK(is(element, "x") && hf_mod_queue_snapshot_count(before) == 3);
    hf_mod_cursor* cursor;
    OK(hf_mod_queue_snapshot_iterate(before, &cursor));
    CHECK(strcmp(shown(cursor), "x y kept ") == 0);
    OK(hf_mod_queue_iterate(queue, &cursor));
    CHECK(strcmp(shown(cursor), "kept ") == 0);
    hf_mod_queue_snapshot_close(before);
    hf_mod_queue_close(queue);
}

static void names_are_checked(hf_pool* pool) {
    hf_mod_map* map = NULL;
    CHECK(hf_mod_map_open(pool, "seen", &map) == HF_WRONG_LAYOUT && map == NULL);
    CHECK(hf_mod_map_open(pool, "", &map) == HF_BAD_ARGUMENT);
    char longer[65] = {0};
    CHECK(hf_mod_map_open(pool, memset(longer, 'x', 64), &map) == HF_BAD_ARGUMENT);
}

/* The contents that the functions above left under each name; clears them when asked to. */
static void each_has_only_what_was_kept(hf_pool* pool) {
    const struct hf_mod_cache_options how = {.max_bytes = 4000};
    hf_mod_cache* cache;
    OK(hf_mod_cache_open(pool, "pages", &how, &cache));
    hf_bytes page;
    OK(hf_mod_cache_get(cache, hf_text("kept"), &page));
    CHECK(is(page, "cache") && hf_mod_cache_count(cache) == 1);
    hf_mod_cache_close(cache);
    hf_mod_map* map;
    hf_mod_set* set;
    hf_mod_vector* vector;
    hf_mod_stack* stack;
    hf_mod_queue* queue;
    hf_mod_cursor* cursor;
    OK(hf_mod_map_open(pool, "prices", &map));
    OK(hf_mod_map_iterate(map, &cursor));
    CHECK(strcmp(shown(cursor), "kept=map ") == 0);
    OK(hf_mod_set_open(pool, "seen", &set));
    OK(hf_mod_set_iterate(set, &cursor));
    CHECK(strcmp(shown(cursor), "kept ") == 0);
    OK(hf_mod_vector_open(pool, "lines", &vector));
    CHECK(strcmp(all_of(vector), "kept ") == 0);
    OK(hf_mod_stack_open(pool, "todo", &stack));
    OK(hf_mod_stack_iterate(stack, &cursor));
    CHECK(strcmp(shown(cursor), "kept ") == 0);
    OK(hf_mod_queue_open(pool, "jobs", &queue));
    OK(hf_mod_queue_iterate(queue, &cursor));
    CHECK(strcmp(shown(cursor), "kept ") == 0);
    OK(hf_mod_map_clear(map));
    OK(hf_mod_set_clear(set));
    OK(hf_mod_stack_clear(stack));
    OK(hf_mod_queue_clear(queue));
    CHECK(hf_mod_map_count(map) + hf_mod_set_count(set) + hf_mod_stack_count(stack) +
              hf_mod_queue_count(queue) ==
          0);
    hf_pool_settle(pool);
    hf_pool_wait_resumed(pool); /* none: at once */
    OK(hf_mod_verify(pool));
    hf_mod_map_close(map);
    hf_mod_set_close(set);
    hf_mod_vector_close(vector);
    hf_mod_stack_close(stack);
    hf_mod_queue_close(queue);
}

static void an_ordered_map_goes_in_order(hf_pool* pool) {
    hf_mod_ordered_map* map;
    hf_mod_ordered_map_snapshot* then;
    hf_mod_cursor* cursor;
    hf_bytes value;
    int inserted = -1;
    OK(hf_mod_ordered_map_open(pool, "days", &map));
    const struct hf_mod_map_step steps[] = {
        {hf_text("c"), hf_text("3"), 0}, {hf_text("a"), hf_text("1"), 0},
        {hf_text("b"), hf_text("2"), 0}, {hf_text("bb"), hf_text("4"), 0},
        {hf_text("d"), hf_text("5"), 0}, {hf_text("d"), {NULL, 0}, 1}};
    OK(hf_mod_ordered_map_update(map, steps, 6));
    OK(hf_mod_ordered_map_snapshot_take(map, &then));
    OK(hf_mod_ordered_map_put(map, hf_text("a"), hf_text("9"), &inserted));
    CHECK(inserted == 0);
    OK(hf_mod_ordered_map_insert(map, hf_text("e"), hf_text("6"), &inserted));
    CHECK(inserted == 1 && hf_mod_ordered_map_count(map) == 5);
    OK(hf_mod_ordered_map_get(map, hf_text("a"), &value));
    CHECK(is(value, "9") && hf_mod_ordered_map_get(map, hf_text("d"), NULL) == HF_NOT_FOUND);
    OK(hf_mod_ordered_map_take(map, hf_text("e"), &value));
    CHECK(is(value, "6") && hf_mod_ordered_map_take(map, hf_text("e"), NULL) == HF_NOT_FOUND);

    const hf_bytes from = hf_text("b"), upto = hf_text("c"), last = hf_text("zz");
    OK(hf_mod_ordered_map_iterate(map, &cursor));
    CHECK(strcmp(shown(cursor), "a=9 b=2 bb=4 c=3 ") == 0);
    OK(hf_mod_ordered_map_range(map, &from, &upto, 0, &cursor));
    CHECK(strcmp(shown(cursor), "b=2 bb=4 ") == 0);
    OK(hf_mod_ordered_map_range(map, &from, NULL, 1, &cursor));
    CHECK(strcmp(shown(cursor), "c=3 bb=4 b=2 ") == 0);
    OK(hf_mod_ordered_map_range(map, NULL, &upto, 1, &cursor));
    CHECK(strcmp(shown(cursor), "bb=4 b=2 a=9 ") == 0);
    OK(hf_mod_ordered_map_range(map, &upto, &from, 0, &cursor));
    CHECK(strcmp(shown(cursor), "") == 0);
    OK(hf_mod_ordered_map_range(map, &last, NULL, 1, &cursor));
    CHECK(strcmp(shown(cursor), "") == 0);
    OK(hf_mod_ordered_map_snapshot_range(then, NULL, &from, 0, &cursor));
    CHECK(strcmp(shown(cursor), "a=1 ") == 0);
    OK(hf_mod_ordered_map_snapshot_iterate(then, &cursor));
    CHECK(strcmp(shown(cursor), "a=1 b=2 bb=4 c=3 ") == 0);
    OK(hf_mod_ordered_map_snapshot_get(then, hf_text("a"), &value));
    CHECK(is(value, "1") && hf_mod_ordered_map_snapshot_count(then) == 4);
    hf_mod_ordered_map_snapshot_close(then);
    hf_mod_ordered_map_close(map);
}

/* What a transaction works on, and the same outside of it. */
struct both {
    hf_mod_map *stock, *stock_outside;
    hf_mod_queue *orders, *orders_outside;
};

static hf_mod_transaction* begun(hf_pool* pool, struct both* of) {
    hf_mod_transaction* transaction;
    OK(hf_mod_transaction_begin(pool, &transaction));
    OK(hf_mod_map_open_in(transaction, "stock", &of->stock));
    OK(hf_mod_queue_open_in(transaction, "orders", &of->orders));
    OK(hf_mod_map_open(pool, "stock", &of->stock_outside));
    OK(hf_mod_queue_open(pool, "orders", &of->orders_outside));
    OK(hf_mod_map_put(of->stock, hf_text("tea"), hf_text("2"), NULL));
    OK(hf_mod_queue_push(of->orders, hf_text("Ada")));
    return transaction;
}

static void ended(struct both* of) {
    hf_mod_map_close(of->stock);
    hf_mod_queue_close(of->orders);
    hf_mod_map_close(of->stock_outside);
    hf_mod_queue_close(of->orders_outside);
}

static void a_transaction_is_whole_or_nothing(hf_pool* pool) {
    struct both of;
    hf_mod_map* again;
    hf_mod_map_snapshot* then;
    hf_mod_cursor* cursor;
    hf_mod_transaction* transaction = begun(pool, &of);
    CHECK(hf_mod_map_count(of.stock) == 1 && hf_mod_map_count(of.stock_outside) == 0);
    OK(hf_mod_map_open_in(transaction, "stock", &again)); /* sees the same */
    OK(hf_mod_map_get(again, hf_text("tea"), NULL));
    OK(hf_mod_map_snapshot_take(of.stock, &then));
    OK(hf_mod_map_take(again, hf_text("tea"), NULL));
    CHECK(hf_mod_map_count(of.stock) == 0 && hf_mod_map_snapshot_count(then) == 1);
    hf_mod_transaction_close(transaction);
    hf_mod_map_close(again);
    OK(hf_mod_map_snapshot_iterate(then, &cursor)); /* as it was, for ever */
    CHECK(strcmp(shown(cursor), "tea=2 ") == 0);
    hf_mod_map_snapshot_close(then);
    CHECK(hf_mod_map_count(of.stock_outside) == 0 && hf_mod_queue_count(of.orders_outside) == 0);
    ended(&of);

    transaction = begun(pool, &of);
    OK(hf_mod_transaction_commit(transaction));
    CHECK(hf_mod_map_count(of.stock_outside) == 1 && hf_mod_queue_count(of.orders_outside) == 1);
    ended(&of);

    transaction = begun(pool, &of);
    OK(hf_mod_map_clear(of.stock_outside)); /* comes between */
    CHECK(hf_mod_transaction_commit(transaction) == HF_CONFLICT);
    CHECK(hf_mod_map_count(of.stock_outside) == 0 && hf_mod_queue_count(of.orders_outside) == 1);
    OK(hf_mod_queue_clear(of.orders_outside));
    ended(&of);

    transaction = begun(pool, &of);
    OK(hf_mod_queue_push(of.orders_outside, hf_text("in between")));
    CHECK(hf_mod_transaction_commit(transaction) == HF_CONFLICT);
    CHECK(hf_mod_map_count(of.stock_outside) == 0 && hf_mod_queue_count(of.orders_outside) == 1);
    OK(hf_mod_queue_clear(of.orders_outside));
    ended(&of);
    OK(hf_mod_verify(pool));
}

static void a_change_without_room_fails_its_transaction(void) {
    char small[4096];
    snprintf(small, sizeof small, "%s-small", path);
    const struct hf_open_options options = {
        .layout = "small/1", .create_bytes = 1 << 20, .max_bytes = 1 << 20};
    hf_pool* pool;
    OK(hf_pool_open(small, &options, &pool));
    hf_mod_map* map;
    hf_mod_vector* filling;
    OK(hf_mod_map_open(pool, "m", &map));
    OK(hf_mod_vector_open(pool, "filling", &filling));
    for (int i = 0; i < 300; ++i)
        OK(hf_mod_map_put(map, (hf_bytes){&i, sizeof i}, hf_text("value"), NULL));
    static char bytes[1 << 17];
    for (size_t count = sizeof bytes; count >= 1; count /= 2)
        while (hf_mod_vector_push(filling, (hf_bytes){bytes, count}) == HF_OK) {}
    int failed = 0;
    for (int i = 0; i < 300; ++i) {
        hf_mod_transaction* transaction;
        hf_mod_map* draft;
        OK(hf_mod_transaction_begin(pool, &transaction));
        OK(hf_mod_map_open_in(transaction, "m", &draft));
        const hf_status taken = hf_mod_map_take(draft, (hf_bytes){&i, sizeof i}, NULL);
        const hf_status committed = hf_mod_transaction_commit(transaction);
        const hf_status there = hf_mod_map_get(map, (hf_bytes){&i, sizeof i}, NULL);
        hf_mod_map_close(draft);
        CHECK(taken == HF_OK || taken == HF_POOL_FULL);
        CHECK(committed == taken && there == (committed == HF_OK ? HF_NOT_FOUND : HF_OK));
        failed += taken != HF_OK;
    }
    CHECK(failed > 0); /* or the pool was not full */
    OK(hf_mod_verify(pool));
    hf_mod_map_close(map);
    hf_mod_vector_close(filling);
    hf_pool_close(pool);
    CHECK(unlink(small) == 0);
}

/* A child counts up in a map and a vector, reports each number, and is killed. */
static void a_killed_process_loses_nothing_it_committed(void) {
    int told[2];
    CHECK(pipe(told) == 0);
    const pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        hf_pool* pool = pool_opened();
        hf_mod_map* map;
        hf_mod_vector* vector;
        OK(hf_mod_map_open(pool, "counter", &map));
        OK(hf_mod_vector_open(pool, "numbers", &vector));
        for (int number = 1;; ++number) {
            OK(hf_mod_map_put(map, hf_text("n"), (hf_bytes){&number, sizeof number}, NULL));
            OK(hf_mod_vector_push(vector, (hf_bytes){&number, sizeof number}));
            if (write(told[1], &number, sizeof number) != sizeof number) _exit(2);
        }
    }
    int last = 0;
    while (last < 5000 && read(told[0], &last, sizeof last) == sizeof last) {}
    CHECK(kill(child, SIGKILL) == 0 && waitpid(child, NULL, 0) == child);
    close(told[1]);
    while (read(told[0], &last, sizeof last) == sizeof last) {}
    close(told[0]);

    hf_pool* pool = pool_opened();
    hf_mod_map* map;
    hf_mod_vector* vector;
    hf_bytes found;
    int number;
    OK(hf_mod_map_open(pool, "counter", &map));
    OK(hf_mod_vector_open(pool, "numbers", &vector));
    OK(hf_mod_map_get(map, hf_text("n"), &found));
    CHECK(found.bytes == sizeof number);
    memcpy(&number, found.data, sizeof number);
    CHECK(number >= last && number <= last + 1);
    const int count = (int)hf_mod_vector_count(vector);
    CHECK(count >= last && count <= number);
    for (int i = 0; i < count; ++i) {
        OK(hf_mod_vector_get(vector, (uint64_t)i, &found));
        memcpy(&number, found.data, sizeof number);
        CHECK(number == i + 1);
    }
    hf_mod_map_close(map);
    hf_mod_vector_close(vector);
    hf_pool_close(pool);
}

static hf_status made_page(void* calls, hf_bytes key, hf_bytes* value) {
    static char page[64];
    ++*(int*)calls;
    *value = (hf_bytes){page, (size_t)snprintf(page, sizeof page, "page of %.*s", (int)key.bytes,
                                               (const char*)key.data)};
    return HF_OK;
}
static hf_status no_page(void* calls, hf_bytes key, hf_bytes* value) {
    (void)key, (void)value;
    ++*(int*)calls;
    return HF_IO_ERROR;
}

static void a_cache_is_bounded_and_forgets(hf_pool* pool) {
    struct hf_mod_cache_options how = {.max_bytes = 0};
    hf_mod_cache *cache, *again;
    CHECK(hf_mod_cache_open(pool, "pages", &how, &cache) == HF_BAD_ARGUMENT && cache == NULL);
    CHECK(strstr(hf_error_text(), "expected a number of bytes above 0, found 0") != NULL);
    how.max_bytes = 4000;
    OK(hf_mod_cache_open(pool, "pages", &how, &cache));
    CHECK(hf_mod_cache_open(pool, "pages", &how, &again) == HF_IN_USE && again == NULL);
    hf_mod_map* map;
    CHECK(hf_mod_map_open(pool, "pages", &map) == HF_WRONG_LAYOUT);

    int stored = -1, calls = 0;
    hf_bytes value;
    CHECK(hf_mod_cache_get(cache, hf_text("a"), &value) == HF_NOT_FOUND);
    OK(hf_mod_cache_put(cache, hf_text("a"), (hf_bytes){"\0\1", 2}, 0));
    OK(hf_mod_cache_get(cache, hf_text("a"), &value));
    CHECK(value.bytes == 2 && memcmp(value.data, "\0\1", 2) == 0);
    OK(hf_mod_cache_add(cache, hf_text("a"), hf_text("2"), 0, &stored));
    CHECK(stored == 0);
    OK(hf_mod_cache_replace(cache, hf_text("a"), hf_text("3"), HF_MOD_FOREVER, &stored));
    CHECK(stored == 1);
    OK(hf_mod_cache_touch(cache, hf_text("a"), 3600));
    CHECK(hf_mod_cache_touch(cache, hf_text("b"), 3600) == HF_NOT_FOUND);
    OK(hf_mod_cache_find(cache, hf_text("a")));
    hf_mod_cursor* cursor;
    OK(hf_mod_cache_iterate(cache, &cursor));
    CHECK(strcmp(shown(cursor), "a=3 ") == 0);
    OK(hf_mod_cache_erase(cache, hf_text("a")));
    CHECK(hf_mod_cache_erase(cache, hf_text("a")) == HF_NOT_FOUND);

    for (int i = 0; i < 2; ++i) {
        OK(hf_mod_cache_get_or_compute(cache, hf_text("/"), 0, made_page, &calls, &value));
        CHECK(is(value, "page of /") && calls == 1);
    }
    CHECK(hf_mod_cache_get_or_compute(cache, hf_text("/x"), 0, no_page, &calls, &value) ==
          HF_IO_ERROR);
    CHECK(calls == 2 && hf_mod_cache_find(cache, hf_text("/x")) == HF_NOT_FOUND);

    static char large[4000];
    CHECK(hf_mod_cache_put(cache, hf_text("large"), (hf_bytes){large, sizeof large}, 0) ==
          HF_BAD_ARGUMENT);
    CHECK(strstr(hf_error_text(), "expected at most 4000 bytes") != NULL);
    for (int i = 0; i < 200; ++i) {
        char key[16];
        snprintf(key, sizeof key, "key %d", i);
        OK(hf_mod_cache_put(cache, hf_text(key), hf_text("some value"), 0));
        CHECK(hf_mod_cache_bytes(cache) <= 4000);
        OK(hf_mod_cache_find(cache, hf_text(key)));
    }
    const struct hf_mod_cache_statistics counts = hf_mod_cache_read_statistics(cache);
    CHECK(counts.evictions == 201 - hf_mod_cache_count(cache) && counts.evictions > 100);
    CHECK(counts.hits == 2 && counts.misses == 3);
    uint64_t removed = 9;
    OK(hf_mod_cache_expire(cache, &removed));
    CHECK(removed == 0);
    OK(hf_mod_cache_clear(cache));
    CHECK(hf_mod_cache_count(cache) == 0 && hf_mod_cache_bytes(cache) == 0);
    OK(hf_mod_cache_put(cache, hf_text("kept"), hf_text("cache"), 0));
    hf_mod_cache_close(cache);
    hf_mod_cache_close(NULL);
}

int main(void) {
    const char* folder = getenv("TMPDIR");
    snprintf(path, sizeof path, "%s/mod_test_XXXXXX", folder != NULL ? folder : "/tmp");
    CHECK(mkdtemp(path) != NULL);
    strcat(path, "/pool.hf");

    hf_pool* pool = pool_opened();
    a_map_keeps_what_was_put(pool);
    a_set_has_each_once(pool);
    a_vector_is_spliced_anywhere(pool);
    a_stack_gives_the_last_first(pool);
    a_queue_gives_the_first_first(pool);
    an_ordered_map_goes_in_order(pool);
    a_transaction_is_whole_or_nothing(pool);
    a_cache_is_bounded_and_forgets(pool);
    names_are_checked(pool);
    hf_pool_close(pool);
    pool = pool_opened();
    each_has_only_what_was_kept(pool);
    hf_pool_close(pool);
    a_change_without_room_fails_its_transaction();
    a_killed_process_loses_nothing_it_committed();

    unlink(path);
    *strrchr(path, '/') = 0;
    rmdir(path);
    puts("mod_c_test: passed");
}
