/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Plain C: a counter and its last values in a file. Every run adds 5; kill it halfway and the next
 * run finds the addition completed:
 *
 *   $ example_counter
 *   5
 *   $ HOLDFAST_CRASH_AT=half-added example_counter
 *   Killed
 *   $ example_counter
 *   completed what was cut short
 *   15
 */
// [include]
#include <holdfast/holdfast.h>
// [/include]

#include <stdio.h>

// [section]
struct counter {
    long value;
    long before[4];
};

HF_TXFUNC void add(struct counter* c, long n) {
    c->before[c->value / n % 4] = c->value;
    hf_crash_point("half-added");
    c->value += n;
}
// [/section]

int main(int argc, char** argv) {
    hf_pool* pool;
    struct hf_open_options options = {.layout = "counter/1"};
    if (hf_pool_open(argc > 1 ? argv[1] : "counter.hf", &options, &pool) != HF_OK)
        return puts(hf_error_text()), 1;
    if (hf_pool_recovered(pool).re_executed != 0) puts("completed what was cut short");
    void* root;
    if (hf_pool_root(pool, sizeof(struct counter), &root) != HF_OK)
        return puts(hf_error_text()), 1;
    add(root, 5);
    printf("%ld\n", ((struct counter*)root)->value);
    hf_pool_close(pool);
}
