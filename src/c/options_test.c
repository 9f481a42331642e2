/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * The options of hf_pool_open that decide what becomes of a pool that was left open, or is full.
 * Each test fails when its option is ignored. Names of the functions here are claims. */
#include <holdfast/abi/holdfast_abi.h>
#include <holdfast/abi/justdo_abi.h>
#include <holdfast/mod.h>

#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static void check(int holds, const char* what, int line) {
    if (holds) return;
    fprintf(stderr, "options_test.c:%d: %s\nlast error: %s\n", line, what, hf_error_text());
    exit(1);
}
#define CHECK(...) check(__VA_ARGS__, #__VA_ARGS__, __LINE__)
#define OK(...) check((__VA_ARGS__) == HF_OK, #__VA_ARGS__, __LINE__)

static char path[4096], copy[4100];

static hf_pool* opened(struct hf_open_options options) {
    hf_pool* pool = NULL;
    options.layout = "options_test/1";
    OK(hf_pool_open(path, &options, &pool));
    return pool;
}

static hf_status refused(const char* which, struct hf_open_options options) {
    hf_pool* pool = NULL;
    options.layout = "options_test/1";
    const hf_status why = hf_pool_open(which, &options, &pool);
    CHECK(why != HF_OK && pool == NULL);
    return why;
}

static uint64_t* root_of(hf_pool* pool) {
    void* root;
    OK(hf_pool_root(pool, sizeof(uint64_t), &root));
    return root;
}

/* A section as the compiler would instrument it: *number = 7, which was 1. */
static void store_seven(const void* packed) {
    uint64_t* const number = *(uint64_t* const*)packed;
    hf_clobber_log(number, sizeof *number);
    *(volatile uint64_t*)number = 7;
}
static const struct hf_arg schema[] = {{0, 8, HF_ARG_POOL_POINTER}};
static const struct hf_txfunc store_seven_desc = {
    HF_ABI_VERSION, 8, 3001, 1, "store_seven", "here", schema, 1, store_seven};

/* A pool whose root is 1, in which a process died after the section's store. */
static void leave_pending(void) {
    unlink(path);
    const pid_t child = fork();
    if (child == 0) {
        hf_pool* pool = opened((struct hf_open_options){.create_bytes = 1 << 20});
        uint64_t* number = root_of(pool);
        *number = 1;
        hf_clobber_begin(&store_seven_desc, &number);
        store_seven(&number);
        kill(getpid(), SIGKILL);
    }
    CHECK(waitpid(child, NULL, 0) == child);
}

static long bytes_of(const char* name, char* into, long room) {
    FILE* file = fopen(name, "rb");
    CHECK(file != NULL);
    const long count = (long)fread(into, 1, (size_t)room, file);
    fclose(file);
    return count;
}

static void recovery_rolls_back_or_completes(void) {
    for (int roll_back = 0; roll_back < 2; ++roll_back) {
        leave_pending();
        hf_pool* pool = opened((struct hf_open_options){
            .recovery = roll_back ? HF_RECOVERY_ROLL_BACK : HF_RECOVERY_COMPLETE});
        const struct hf_recovered found = hf_pool_recovered(pool);
        CHECK(found.sections_pending == 1 && found.rolled_back == (unsigned)roll_back);
        CHECK(found.re_executed == 1u - (unsigned)roll_back);
        CHECK(*root_of(pool) == (roll_back ? 1 : 7));
        hf_pool_close(pool);
    }
    CHECK(refused(path, (struct hf_open_options){.recovery = 2}) == HF_BAD_ARGUMENT);
    CHECK(strstr(hf_error_text(), "recovery: expected 0 to 1, found 2") != NULL);
}

/* A section of engine redo, killed when its log was whole and its store was not made yet. */
static void commit_and_die(uint64_t* number) {
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    hf_redo_begin(&store_seven_desc, &number);
    *(uint64_t*)hf_redo_write(number, sizeof *number) = 7;
    CHECK(mprotect((void*)((uint64_t)number & ~(page - 1)), page, PROT_READ) == 0);
    hf_redo_commit();
}

/* A section of engine justdo that stores 7: killed behind the store, until it is resumed. */
static void resume_store(void);
static const struct hf_justdo_function resumed_desc = {.abi_version = HF_ABI_VERSION,
                                                       .frame_bytes = 8,
                                                       .id = 3002,
                                                       .version = 1,
                                                       .name = "store_resumed",
                                                       .where = "here",
                                                       .points = 3,
                                                       .resume = resume_store};
static void store_and_die(uint64_t* number) {
    uint32_t at = 0;
    uint64_t** const frame = hf_justdo_enter(&resumed_desc, number, &at);
    if (at == 0) {
        *frame = number;
        hf_justdo_note(frame, sizeof *frame);
        hf_justdo_lock(number, HF_JUSTDO_NO_LOCK, 1);
        hf_justdo_store(number, 7, sizeof *number, 2);
        kill(getpid(), SIGKILL);
    }
    CHECK(at == 2);
    hf_justdo_unlock(*frame, HF_JUSTDO_NO_LOCK, 3);
    hf_justdo_leave();
}
static void resume_store(void) { store_and_die(NULL); }

static void recovery_counts_what_is_replayed_and_resumed(void) {
    hf_justdo_register(&resumed_desc);
    for (int resumes = 0; resumes < 2; ++resumes) {
        unlink(path);
        const pid_t child = fork();
        if (child == 0) {
            uint64_t* number = root_of(opened((struct hf_open_options){.create_bytes = 1 << 20}));
            *number = 1;
            (resumes ? store_and_die : commit_and_die)(number);
            _exit(0);
        }
        int status = 0;
        CHECK(waitpid(child, &status, 0) == child && WIFSIGNALED(status));
        hf_pool* pool = opened((struct hf_open_options){0});
        const struct hf_recovered found = hf_pool_recovered(pool);
        CHECK(found.sections_pending == 1 && found.resumed == (unsigned)resumes);
        CHECK(found.replayed == 1u - (unsigned)resumes && found.no_room == 0);
        CHECK(found.re_executed == 0 && found.rolled_back == 0 && found.discarded == 0);
        CHECK(*root_of(pool) == 7);
        hf_pool_close(pool);
    }
    hf_justdo_forget(&resumed_desc);
}

static void read_only_changes_nothing(void) {
    static char before[2 << 20], after[2 << 20];
    leave_pending();
    const long count = bytes_of(path, before, sizeof before);
    hf_pool* pool = opened((struct hf_open_options){.read_only = 1});
    CHECK(*root_of(pool) == 1);
    hf_mod_map* map;
    OK(hf_mod_map_open(pool, "none", &map));
    CHECK(hf_mod_map_put(map, hf_text("a"), hf_text("b"), NULL) == HF_PERMISSION);
    hf_mod_map_close(map);
    hf_pool_close(pool);
    CHECK(bytes_of(path, after, sizeof after) == count);
    CHECK(memcmp(before, after, (size_t)count) == 0);
    unlink(path);
    CHECK(refused(path, (struct hf_open_options){.read_only = 1}) == HF_NOT_FOUND);
    CHECK(access(path, F_OK) != 0);
}

static void read_only_shows_what_mod_has_committed(void) {
    unlink(path);
    hf_pool* pool = opened((struct hf_open_options){.create_bytes = 1 << 20});
    hf_mod_map* map;
    OK(hf_mod_map_open(pool, "prices", &map));
    OK(hf_mod_map_put(map, hf_text("apple"), hf_text("1.20"), NULL));
    hf_mod_map_close(map);
    hf_pool_close(pool);
    pool = opened((struct hf_open_options){.read_only = 1});
    OK(hf_mod_map_open(pool, "prices", &map));
    hf_bytes value;
    OK(hf_mod_map_get(map, hf_text("apple"), &value));
    CHECK(value.bytes == 4 && memcmp(value.data, "1.20", 4) == 0);
    CHECK(hf_mod_map_put(map, hf_text("apple"), hf_text("0"), NULL) == HF_PERMISSION);
    OK(hf_mod_verify(pool));
    hf_mod_map_close(map);
    hf_pool_close(pool);
}

static void others_read_beside_a_writer(void) {
    unlink(path);
    hf_pool* pool = opened((struct hf_open_options){.create_bytes = 1 << 20, .shared = 1});
    hf_mod_map* map;
    OK(hf_mod_map_open(pool, "prices", &map));
    OK(hf_mod_map_put(map, hf_text("apple"), hf_text("1.20"), NULL));
    const pid_t child = fork();
    if (child == 0) {
        hf_pool* beside = opened((struct hf_open_options){.read_only = 1, .shared = 1});
        hf_mod_map* shown;
        hf_bytes value;
        void* root;
        OK(hf_mod_map_open(beside, "prices", &shown));
        OK(hf_mod_map_get(shown, hf_text("apple"), &value));
        CHECK(value.bytes == 4 && memcmp(value.data, "1.20", 4) == 0);
        CHECK(hf_mod_map_put(shown, hf_text("apple"), hf_text("0"), NULL) == HF_PERMISSION);
        CHECK(hf_pool_root(beside, 8, &root) == HF_PERMISSION);
        hf_mod_map* none;
        CHECK(hf_mod_map_open(beside, "none", &none) == HF_NOT_FOUND);
        hf_mod_map_close(shown);
        hf_pool_close(beside);
        _exit(0);
    }
    int how = 0;
    CHECK(waitpid(child, &how, 0) == child && how == 0);
    hf_mod_map_close(map);
    hf_pool_close(pool);
}

static void max_bytes_raises_the_limit(void) {
    static const char large[1 << 16];
    unlink(path);
    hf_pool* pool = opened((struct hf_open_options){.create_bytes = 1 << 20, .max_bytes = 1 << 20});
    hf_mod_vector* vector;
    OK(hf_mod_vector_open(pool, "numbers", &vector));
    hf_status last = HF_OK;
    while (last == HF_OK) last = hf_mod_vector_push(vector, (hf_bytes){large, sizeof large});
    CHECK(last == HF_POOL_FULL);
    hf_mod_vector_close(vector);
    hf_pool_close(pool);
    pool = opened((struct hf_open_options){.create_bytes = 1 << 20, .max_bytes = 4 << 20});
    OK(hf_mod_vector_open(pool, "numbers", &vector));
    for (int i = 0; i < 8; ++i) OK(hf_mod_vector_push(vector, (hf_bytes){large, sizeof large}));
    hf_mod_vector_close(vector);
    hf_pool_close(pool);
}

static void salvage_opens_a_copy_of_a_pool_in_use(void) {
    static char bytes[2 << 20];
    leave_pending();
    const long count = bytes_of(path, bytes, sizeof bytes);
    FILE* file = fopen(copy, "wb");
    CHECK(file != NULL && fwrite(bytes, 1, (size_t)count, file) == (size_t)count);
    CHECK(fclose(file) == 0);
    unlink(path);
    CHECK(rename(copy, path) == 0);
    CHECK(refused(path, (struct hf_open_options){0}) == HF_TORN);
    hf_pool* pool = opened((struct hf_open_options){.salvage = 1});
    CHECK(*root_of(pool) == 7);
    hf_pool_close(pool);
}

static void a_copy_is_a_pool_of_its_own(void) {
    char twin[sizeof path];
    struct hf_copied copied = {0};
    unlink(path);
    hf_pool* pool = opened((struct hf_open_options){0});
    *root_of(pool) = 8;
    snprintf(twin, sizeof twin, "%.4000s.twin", path);
    uint64_t given = 0;
    CHECK(hf_pool_trim(pool, &given) == HF_OK && given > 0);
    CHECK(hf_pool_trim(pool, NULL) == HF_OK);
    CHECK(hf_pool_copy_to(pool, twin, &copied) == HF_OK);
    CHECK(copied.bytes >= 65536 && copied.pause_ms > 0);
    CHECK(hf_pool_copy_to(pool, twin, NULL) == HF_EXISTS);
    CHECK(hf_pool_copy_to(pool, NULL, NULL) == HF_BAD_ARGUMENT);
    *root_of(pool) = 9;
    hf_pool_close(pool);
    unlink(path);
    CHECK(rename(twin, path) == 0);
    pool = opened((struct hf_open_options){0});
    CHECK(*root_of(pool) == 8);
    hf_pool_close(pool);
}

static void statistics_count_the_space_and_the_work(void) {
    struct hf_statistics before, after;
    unlink(path);
    hf_pool* pool = opened((struct hf_open_options){0});
    *root_of(pool) = 0;
    CHECK(hf_pool_statistics(pool, &before) == HF_OK);
    CHECK(before.blocks == 1 && before.used_bytes >= 8 && before.size_bytes <= before.max_bytes);
    CHECK(before.used_bytes + before.free_bytes + before.metadata_bytes <= before.size_bytes);
    void* block = hf_alloc(1000);
    CHECK(hf_pool_statistics(pool, &after) == HF_OK);
    CHECK(after.blocks == 2 && after.used_bytes >= before.used_bytes + 1000);
    CHECK(after.used_bytes + after.free_bytes == before.used_bytes + before.free_bytes);
    CHECK(after.ordering_points > before.ordering_points && after.generation == 1);
    hf_free(block);
    hf_pool_close(pool);
}

static void keep_line(void* to, enum hf_severity level, const char* message) {
    if (level == HF_NOTE) snprintf(to, 200, "%s", message);
}

static void the_log_gets_what_no_call_returns(void) {
    char line[200] = "";
    unlink(path);
    hf_set_log(keep_line, line);
    hf_pool_close(opened((struct hf_open_options){0}));
    hf_set_log(NULL, NULL);
    CHECK(strstr(line, "opened in") != NULL && strstr(line, path) != NULL);
}

static void nothing_is_a_small_pool_or_refused_where_something_is_wanted(void) {
    CHECK(refused(NULL, (struct hf_open_options){0}) == HF_BAD_ARGUMENT);
    unlink(path);
    hf_pool* pool = opened((struct hf_open_options){0});
    struct stat about;
    CHECK(stat(path, &about) == 0 && about.st_size == 1 << 20);
    struct hf_statistics size;
    OK(hf_pool_statistics(pool, &size));
    CHECK(size.max_bytes == (uint64_t)4 << 30);
    void* root = path;
    CHECK(hf_pool_root(pool, 0, &root) == HF_BAD_ARGUMENT && root == NULL);
    CHECK(*root_of(pool) == 0);
    hf_pool_close(pool);
}

int main(void) {
    const char* folder = getenv("TMPDIR");
    snprintf(path, sizeof path - 20, "%s/options_test_XXXXXX", folder != NULL ? folder : "/tmp");
    CHECK(mkdtemp(path) != NULL);
    strcat(path, "/pool.hf");
    snprintf(copy, sizeof copy, "%s.cp", path);
    hf_txfunc_register(&store_seven_desc);

    recovery_rolls_back_or_completes();
    recovery_counts_what_is_replayed_and_resumed();
    read_only_changes_nothing();
    read_only_shows_what_mod_has_committed();
    others_read_beside_a_writer();
    max_bytes_raises_the_limit();
    salvage_opens_a_copy_of_a_pool_in_use();
    nothing_is_a_small_pool_or_refused_where_something_is_wanted();
    a_copy_is_a_pool_of_its_own();
    statistics_count_the_space_and_the_work();
    the_log_gets_what_no_call_returns();

    unlink(path);
    *strrchr(path, '/') = 0;
    rmdir(path);
    puts("options_c_test: passed");
}
