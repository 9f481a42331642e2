// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <base/assert.hpp>
#include <base/names.hpp>
#include <clobber/engine.hpp>
#include <clobber/protocol.hpp>
#include <clobber/re_execution.hpp>
#include <open/registry.hpp>
#include <persist/float_environment.hpp>
#include <section/thread.hpp>

#include <holdfast/abi/relocate_abi.h>

#include <algorithm>
#include <optional>

namespace hf::clobber {

// Where there are sections there is their engine (open/program_engines.cpp).
[[gnu::used]] static constexpr engine_ptr (*linked)() noexcept = &engine;

clobber_protocol::clobber_protocol(section& in) noexcept
    : protocol(in, row), how_(options_of(in.pool())) {}

void clobber_protocol::begin(const hf_txfunc& function, const void* args) {
    in_.begin(*this, function);
    keeping_ = how_.keep_overwritten;
    in_.start_log({.payload = args,
                   .payload_bytes = function.args_bytes,
                   .arguments = function.args_bytes > 0,
                   .floats = persist::float_environment::current().bits(),
                   .sums = true});
}

void clobber_protocol::commit() {
    HF_ASSERT_SLOW(in_.running());
    commit_marks& marks = in_.marks();
    ++persist::thread_counters().sections;
    in_.publish_blocks();
    const bool leaves_mark = in_.may_leave_mark() && marks.may_leave_out();
    if (leaves_mark) {
        marks.left(in_.epoch()).start({}, 0);
        in_.leave_sums();
    }
    in_.make_stores_durable();
    in_.settle_blocks();
    if (leaves_mark) { // upholds (3)
        static_cast<void>(in_.overwritten().sum_up(in_.epoch(), in_.base()));
        // It may become durable by chance: not before the section is.
        marks.store_unflushed(in_.epoch());
        marks.leave_out(in_.epoch(), false);
    } else {
        in_.store_mark();
    }
    in_.end();
}

void clobber_protocol::take_up(const pending_section& from, re_execution& first) {
    HF_ASSERT(first_ == nullptr);
    first_ = &first;
    const hf_txfunc* const function =
        registry::find_txfunc(from.begin.function_id, from.begin.function_version);
    HF_ASSERT(function != nullptr); // engine::check has found it
    // A section that cannot be rolled back any more keeps nothing.
    keeping_ = how_.keep_overwritten && from.kept_known &&
               std::ranges::none_of(from.records, [](const record_view& r) {
                   return r.kind == record_kind::unkept;
               });
    in_.take_up(*this, *function, from);
}

void clobber_protocol::discard(std::span<const block> untaken) {
    HF_ASSERT(in_.dirty().empty());
    HF_ASSERT(in_.blocks().freed().empty());
    HF_ASSERT_SLOW(first_ != nullptr);
    HF_ASSERT_SLOW(in_.running());
    in_.prepared().forget_filled();
    in_.blocks().take_back();
    in_.blocks().give_up_staged(untaken);
    in_.settle_blocks();
    store_mark(in_.medium(), &in_.marks().header(), in_.epoch());
    in_.fence();
    in_.marks().release_freed();
    HF_ASSERT_SLOW(in_.idle());
}

void clobber_protocol::forsake() {
    HF_ASSERT_SLOW(first_ != nullptr);
    HF_ASSERT_SLOW(in_.running());
    in_.blocks().keep_freed(); // would have taken effect at commit
    in_.dirty().flush_all(in_.medium());
}

void clobber_protocol::note_store(const void* address, std::uint64_t bytes) {
    in_.note_store(address, bytes, [&](std::uint64_t offset) {
        if (keeping_) keep_overwritten(address, offset, bytes); // upholds (2)
    });
}

void clobber_protocol::keep_overwritten(const void* address, std::uint64_t offset,
                                        std::uint64_t bytes) {
    if (already_kept(offset, bytes)) return;
    in_.check_end(offset, bytes);
    if (in_.log().fits_kept(bytes))
        return in_.log().keep(offset, bytes, address); // nothing waits for it
    if (in_.extend_if_room(bytes, purpose::data)) {
        in_.log().keep(offset, bytes, address);
        in_.note_unfenced(); // the segment's record: what is kept in it is not found without
    } else {
        in_.append(record_kind::unkept, offset, bytes);
        keeping_ = false;
    }
}

bool clobber_protocol::already_kept(std::uint64_t offset, std::uint64_t bytes) {
    if (first_ != nullptr && first_->kept(offset, bytes)) [[unlikely]]
        return true;
    if (in_.logged().seen(in_.epoch(), offset, bytes)) return true;
    if (bytes > logged_words::bytes_max)
        return overwritten_long_.seen_or_add(in_.epoch(), offset, bytes);
    return overwritten_.seen_or_add(in_.epoch(), offset, bytes);
}

void* clobber_protocol::alloc(std::uint64_t bytes) {
    if (first_ == nullptr) [[likely]]
        return protocol::alloc(bytes);
    first_->entered();
    const heap& blocks = in_.pool().blocks.durable();
    const std::optional<block> again =
        first_->next_block(blocks.rounded(std::max<std::uint64_t>(bytes, 1)));
    if (!again) return protocol::alloc(bytes);
    if (again->offset == 0) return nullptr;
    HF_ASSERT_SLOW(blocks.well_formed(*again)); // its record is checked
    return in_.take(*again);
}

void clobber_protocol::free(block b) {
    if (first_ == nullptr || !first_->freed(b.offset)) protocol::free(b);
}

const void* clobber_protocol::preserve(const void* volatile_bytes, std::uint64_t bytes) {
    if (first_ != nullptr) first_->entered();
    if (in_.pool().file->relocated())
        hf_relocated_raw_load(volatile_bytes, bytes, in_.function()->where);
    if (first_ != nullptr) return first_->next_preserved(bytes);
    if (in_.stored()) // upholds (4)
        fatal("%s (%s) calls vlog_preserve after a store to PM: preserve first, store afterwards",
              readable_name(in_.function()->name), in_.function()->where);
    in_.append(record_kind::preserve, 0, bytes, volatile_bytes);
    // The section may change the original (a local, bytes of the pool). Its first run reads what was recorded, as
    // a re-execution will.
    return in_.keep(volatile_bytes, bytes);
}

void clobber_protocol::give_up() {
    if (first_ != nullptr) first_->give_up();
}

void clobber_protocol::entered() const noexcept { first_->entered(); }

void clobber_protocol::stores(std::uint64_t offset, std::uint64_t bytes, bool fresh) {
    first_->stores(offset, bytes, fresh);
}

bool clobber_protocol::logged(std::uint64_t offset, std::uint64_t bytes) const noexcept {
    return first_->logged(offset, bytes);
}

} // namespace hf::clobber

extern "C" {

int hf_clobber_begin(const hf_txfunc* function, const void* packed_args) noexcept {
    return hf::without_exceptions("hf_clobber_begin", [&] {
        hf::section* const opened =
            hf::open_section(hf::engine_rows::clobber, *function, packed_args);
        if (opened == nullptr) return 0;
        opened->of<hf::clobber::clobber_protocol>().begin(*function, packed_args);
        return 1;
    });
}

void hf_clobber_commit(void) noexcept {
    HF_ASSERT_SLOW(hf::current_section != nullptr);
    hf::without_exceptions("hf_clobber_commit", [] {
        hf::current_section->as<hf::clobber::clobber_protocol>().commit();
    });
    hf::leave_section();
}

void hf_clobber_log(const void* address, std::uint64_t bytes) noexcept {
    HF_ASSERT_SLOW(hf::current_section != nullptr);
    hf::without_exceptions("hf_clobber_log",
                           [&] { hf::current_section->log_old_bytes(address, bytes); });
}

} // extern "C"
