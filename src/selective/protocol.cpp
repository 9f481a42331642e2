// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <base/assert.hpp>

#include <holdfast/author/selective.hpp>

#include <selective/protocol.hpp>

#include <memory>

namespace hf::selective {

// A program with sections links their engine (open/program_engines.cpp).
[[gnu::used]] static constexpr engine_ptr (*linked)() noexcept = &engine;

void selective_protocol<ordered_medium>::note_log_free(const void* address, std::uint64_t bytes) {
    HF_ASSERT_SLOW(in_.running());
    const std::uint64_t offset = in_.checked_offset(address, bytes);
    if (offset == section::outside || bytes == 0) return;
    in_.check_end(offset, bytes);
    in_.will_store(address, bytes);
}

void selective_protocol<ordered_medium>::note_lazy(const void* address, std::uint64_t bytes) {
    if (lazily_) note_log_free(address, bytes);
    else log(address, bytes);
}

void selective_protocol<fenced_medium>::commit() {
    const std::unique_ptr<flush_set>& lazy_lines = in_.marks().state().lazy_lines;
    if (lazy_lines != nullptr && lazy_lines->listed() > lazy_lines_max)
        lazy_lines->flush_all(in_.medium()); // under a fence that comes anyway
    in_.commit();
}

/// False: there is nothing to note.
bool selective_protocol<fenced_medium>::may_store_unlogged(std::uint64_t offset,
                                                           std::uint64_t bytes) {
    if (offset == section::outside || bytes == 0) return false;
    in_.check_end(offset, bytes);
    if (in_.marks().due() && in_.unfenced()) in_.fence(); // upholds (1)
    return true;
}

void selective_protocol<fenced_medium>::note_log_free(const void* address, std::uint64_t bytes) {
    HF_ASSERT_SLOW(in_.running());
    if (may_store_unlogged(in_.checked_offset(address, bytes), bytes))
        in_.will_store(address, bytes);
}

void selective_protocol<fenced_medium>::note_lazy(const void* address, std::uint64_t bytes) {
    HF_ASSERT_SLOW(in_.running());
    if (!lazily_) return in_.log_old_bytes(address, bytes);
    const std::uint64_t offset = in_.checked_offset(address, bytes);
    if (!may_store_unlogged(offset, bytes)) return;
    if (in_.prepared().in_filled(offset, bytes) || in_.pool().runs_again) // upholds (2)
        return in_.will_store(address, bytes);
    in_.store_to_own(address, bytes);
    std::unique_ptr<flush_set>& lazy_lines = in_.marks().state().lazy_lines;
    if (lazy_lines == nullptr) lazy_lines = std::make_unique<flush_set>();
    lazy_lines->add(address, bytes);
}

namespace {

/// Calls 'step' with this thread's section. Sections of other engines do not come here: the
/// compiler has removed the call.
template <class Step> void with_mine(const char* call, Step&& step) noexcept {
    if (current_section != nullptr)
        without_exceptions(call, [&] { with_protocol<selective_protocol>(step); });
}

} // namespace
} // namespace hf::selective

extern "C" {

int hf_selective_begin(const hf_txfunc* function, const void* packed_args) noexcept {
    if (hf::word_protocol::begin_again(hf::engine_rows::selective, *function)) [[likely]]
        return 1;
    // Recovery needs neither function nor arguments; they are named for reports only.
    return hf::begin_apart<hf::selective::selective_protocol>(*function, packed_args,
                                                              "hf_selective_begin");
}

void hf_selective_commit(void) noexcept {
    if (!hf::word_protocol::commit_again())
        hf::commit_section<hf::selective::selective_protocol>("hf_selective_commit");
}

void hf_selective_log(const void* address, std::uint64_t bytes) noexcept {
    hf::log_store<hf::selective::selective_protocol>("hf_selective_log", address, bytes);
}

void hf_selective_note(const void* address, std::uint64_t bytes) noexcept {
    hf::note_store<hf::selective::selective_protocol>("hf_selective_note", address, bytes);
}

void hf_log_free(const void* address, std::uint64_t bytes) noexcept {
    hf::selective::with_mine("hf_log_free", [&](auto& p) { p.note_log_free(address, bytes); });
}

void hf_lazy(const void* address, std::uint64_t bytes) noexcept {
    hf::selective::with_mine("hf_lazy", [&](auto& p) { p.note_lazy(address, bytes); });
}

} // extern "C"
