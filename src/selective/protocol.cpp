// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <base/assert.hpp>
#include <section/thread.hpp>

#include <holdfast/author/selective.hpp>

#include <selective/engine.hpp>
#include <selective/protocol.hpp>

#include <memory>

namespace hf::selective {

// Where there are sections there is their engine (open/program_engines.cpp).
[[gnu::used]] static constexpr engine_ptr (*linked)() noexcept = &engine;

selective_protocol::selective_protocol(section& in) noexcept
    : protocol(in, row), lazily_(options_of(in.pool()).rebuild != nullptr) {}

void selective_protocol::begin(const hf_txfunc& function) {
    in_.begin(*this, function);
    in_.start_log({});
}

void selective_protocol::commit() {
    const std::unique_ptr<flush_set>& lazy_lines = in_.marks().state().lazy_lines;
    if (lazy_lines != nullptr && lazy_lines->listed() > lazy_lines_max)
        lazy_lines->flush_all(in_.medium()); // under a fence that comes anyway
    in_.commit();
}

/// False: there is nothing to note.
bool selective_protocol::may_store_unlogged(std::uint64_t offset, std::uint64_t bytes) {
    if (offset == section::outside || bytes == 0) return false;
    in_.check_end(offset, bytes);
    if (in_.marks().due() && in_.unfenced()) in_.fence(); // upholds (1)
    return true;
}

void selective_protocol::note_log_free(const void* address, std::uint64_t bytes) {
    HF_ASSERT_SLOW(in_.running());
    if (may_store_unlogged(in_.checked_offset(address, bytes), bytes))
        in_.will_store(address, bytes);
}

void selective_protocol::note_lazy(const void* address, std::uint64_t bytes) {
    HF_ASSERT_SLOW(in_.running());
    if (!lazily_) return in_.log_old_bytes(address, bytes);
    const std::uint64_t offset = in_.checked_offset(address, bytes);
    if (!may_store_unlogged(offset, bytes)) return;
    if (in_.medium().keeps_order() || in_.prepared().in_filled(offset, bytes) ||
        in_.pool().runs_again) // upholds (2)
        return in_.will_store(address, bytes);
    in_.store_to_own(address, bytes);
    std::unique_ptr<flush_set>& lazy_lines = in_.marks().state().lazy_lines;
    if (lazy_lines == nullptr) lazy_lines = std::make_unique<flush_set>();
    lazy_lines->add(address, bytes);
}

namespace {

/// This thread's section, if it is of this engine.
selective_protocol* mine() noexcept {
    section* const s = current_section;
    return s != nullptr && &s->engine() == &engine_rows::selective ? &s->as<selective_protocol>()
                                                                   : nullptr;
}

} // namespace
} // namespace hf::selective

extern "C" {

int hf_selective_begin(const hf_txfunc* function, const void* packed_args) noexcept {
    // Recovery needs neither function nor arguments; they are named for reports only.
    return hf::without_exceptions("hf_selective_begin", [&] {
        hf::section* const opened =
            hf::open_section(hf::engine_rows::selective, *function, packed_args);
        if (opened == nullptr) return 0;
        opened->of<hf::selective::selective_protocol>().begin(*function);
        return 1;
    });
}

void hf_selective_commit(void) noexcept {
    HF_ASSERT_SLOW(hf::current_section != nullptr);
    hf::without_exceptions("hf_selective_commit", [] {
        hf::current_section->as<hf::selective::selective_protocol>().commit();
    });
    hf::leave_section();
}

void hf_selective_log(const void* address, std::uint64_t bytes) noexcept {
    HF_ASSERT_SLOW(hf::current_section != nullptr);
    hf::without_exceptions("hf_selective_log",
                           [&] { hf::current_section->log_old_bytes(address, bytes); });
}

void hf_log_free(const void* address, std::uint64_t bytes) noexcept {
    if (hf::selective::selective_protocol* const s = hf::selective::mine())
        hf::without_exceptions("hf_log_free", [&] { s->note_log_free(address, bytes); });
}

void hf_lazy(const void* address, std::uint64_t bytes) noexcept {
    if (hf::selective::selective_protocol* const s = hf::selective::mine())
        hf::without_exceptions("hf_lazy", [&] { s->note_lazy(address, bytes); });
}

} // extern "C"
