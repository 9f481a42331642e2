/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * A program with a failure-atomic function, whose pools Python's module meets (test_pool.py):
 *
 *   python_other_program POOL closed | pending | whole
 *
 * closed makes a pool with the number 7 in it, pending leaves one in the middle of the section that makes it 7; whole says
 * whether it is 7. */
#include <holdfast/abi/holdfast_abi.h>
#include <holdfast/holdfast.h>

#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* As the compiler would instrument it. */
static void store_seven(const void* packed) {
    uint64_t* const number = *(uint64_t* const*)packed;
    hf_clobber_log(number, sizeof *number);
    *(volatile uint64_t*)number = 7;
}
static const struct hf_arg schema[] = {{0, 8, HF_ARG_POOL_POINTER}};
static const struct hf_txfunc store_seven_desc = {
    HF_ABI_VERSION, 8, 3001, 1, "store_seven", "here", schema, 1, store_seven};

int main(int argc, char** argv) {
    const struct hf_open_options options = {.layout = "other/1", .create_bytes = 1 << 20};
    hf_pool* pool;
    void* root;
    if (argc != 3) return 2;
    hf_txfunc_register(&store_seven_desc);
    if (hf_pool_open(argv[1], &options, &pool) != HF_OK ||
        hf_pool_root(pool, sizeof(uint64_t), &root) != HF_OK) {
        fprintf(stderr, "%s\n", hf_error_text());
        return 1;
    }
    uint64_t* const number = root;
    if (strcmp(argv[2], "whole") != 0) {
        *number = 1;
        hf_clobber_begin(&store_seven_desc, &number);
        store_seven(&number);
        if (strcmp(argv[2], "pending") == 0) kill(getpid(), SIGKILL);
        hf_clobber_commit();
    }
    const int whole = *number == 7;
    hf_pool_close(pool);
    return whole ? 0 : 1;
}
