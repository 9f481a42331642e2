// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <base/assert.hpp>
#include <base/names.hpp>
#include <clobber/engine.hpp>
#include <clobber/re_execution.hpp>
#include <persist/float_environment.hpp>
#include <pool/believed.hpp>

#include <cstring>

namespace hf::clobber {

namespace {

taken_up& protocol_of(section& work) {
    return with_section(work, []<class Medium>(section_in<Medium>& in) -> taken_up& {
        return in.template of<clobber_protocol<Medium>>();
    });
}

} // namespace

re_execution::re_execution(section& work, pending_section& pending)
    : work_(work), by_(protocol_of(work)), pending_(pending) {
    HF_ASSERT_SLOW(pending.sound);
    HF_ASSERT_SLOW(pending.args.size() == pending.begin.args_bytes);
    for (const record_view& r : pending.records) {
        if (r.kind == record_kind::alloc) blocks_.push_back({r.offset, r.bytes});
        if (r.kind == record_kind::preserve) preserved_.push_back(r);
        if (r.kind == record_kind::free && !frees_.covers(r.offset))
            frees_.add({r.offset, r.bytes});
        if (r.kind != record_kind::old_bytes && r.kind != record_kind::overwritten) continue;
        held_.add(r.offset, r.bytes);
        if (r.kind == record_kind::old_bytes) inputs_.add(r.offset, r.bytes);
    }
}

bool re_execution::run() {
    by_.take_up(pending_, *this); // may find no room, and jump
    HF_ASSERT_SLOW(work_.running());
    HF_ASSERT_SLOW(!in_place_);
    if (made_ready() && setjmp(unrun_) == 0) {
        call();
        by_.complete();
        HF_ASSERT_SLOW(work_.idle());
        return true;
    }
    discard();
    return false;
}

/// Whether everything made before the section is there: the blocks it may adopt are named, bytes
/// filled in are as they were. If not, the section had stored nothing in place: its log and those
/// bytes are durable before that. Requires: old bytes are restored.
bool re_execution::made_ready() const {
    std::uint64_t found = 0;
    for (const record_view& r : pending_.records) {
        found += r.kind == record_kind::staged || r.kind == record_kind::filled;
        if (r.kind != record_kind::filled) continue;
        filled_payload filled;
        std::memcpy(&filled, r.payload, sizeof filled);
        HF_ASSERT_SLOW(work_.pool().blocks.durable().covers(r.offset, filled.bytes));
        const std::byte* at = file().base() + r.offset;
        trace::announce(believed::checked, at, filled.bytes);
        if (XXH3_64bits(at, filled.bytes) != filled.sum) return false;
    }
    return found >= pending_.announced;
}

/// All addresses in the arguments get the form in which they were logged. If that differs from
/// today's form, they are translated when they are read.
void re_execution::call() {
    shift_pointers(*work_.function(), pending_.args.data(),
                   file().logged_base() - file().canonical_base());
    HF_ASSERT_SLOW(pending_.args.size() >= work_.function()->args_bytes);
    const void* args = as_read(pending_.args.data(), pending_.args.size());
    const fault_guard::clock running(
        options_of(work_.pool()).recovery_ms_max,
        [](void* run) noexcept { // whether it has reached anything new
            auto& self = *static_cast<re_execution*>(run);
            const bool any = self.progress_ != self.progress_seen_;
            self.progress_seen_ = self.progress_;
            return any;
        },
        [](void* late) noexcept { static_cast<re_execution*>(late)->expired_ = true; }, this);
    // The recovering code restores the thread's own environment (section/recovery.cpp).
    persist::float_environment(pending_.begin.floats).apply();
    work_.function()->re_execute(args);
}

void re_execution::discard() {
    HF_ASSERT_SLOW(!in_place_); // upholds (2)
    std::vector<block> untaken;
    for (; next_block_ < blocks_.size(); ++next_block_)
        if (const block b = blocks_[next_block_]; b.offset != 0) untaken.push_back(b);
    by_.discard(untaken);
    HF_ASSERT_SLOW(work_.idle());
}

/// A copy for code to read. If it was logged at another mapping, addresses are translated.
const void* re_execution::as_read(const void* logged, std::uint64_t bytes) {
    if (file().logged_base() != reinterpret_cast<std::uint64_t>(file().base()))
        return translated_.emplace_back(logged, bytes, file().logged_forms()).data();
    return work_.keep(logged, bytes);
}

void re_execution::entered() const noexcept {
    if (expired_) fault_guard::expired();
}

void re_execution::stores(std::uint64_t offset, std::uint64_t bytes, bool fresh) {
    HF_ASSERT_SLOW(work_.pool().blocks.durable().covers(offset, bytes)); // far_offset has looked
    if (!fresh) in_place_ = true;
    const std::uint64_t first = round_down(offset, line_bytes);
    const std::uint64_t end = round_up(offset + bytes, line_bytes);
    if (reached_.all(first, end - first)) return;
    reached_.add(first, end - first);
    HF_ASSERT_SLOW(reached_.all(first, end - first));
    progress_ = progress_ + 1;
}

std::optional<block> re_execution::next_block(std::uint64_t bytes) {
    HF_ASSERT_SLOW(next_block_ <= blocks_.size());
    progress_ = progress_ + 1;
    if (next_block_ == blocks_.size()) return std::nullopt;
    const block again = blocks_[next_block_++];
    if (again.bytes != bytes) // upholds (1)
        fatal("%s (%s) diverged when it was re-executed: it allocated %llu bytes, now it asks for "
              "%llu: it is not deterministic (a clock, a random number, volatile memory?); engine "
              "redo allows that",
              readable_name(work_.function()->name), work_.function()->where,
              static_cast<unsigned long long>(again.bytes), static_cast<unsigned long long>(bytes));
    return again;
}

const void* re_execution::next_preserved(std::uint64_t bytes) {
    HF_ASSERT_SLOW(next_preserved_ <= preserved_.size());
    // The log ended before the inputs did: then nothing was stored in place (section.hpp, 1).
    if (next_preserved_ == preserved_.size()) std::longjmp(unrun_, 1); // upholds (2)
    const record_view& r = preserved_[next_preserved_++];
    progress_ = progress_ + 1;
    if (r.bytes != bytes) // upholds (1)
        fatal("%s (%s) diverged when it was re-executed: it preserved %llu bytes, now %llu: it is "
              "not deterministic (a clock, a random number, volatile memory?); engine redo allows "
              "that",
              readable_name(work_.function()->name), work_.function()->where,
              static_cast<unsigned long long>(r.bytes), static_cast<unsigned long long>(bytes));
    return as_read(r.payload, bytes);
}

void re_execution::give_up() {
    // As deterministic as the section itself: had its first run stored in place before it came
    // here, so would this one.
    if (in_place_) return;
    by_.forsake();
    std::longjmp(unrun_, 1); // upholds (2)
}

} // namespace hf::clobber
