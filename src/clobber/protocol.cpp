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
#include <cstring>
#include <optional>

namespace hf::clobber {

// A program with sections links their engine (open/program_engines.cpp).
[[gnu::used]] static constexpr engine_ptr (*linked)() noexcept = &engine;

using in_order = clobber_protocol<ordered_medium>;
using fenced = clobber_protocol<fenced_medium>;

// Ordered (5).

template <> inline void in_order::start_log(const hf_txfunc& function, const void* args) {
    keeping_ = how_.keep_overwritten;
    const std::uint16_t floats = persist::float_environment::current().bits();
    in_.put_arguments(function, args,
                      log_.add_begin(function.version, floats, function.args_bytes));
}

template <> void in_order::begin(const hf_txfunc& function, const void* args) {
    section::check_arguments(function, function.args_bytes);
    word_protocol::begin(function, args);
    start_log(function, args);
    for (const staged_block& b : in_.prepared().staged()) log_block(record_kind::staged, b);
}

namespace {

/// Whether all pool pointers among the arguments lead into the pool; another may be an error.
bool lead_into(const pool::impl& pool, const hf_txfunc& function, const void* args) noexcept {
    for (std::uint64_t i = 0; i < function.args_count; ++i) {
        if (function.args[i].kind != HF_ARG_POOL_POINTER) continue;
        const void* pointer = nullptr;
        std::memcpy(&pointer, static_cast<const std::byte*>(args) + function.args[i].offset_bytes,
                    sizeof pointer);
        if (pointer != nullptr && !pool.contains(pointer)) return false;
    }
    return true;
}

} // namespace

template <class Medium>
inline bool clobber_protocol<Medium>::begin_again(const hf_txfunc& function,
                                                  const void* args) noexcept
    requires(Medium::keeps_order())
{
    if (!word_protocol::is_offered(row)) return false;
    auto& self = static_cast<clobber_protocol&>(word_protocol::offered());
    if (!self.in_.prepared().staged().empty() || function.args_bytes > args_bytes_max ||
        !lead_into(self.in_.pool(), function, args))
        return false;
    static_cast<word_protocol&>(self).begin_again(function);
    self.in_.forget_stored();
    self.start_log(function, args);
    return true;
}

template <> void in_order::commit() { word_protocol::commit(); }
template <> void in_order::complete() { word_protocol::commit(); }

template <>
inline void in_order::go_on(const hf_txfunc& function, const pending_section& from) {
    log_.go_on(*in_.pool().file, from.lane, from.end);
    log_.hide();
    ++serial_;
    in_.go_on(*this, function, from);
}

template <> inline void in_order::end_discarded() { end(); }

/// Stores whose entries are in line are not noted.
template <> inline bool in_order::has_stored() const {
    return in_.stored() || log_.has_old_bytes();
}

template <> inline std::uint64_t in_order::serial() const noexcept { return serial_; }
template <>
inline bool in_order::already_logged(std::uint64_t offset, std::uint64_t bytes) const noexcept {
    return logged_.seen(serial_, offset, bytes);
}

template <>
inline void in_order::log_overwritten(const void* address, std::uint64_t offset,
                                      std::uint64_t bytes) {
    const std::uint64_t entry = word_log::entry_bytes(bytes);
    add([&] {
        keeping_ = log_.fits(entry) || extend_if_room(entry, purpose::data);
        if (keeping_) log_.add_overwritten(offset, address, bytes);
    });
    if (!keeping_) log_block(record_kind::unkept, {offset, bytes});
}

template <> inline void in_order::log_preserved(const void* bytes, std::uint64_t count) {
    add([&] {
        make_room(word_log::long_entry_bytes(count));
        log_.add_preserved(bytes, count);
    });
}

template <> void in_order::note(const void* address, std::uint64_t bytes) {
    HF_ASSERT_SLOW(in_.running());
    const std::uint64_t offset = in_.checked_offset(address, bytes);
    if (offset == section::outside || bytes == 0) return;
    if (!in_.fresh(offset)) {
        if (keeping_) keep_overwritten(address, offset, bytes); // upholds (2)
        else if (log_.is_empty()) log_.count();                 // upholds (5)
    }
    in_.will_store(address, bytes);
}

// Fenced.

template <> void fenced::begin(const hf_txfunc& function, const void* args) {
    in_.begin(*this, function);
    keeping_ = how_.keep_overwritten;
    in_.start_log({.payload = args,
                   .payload_bytes = function.args_bytes,
                   .arguments = function.args_bytes > 0,
                   .floats = persist::float_environment::current().bits(),
                   .sums = true});
}

template <> void fenced::commit() {
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

template <> void fenced::complete() { in_.commit(); }

template <> inline void fenced::go_on(const hf_txfunc& function, const pending_section& from) {
    in_.take_up(*this, function, from);
}

template <> inline bool fenced::has_stored() const { return in_.stored(); }

template <> inline void fenced::end_discarded() {
    in_.settle_blocks();
    store_mark(in_.medium(), &in_.marks().header(), in_.epoch());
    in_.fence();
    in_.marks().release_freed();
}

template <> inline std::uint64_t fenced::serial() const noexcept { return in_.epoch(); }
template <>
inline bool fenced::already_logged(std::uint64_t offset, std::uint64_t bytes) const noexcept {
    return in_.logged().seen(in_.epoch(), offset, bytes);
}

template <>
inline void fenced::log_overwritten(const void* address, std::uint64_t offset,
                                    std::uint64_t bytes) {
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

template <> inline void fenced::log_preserved(const void* bytes, std::uint64_t count) {
    in_.append(record_kind::preserve, 0, count, bytes);
}

template <> void fenced::note(const void* address, std::uint64_t bytes) {
    in_.note_store(address, bytes, [&](std::uint64_t offset) {
        if (keeping_) keep_overwritten(address, offset, bytes); // upholds (2)
    });
}

// Either.

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
    go_on(*function, from);
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
    end_discarded();
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
void clobber_protocol<Medium>::keep_overwritten(const void* address, std::uint64_t offset,
                                                std::uint64_t bytes) {
    if (already_kept(offset, bytes)) return;
    in_.check_end(offset, bytes);
    log_overwritten(address, offset, bytes);
}

template <class Medium>
bool clobber_protocol<Medium>::already_kept(std::uint64_t offset, std::uint64_t bytes) {
    if (first_ != nullptr && first_->kept(offset, bytes)) [[unlikely]]
        return true;
    if (already_logged(offset, bytes)) return true;
    if (bytes > logged_words::bytes_max)
        return overwritten_long_.seen_or_add(serial(), offset, bytes);
    return overwritten_.seen_or_add(serial(), offset, bytes);
}

template <class Medium>
void* clobber_protocol<Medium>::alloc(std::uint64_t bytes) {
    if (first_ == nullptr) [[likely]]
        return logging<Medium>::alloc(bytes);
    first_->entered();
    const heap& blocks = in_.pool().blocks.durable();
    const std::optional<block> again =
        first_->next_block(blocks.rounded(std::max<std::uint64_t>(bytes, 1)));
    if (!again) return logging<Medium>::alloc(bytes);
    if (again->offset == 0) return nullptr;
    HF_ASSERT_SLOW(blocks.well_formed(*again)); // its record is checked
    return in_.take(*again);
}

template <class Medium>
void clobber_protocol<Medium>::free(block b) {
    if (first_ == nullptr || !first_->freed(b.offset)) logging<Medium>::free(b);
}

template <class Medium>
const void* clobber_protocol<Medium>::preserve(const void* volatile_bytes, std::uint64_t bytes) {
    if (first_ != nullptr) first_->entered();
    if (in_.pool().file->relocated())
        hf_relocated_raw_load(volatile_bytes, bytes, in_.function()->where);
    if (first_ != nullptr) return first_->next_preserved(bytes);
    if (has_stored()) // upholds (4)
        fatal("%s (%s) calls vlog_preserve after a store to PM: preserve first, store afterwards",
              readable_name(in_.function()->name), in_.function()->where);
    log_preserved(volatile_bytes, bytes);
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
    if (hf::clobber::in_order::begin_again(*function, packed_args)) [[likely]]
        return 1;
    return hf::begin_apart<hf::clobber::clobber_protocol>(*function, packed_args,
                                                          "hf_clobber_begin");
}

void hf_clobber_commit(void) noexcept {
    if (!hf::word_protocol::commit_again())
        hf::commit_section<hf::clobber::clobber_protocol>("hf_clobber_commit");
}

void hf_clobber_log(const void* address, std::uint64_t bytes) noexcept {
    hf::log_store<hf::clobber::clobber_protocol>("hf_clobber_log", address, bytes);
}

void hf_clobber_note(const void* address, std::uint64_t bytes) noexcept {
    hf::note_store<hf::clobber::clobber_protocol>("hf_clobber_note", address, bytes);
}

} // extern "C"
