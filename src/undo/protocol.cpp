// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <base/assert.hpp>
#include <log/restore.hpp>
#include <section/kept_pointers.hpp>
#include <undo/protocol.hpp>

namespace hf::undo {

// Where there are sections there is their engine (open/program_engines.cpp).
[[gnu::used]] static constexpr engine_ptr (*linked)() noexcept = &engine;

namespace {
constexpr std::uint64_t left_bytes_max = 16 * line_bytes; // of memory of its own (5)
}

void undo_protocol<ordered_medium>::commit() {
    if (doomed_) return take_back();
    if (in_.pool().check_pointers) look_at_pointers(in_, log_);
    word_protocol::commit();
}

bool undo_protocol<ordered_medium>::knows_store(std::uint64_t offset) const noexcept {
    bool known = false;
    log_.for_each_stored(
        [&](std::uint64_t from, std::uint64_t bytes) { known |= offset - from < bytes; });
    return known;
}

void look_at_pointers(section& in, const word_log& log) {
    const kept_pointers kept(in);
    log.for_each_stored(
        [&](std::uint64_t offset, std::uint64_t bytes) { kept.look_through(offset, bytes); });
    kept.look_through_blocks();
}

void put_back(section& in, const word_log& log) {
    pool_file& file = *in.pool().file;
    if (!log.is_empty()) {
        pending_section mine{};
        lane_damage damage;
        read_word_log(file, in.pool().blocks.durable(), in.marks().lane(), mine, damage);
        HF_ASSERT(damage.what == nullptr && mine.sound);
        restore_old_bytes(file, mine, restored::everything);
    }
    in.blocks().take_back();
    in.blocks().give_back_staged([&](block b) { in.prepared().staged().push_back({b}); });
}

void undo_protocol<ordered_medium>::take_back() {
    ++persist::thread_counters().sections;
    doomed_ = false; // an exception may leave a section that is doomed
    put_back(in_, log_);
    end();
}

void undo_protocol<fenced_medium>::begin(const hf_txfunc& function, const void* /*args*/) {
    in_.begin(*this, function);
    may_leave_ = asks_to_leave_ && may_leave_any();
    if (may_leave_) in_.overwritten().want();
    if (!in_.marks().stores_left()) return in_.start_log({});
    // Its first fence waits for what the section before has left (4).
    static_cast<void>(in_.marks().left(in_.epoch() - 1).flush(in_.medium()));
    in_.start_log({.payload = &left_, .payload_bytes = sizeof left_});
}

bool undo_protocol<fenced_medium>::may_leave_any() const {
    const pool_file& file = *in_.pool().file;
    return in_.medium().loses_caches() &&
           !in_.medium().loses_batches() && // a kill loses that log's end
           !file.relocated() && !in_.on_shared_lane() && in_.prepared().staged().empty();
}

void* undo_protocol<fenced_medium>::alloc(std::uint64_t bytes) {
    void* const taken = protocol_in::alloc(bytes);
    if (may_leave_ && taken != nullptr) {
        const block b = in_.blocks().newest();
        in_.overwritten().add(b.offset, b.bytes);
    }
    return taken;
}

void undo_protocol<fenced_medium>::commit() {
    HF_ASSERT_SLOW(in_.running());
    commit_marks& marks = in_.marks();
    // What the section before has left is durable before this one's mark can be (4).
    if (marks.stores_left()) in_.fence();
    if (!may_leave_) return in_.commit();
    ++persist::thread_counters().sections;
    const std::size_t named = in_.dirty().lines().size();
    in_.publish_blocks();
    const bool leaves = may_leave_stores();
    if (leaves) leave_stores(named);
    else in_.make_stores_durable();
    in_.settle_blocks();
    if (leaves) {
        left_ = {in_.log().chain(), in_.overwritten().sum_up(in_.epoch(), in_.base())};
        // Not flushed: when the process alone dies, this marks a finished section, which is not
        // rolled back. It may become durable by chance, to no harm.
        std::uint64_t& returned = marks.header().returned;
        std::atomic_ref(returned).store(left_.sum, std::memory_order_release);
        trace::announce(trace::store, &returned, word_bytes);
        marks.leave_out(in_.epoch(), true);
    } else {
        in_.store_mark();
    }
    in_.end();
}

/// Whether (5) holds.
bool undo_protocol<fenced_medium>::may_leave_stores() {
    const section_blocks& blocks = in_.blocks();
    HF_ASSERT_SLOW(blocks.adopted().empty());
    if (blocks.gives_up() || !blocks.segments().empty()) return false;
    std::uint64_t own_bytes = 0;
    for (block b : blocks.taken()) own_bytes += b.bytes;
    if (own_bytes > left_bytes_max || !in_.marks().may_leave_out()) return false;
    if (in_.unfenced()) in_.fence(); // the log ends here: another section may write over it
    for (block b : blocks.taken())   // whole: what it has not stored there has a sum as well
        in_.dirty().add(in_.base() + b.offset, b.bytes);
    return in_.dirty().is_short(left_stores::lines_max);
}

void undo_protocol<fenced_medium>::leave_stores(std::size_t named) {
    commit_marks& marks = in_.marks();
    in_.leave_stores(named);
    const auto base = reinterpret_cast<std::uintptr_t>(in_.base());
    left_stores& left = marks.left(in_.epoch());
    // A constructor may have stored to a lock that is in no fresh memory: upholds
    // section/commit_marks.hpp (5).
    for (const stored_ranges::range& r : in_.overwritten())
        left.add_own(base + r.offset, base + r.offset + r.bytes);
    marks.state().older_sums.store(true, std::memory_order_release);
}

} // namespace hf::undo

extern "C" {

int hf_undo_begin(const hf_txfunc* function, const void* packed_args) noexcept {
    if (hf::word_protocol::begin_again(hf::engine_rows::undo, *function)) [[likely]]
        return 1;
    // Recovery needs neither function nor arguments; they are named for reports only.
    return hf::begin_apart<hf::undo::undo_protocol>(*function, packed_args, "hf_undo_begin");
}

void hf_undo_commit(void) noexcept {
    if (!hf::word_protocol::commit_again())
        hf::commit_section<hf::undo::undo_protocol>("hf_undo_commit");
}

void hf_undo_commit_or_throw(void) { hf_undo_commit(); }

void hf_undo_abort(void) noexcept {
    hf::without_exceptions("hf_undo_abort", [] { hf::current_section->by().doom(); });
    hf_undo_commit();
}

void hf_undo_log(const void* address, std::uint64_t bytes) noexcept {
    hf::log_store<hf::undo::undo_protocol>("hf_undo_log", address, bytes);
}

void hf_undo_note(const void* address, std::uint64_t bytes) noexcept {
    hf::note_store<hf::undo::undo_protocol>("hf_undo_note", address, bytes);
}

} // extern "C"
