// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <base/assert.hpp>
#include <open/mark_guard.hpp>
#include <section/word_protocol.hpp>

namespace hf {

void word_protocol::begin(const hf_txfunc& function, const void* /*args*/) {
    in_.check_place(function);
    in_.begin(*this, function);
    in_.leave_no_mark();
    log_.start(*in_.pool().file, in_.marks().lane(), engine().bit, function.id);
    ++serial_;
}

/// A thread's first section that resumes voids this offer, and no other is made behind it.
void word_protocol::offer_again() noexcept {
    const bool asked_first = resumes_here.load(std::memory_order_relaxed) != nullptr;
    const bool offers = begins_again_ && !asked_first && !mark_guard::is_on();
    next_section_here = {offers ? offer_ : next_section::none, this};
}

void word_protocol::commit_blocks() noexcept {
    without_exceptions("a section's commit", [&] { change_hands(); });
    log_.end();
    in_.release_blocks();
    end_again();
}

void word_protocol::log_block(record_kind kind, block b) {
    add([&] {
        make_room(word_entry_bytes);
        log_.add_block(kind, b);
    });
}

/// Logs each block that is not, and changes its bit.
[[gnu::always_inline]] inline void word_protocol::change_hands() {
    if (runs_again_) [[unlikely]]
        return in_.publish_blocks();
    const auto name = [this](record_kind kind, block b) { // log_block(), of a log that nobody hides
        make_room(word_entry_bytes);
        log_.add_block(kind, b);
    };
    const section_blocks& blocks = in_.blocks();
    heap& durable = in_.pool().blocks.durable();
    const auto dirty = [](const void* word) {
        persist::thread_counters().pm_bytes += word_bytes;
        trace::announce(trace::store, word, word_bytes);
    };
    for (block b : blocks.taken()) {
        name(record_kind::alloc, b); // upholds (2)
        durable.publish_in_order(b, dirty);
    }
    for (block b : blocks.adopted()) {
        name(record_kind::staged, b); // upholds (2)
        durable.publish_in_order(b, dirty);
    }
    for (block b : blocks.freed()) {
        name(record_kind::free, b); // upholds (2)
        durable.retract(b, dirty);
    }
}

void word_protocol::log(const void* address, std::uint64_t bytes) {
    HF_ASSERT_SLOW(in_.running());
    const std::uint64_t offset = in_.checked_offset(address, bytes);
    if (offset == section::outside || bytes == 0) return;
    if (in_.fresh(offset)) in_.know_fresh(in_.blocks().taken().around(offset));
    else log_old_bytes(offset, address, bytes);
    in_.will_store(address, bytes);
}

void word_protocol::log_ahead(const void* address, std::uint64_t bytes) {
    const auto offset =
        static_cast<std::uint64_t>(static_cast<const std::byte*>(address) - in_.base());
    // What is wrong with the address, the store itself will say.
    if (!in_.pool().contains(address) || bytes == 0) return;
    if (in_.fresh(offset)) return in_.know_fresh(in_.blocks().taken().around(offset));
    if (in_.watched() && !in_.pool().blocks.durable().covers(offset, bytes)) return;
    log_old_bytes(offset, address, bytes);
}

void word_protocol::note(const void* address, std::uint64_t bytes) {
    if (mark_guard::is_on()) [[unlikely]]
        mark_guard::open(in_.pool()); // nothing else says that the store comes
    const std::uint64_t offset = in_.checked_offset(address, bytes);
    if (offset != section::outside && bytes != 0) in_.will_store(address, bytes);
}

void word_protocol::log_old_bytes(std::uint64_t offset, const void* address, std::uint64_t bytes) {
    if (in_.watched() && logged(offset, bytes)) return;
    if (logged_.seen_or_add(serial_, offset, bytes)) return;
    in_.check_end(offset, bytes);
    add([&] {
        make_room(word_log::entry_bytes(bytes));
        log_.add_old_bytes(offset, address, bytes);
    });
}

void word_protocol::extend(std::uint64_t entry_bytes) {
    if (!extend_if_room(entry_bytes, purpose::log)) no_room_for_log();
}

/// The log goes on in a block of the heap. False: there is no room.
bool word_protocol::extend_if_room(std::uint64_t entry_bytes, purpose what) {
    const block b = in_.reserve_segment(entry_bytes + 2 * word_entry_bytes, what);
    if (b.offset != 0) log_.continue_in(b);
    return b.offset != 0;
}

void* word_protocol::alloc(std::uint64_t bytes) {
    const block b = in_.reserve(bytes);
    if (runs_again_) [[unlikely]]
        log_block(record_kind::alloc, b); // upholds (2)
    if (b.offset == 0) return nullptr;
    in_.know_fresh(b);
    return in_.take(b);
}

void word_protocol::free(block b) {
    if (runs_again_) [[unlikely]]
        log_block(record_kind::free, b); // upholds (2)
}

void word_protocol::commit() {
    HF_ASSERT_SLOW(in_.running());
    ++persist::thread_counters().sections;
    change_hands();
    end();
}

void word_protocol::end() {
    const bool in_recovery = in_.watched();
    if (in_recovery) log_.show();
    log_.end();
    if (in_.blocks().touched()) in_.release_blocks();
    in_.end();
    if (!in_recovery) offer_again(); // its section object stays
}

} // namespace hf
