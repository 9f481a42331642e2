/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * hf_open_options::migrate. The C++ tests try what migrations do to pools
 * (src/open/migration_test.cpp, test/attacks/kill). This one tests that C gets all of it. Names
 * of the functions here are claims. */
#include <holdfast/mod.h>

#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void check(int holds, const char* what, int line) {
    if (holds) return;
    fprintf(stderr, "migration_test.c:%d: %s\nlast error: %s\n", line, what, hf_error_text());
    exit(1);
}
#define CHECK(...) check(__VA_ARGS__, #__VA_ARGS__, __LINE__)
#define OK(...) check((__VA_ARGS__) == HF_OK, #__VA_ARGS__, __LINE__)

struct old_root {
    uint64_t number;
};
struct new_root {
    uint64_t number, twice;
};

static char path[4096];

/* What the function does in addition, and returns. */
struct wish {
    int calls;
    hf_status answer;
    int refuses, dies, asks_wrongly, leaves_root;
};

static hf_status migrate(hf_migration* of, void* context) {
    struct wish* wish = context;
    ++wish->calls;
    CHECK(strcmp(hf_migration_from_layout(of), "numbers/1") == 0 &&
          hf_migration_from_hash(of) == 7);
    if (wish->refuses) return hf_migration_refuse(of);
    void *from, *to;
    OK(hf_pool_root(hf_migration_pool(of), sizeof(struct old_root), &from));
    if (wish->asks_wrongly) return hf_migration_new_root(of, 0, &to);
    hf_mod_map* map;
    OK(hf_mod_map_open(hf_migration_pool(of), "prices", &map));
    OK(hf_mod_map_put(map, hf_text("pear"), hf_text("0.80"), NULL));
    hf_mod_map_close(map);
    ++*hf_migration_cursor(of);
    hf_migration_report(of, 1, 2);
    if (wish->leaves_root) return wish->answer;
    OK(hf_migration_new_root(of, sizeof(struct new_root), &to));
    ((struct new_root*)to)->number = ((struct old_root*)from)->number;
    if (wish->dies) kill(getpid(), SIGKILL);
    ((struct new_root*)to)->twice = 2 * ((struct new_root*)to)->number;
    return wish->answer;
}

static hf_status opened(const char* layout, uint64_t hash, struct wish* wish, hf_pool** pool) {
    const struct hf_open_options options = {.layout = layout,
                                            .layout_hash = hash,
                                            .create_bytes = 1 << 20,
                                            .migrate = wish ? migrate : NULL,
                                            .migrate_context = wish};
    return hf_pool_open(path, &options, pool);
}

static void make_old(void) {
    unlink(path);
    hf_pool* pool;
    OK(opened("numbers/1", 7, NULL, &pool));
    void* root;
    OK(hf_pool_root(pool, sizeof(struct old_root), &root));
    ((struct old_root*)root)->number = 21;
    hf_pool_close(pool);
}

static void close_as_new(hf_pool* pool) {
    void* root;
    OK(hf_pool_root(pool, sizeof(struct new_root), &root));
    CHECK(((struct new_root*)root)->number == 21 && ((struct new_root*)root)->twice == 42);
    hf_mod_map* map;
    hf_bytes price;
    OK(hf_mod_map_open(pool, "prices", &map));
    OK(hf_mod_map_get(map, hf_text("pear"), &price));
    CHECK(price.bytes == 4);
    hf_mod_map_close(map);
    hf_pool_close(pool);
    struct wish none = {0};
    OK(opened("numbers/2", 0, &none, &pool)); /* the pool has the layout already */
    CHECK(none.calls == 0);
    hf_pool_close(pool);
}

static void a_pool_gets_layout_and_root(void) {
    make_old();
    hf_pool* pool;
    CHECK(opened("numbers/2", 0, NULL, &pool) == HF_WRONG_LAYOUT && pool == NULL);
    struct wish wish = {0};
    OK(opened("numbers/2", 0, &wish, &pool));
    CHECK(wish.calls == 1);
    close_as_new(pool);
}

static void a_pool_keeps_its_root_if_none_is_asked_for(void) {
    make_old();
    hf_pool* pool;
    struct wish wish = {.leaves_root = 1};
    OK(opened("numbers/2", 0, &wish, &pool));
    void* root;
    OK(hf_pool_root(pool, sizeof(struct old_root), &root));
    CHECK(((struct old_root*)root)->number == 21);
    hf_pool_close(pool);
}

static void one_that_was_killed_goes_on(void) {
    make_old();
    hf_pool* pool;
    struct wish dying = {.dies = 1}, wish = {0};
    const pid_t child = fork();
    if (child == 0) _exit(opened("numbers/2", 0, &dying, &pool) == HF_OK);
    int how;
    CHECK(waitpid(child, &how, 0) == child && WIFSIGNALED(how));
    CHECK(opened("numbers/1", 7, NULL, &pool) == HF_WRONG_LAYOUT);
    CHECK(strstr(hf_error_text(), "is under way") != NULL);
    OK(opened("numbers/2", 0, &wish, &pool));
    close_as_new(pool);
}

static void what_it_returns_is_what_open_returns(void) {
    make_old();
    hf_pool* pool;
    struct wish refuses = {.refuses = 1};
    CHECK(opened("numbers/2", 0, &refuses, &pool) == HF_WRONG_LAYOUT && pool == NULL);
    CHECK(strstr(hf_error_text(), "numbers/1") != NULL);
    OK(opened("numbers/1", 7, NULL, &pool)); /* nothing was changed */
    hf_pool_close(pool);

    struct wish asks = {.asks_wrongly = 1};
    CHECK(opened("numbers/2", 0, &asks, &pool) == HF_BAD_ARGUMENT);
    CHECK(strstr(hf_error_text(), "expected 1 byte at least") != NULL);
    struct wish full = {.answer = HF_POOL_FULL};
    CHECK(opened("numbers/2", 0, &full, &pool) == HF_POOL_FULL);
    CHECK(strcmp(hf_error_text(), "pool_full: hf_open_options::migrate ended with it") == 0);
    struct wish odd = {.answer = (hf_status)999};
    CHECK(opened("numbers/2", 0, &odd, &pool) == HF_BAD_ARGUMENT);
    CHECK(strstr(hf_error_text(), "expected an hf_status, found 999") != NULL);
    struct wish wish = {0};
    OK(opened("numbers/2", 0, &wish, &pool));
    close_as_new(pool);
}

int main(void) {
    const char* const folder = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
    snprintf(path, sizeof path, "%s/migration_c_test.%d", folder, (int)getpid());
    a_pool_gets_layout_and_root();
    a_pool_keeps_its_root_if_none_is_asked_for();
    one_that_was_killed_goes_on();
    what_it_returns_is_what_open_returns();
    unlink(path);
    puts("migration_c_test: passed");
    return 0;
}
