// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <base/assert.hpp>
#include <base/names.hpp>
#include <clobber/engine.hpp>
#include <clobber/protocol.hpp>
#include <clobber/re_execution.hpp>
#include <open/registry.hpp>
#include <persist/float_environment.hpp>

#include <holdfast/abi/relocate_abi.h>

#include <algorithm>
#include <optional>

namespace hf::clobber {

// A program with sections links their engine (open/program_engines.cpp).
[[gnu::used]] static constexpr engine_ptr (*linked)() noexcept = &engine;

template <class Medium>
void clobber_protocol<Medium>::begin(const hf_txfunc& function, const void* args) {
    in_.begin(*this, function);
    keeping_ = how_.keep_overwritten;
    in_.start_log({.payload = args,
                   .payload_bytes = function.args_bytes,
                   .arguments = function.args_bytes > 0,
                   .floats = persist::float_environment::current().bits(),
                   .sums = true});
}

template <> void clobber_protocol<ordered_medium>::commit() { in_.commit(); }

template <> void clobber_protocol<fenced_medium>::commit() {
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

template <class Medium>
void clobber_protocol<Medium>::take_up(const pending_section& from, re_execution& first) {
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

template <class Medium>
void clobber_protocol<Medium>::discard(std::span<const block> untaken) {
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

template <class Medium>
void clobber_protocol<Medium>::forsake() {
    HF_ASSERT_SLOW(first_ != nullptr);
    HF_ASSERT_SLOW(in_.running());
    in_.blocks().keep_freed(); // would have taken effect at commit
    in_.dirty().flush_all(in_.medium());
}

template <class Medium>
void clobber_protocol<Medium>::note(const void* address, std::uint64_t bytes) {
    in_.note_store(address, bytes, [&](std::uint64_t offset) {
        if (keeping_) keep_overwritten(address, offset, bytes); // upholds (2)
    });
}

template <class Medium>
void clobber_protocol<Medium>::keep_overwritten(const void* address, std::uint64_t offset,
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

template <class Medium>
bool clobber_protocol<Medium>::already_kept(std::uint64_t offset, std::uint64_t bytes) {
    if (first_ != nullptr && first_->kept(offset, bytes)) [[unlikely]]
        return true;
    if (in_.logged().seen(in_.epoch(), offset, bytes)) return true;
    if (bytes > logged_words::bytes_max)
        return overwritten_long_.seen_or_add(in_.epoch(), offset, bytes);
    return overwritten_.seen_or_add(in_.epoch(), offset, bytes);
}

template <class Medium>
void* clobber_protocol<Medium>::alloc(std::uint64_t bytes) {
    if (first_ == nullptr) [[likely]]
        return protocol_in<Medium>::alloc(bytes);
    first_->entered();
    const heap& blocks = in_.pool().blocks.durable();
    const std::optional<block> again =
        first_->next_block(blocks.rounded(std::max<std::uint64_t>(bytes, 1)));
    if (!again) return protocol_in<Medium>::alloc(bytes);
    if (again->offset == 0) return nullptr;
    HF_ASSERT_SLOW(blocks.well_formed(*again)); // its record is checked
    return in_.take(*again);
}

template <class Medium>
void clobber_protocol<Medium>::free(block b) {
    if (first_ == nullptr || !first_->freed(b.offset)) protocol_in<Medium>::free(b);
}

template <class Medium>
const void* clobber_protocol<Medium>::preserve(const void* volatile_bytes, std::uint64_t bytes) {
    if (first_ != nullptr) first_->entered();
    if (in_.pool().file->relocated())
        hf_relocated_raw_load(volatile_bytes, bytes, in_.function()->where);
    if (first_ != nullptr) return first_->next_preserved(bytes);
    if (in_.stored()) // upholds (4)
        fatal("%s (%s) calls vlog_preserve after a store to PM: preserve first, store afterwards",
              readable_name(in_.function()->name), in_.function()->where);
    in_.append(record_kind::preserve, 0, bytes, volatile_bytes);
    // The section may change the original (a local, bytes of the pool). Its first run reads the
    // recorded copy, as a re-execution will.
    return in_.keep(volatile_bytes, bytes);
}

template <class Medium>
void clobber_protocol<Medium>::give_up() {
    if (first_ != nullptr) first_->give_up();
}

template <class Medium>
void clobber_protocol<Medium>::entered() const noexcept {
    first_->entered();
}

template <class Medium>
void clobber_protocol<Medium>::stores(std::uint64_t offset, std::uint64_t bytes, bool fresh) {
    first_->stores(offset, bytes, fresh);
}

template <class Medium>
bool clobber_protocol<Medium>::logged(std::uint64_t offset, std::uint64_t bytes) const noexcept {
    return first_->logged(offset, bytes);
}

template class clobber_protocol<ordered_medium>;
template class clobber_protocol<fenced_medium>;

} // namespace hf::clobber

extern "C" {

int hf_clobber_begin(const hf_txfunc* function, const void* packed_args) noexcept {
    return hf::without_exceptions("hf_clobber_begin", [&] {
        return int{hf::begin_section<hf::clobber::clobber_protocol>(*function, packed_args)};
    });
}

void hf_clobber_commit(void) noexcept {
    hf::commit_section<hf::clobber::clobber_protocol>("hf_clobber_commit");
}

void hf_clobber_log(const void* address, std::uint64_t bytes) noexcept {
    hf::log_store<hf::clobber::clobber_protocol>("hf_clobber_log", address, bytes);
}

void hf_clobber_note(const void* address, std::uint64_t bytes) noexcept {
    hf::note_store<hf::clobber::clobber_protocol>("hf_clobber_note", address, bytes);
}

} // extern "C"
