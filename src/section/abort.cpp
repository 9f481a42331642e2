// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A section that ends as if it had never begun: hf::abort_section, an exception that leaves it, a log that
// finds no room. Of an engine that defers stores (section.hpp, 8) nothing has been stored in place but to
// blocks that go back to the allocator: only who owns which block is put right here.
#include <base/assert.hpp>
#include <base/names.hpp>
#include <section/section.hpp>

namespace hf {

void section::abort() {
    HF_ASSERT(engine_->sections == engine_sections::buffered);
    HF_ASSERT(first_ == nullptr);
    HF_ASSERT_SLOW(running());
    blocks_.take_back();
    blocks_.give_back_staged([&](block b) { prepared_.staged().push_back({b}); });
    if (!log_begun_) return end_unlogged();
    // Its log found no room, and stands where the log was that may stand for the section before the last.
    settle_mark();
    settle_blocks();
    // Its records name those blocks: they are handed out again when the mark says that nothing there is
    // pending (3).
    store_mark();
    HF_ASSERT_SLOW(idle());
    if (turns_ != nullptr) [[unlikely]]
        turns_->unlock();
}

} // namespace hf

extern "C" void hf_abort_section(void) noexcept {
    hf::section* s = hf::current_section;
    if (s == nullptr)
        hf::fatal("hf::abort_section: no section is open on this thread, so there is nothing to "
                  "take back "
                  "(engine none, and code outside failure-atomic functions, have stored for good)");
    if (s->engine().sections != hf::engine_sections::buffered)
        hf::fatal("hf::abort_section: section %s (%s) runs on engine %s, which cannot take back "
                  "what it has "
                  "stored: build it with engine redo",
                  hf::readable_name(s->function()->name), s->function()->where, s->engine().name);
    s->doom(hf::section::doomed_by::request);
}
