// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Says what it is asked to do.
#include <holdfast/abi/holdfast_abi.h>

#include <cstdio>
#include <cstdlib>

static int open_sections = 0;

extern "C" {
__thread hf_word_log hf_words; // no room: each entry is a call
void hf_txfunc_register(const hf_txfunc* f) noexcept {
    std::printf("register %s %p\n", f->name, static_cast<const void*>(f));
}
int hf_clobber_begin(const hf_txfunc* f, const void*) noexcept {
    std::printf("begin %s %p\n", f->name, static_cast<const void*>(f));
    if (std::getenv("PRINT_LINES") != nullptr) std::printf("at %s\n", f->where);
    return open_sections++ == 0;
}
void hf_clobber_commit() noexcept {
    --open_sections;
    std::puts("commit");
}
void hf_clobber_log(const void*, uint64_t bytes) noexcept {
    std::printf("log %d\n", static_cast<int>(bytes));
}
void hf_clobber_note(const void*, uint64_t bytes) noexcept {
    std::printf("note %d\n", static_cast<int>(bytes));
}
void hf_section_in(const void*) noexcept {}
const void* hf_pool_base(const void*) noexcept { return nullptr; }
}
