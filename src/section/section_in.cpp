// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <base/assert.hpp>
#include <base/line.hpp>
#include <base/names.hpp>
#include <base/words.hpp>
#include <section/section_in.hpp>

#include <algorithm>
#include <cstring>

namespace hf {

namespace {

/// Zeroes what lies between packed arguments: there the caller's stack shows through.
inline void clear_gaps(const hf_txfunc& function, std::byte* args) noexcept {
    std::uint32_t end = 0; // of the arguments so far, which the schema lists in order
    for (std::uint64_t i = 0; i < function.args_count; ++i) {
        const hf_arg& a = function.args[i];
        if (a.offset_bytes > end) std::memset(args + end, 0, a.offset_bytes - end);
        end = std::max(end, a.offset_bytes + a.size_bytes);
    }
    // Behind the last one the block is rounded up to a word. What a shorter schema leaves out is
    // an argument all the same.
    if (function.args_bytes > end && function.args_bytes - end < word_bytes)
        std::memset(args + end, 0, function.args_bytes - end);
}

/// Gives the pool's addresses among the arguments their canonical form.
void to_canonical(const pool_file& file, const hf_txfunc& function, std::byte* args) {
    shift_pointers(function, args,
                   file.canonical_base() - reinterpret_cast<std::uint64_t>(file.base()));
}

} // namespace

void section::check_arguments(const hf_txfunc& function, std::uint64_t bytes) {
    if (bytes > args_bytes_max)
        fatal("%s (%s) takes %llu bytes of arguments, a section logs at most %llu: pass a pointer "
              "into the pool, or use hf::vlog_preserve",
              readable_name(function.name), function.where, static_cast<unsigned long long>(bytes),
              static_cast<unsigned long long>(args_bytes_max));
}

void section::put_arguments(const hf_txfunc& function, const void* args,
                            std::byte* to) const noexcept {
    if (function.args_bytes == 0) return;
    const std::uint64_t whole = round_down(function.args_bytes, word_bytes);
    copy_words(to, args, whole);
    if (whole != function.args_bytes) [[unlikely]]
        std::memcpy(to + whole, static_cast<const std::byte*>(args) + whole,
                    function.args_bytes - whole);
    clear_gaps(function, to);
    if (pool_->file->relocated()) [[unlikely]]
        to_canonical(*pool_->file, function, to);
}

template <class Medium>
void section_in<Medium>::begin(protocol& by, const hf_txfunc& function, bool as_it_goes) {
    if (turns_ != nullptr) [[unlikely]]
        turns_->lock();
    HF_ASSERT_SLOW(idle() && dirty_.empty());
    settle_before(by, as_it_goes);
    start(by, function);
}

/// Word by word: its check is taken of words.
inline void store_begin(std::byte* to, const begin_payload& head) noexcept {
    static_assert(offsetof(begin_payload, engine) == 24 && offsetof(begin_payload, floats) == 26 &&
                  offsetof(begin_payload, args_bytes) == 28);
    const std::uint64_t words[] = {head.epoch, head.function_id, head.function_version,
                                   as_word(std::uint64_t{head.args_bytes} << 32 |
                                           std::uint64_t{head.floats} << 16 | head.engine)};
    static_assert(sizeof words == sizeof head);
    copy_words(to, words, sizeof words);
}

template <class Medium>
void section_in<Medium>::start_log(const log_start& what) {
    const hf_txfunc& function = *function_;
    check_arguments(function, what.payload_bytes);
    HF_ASSERT_SLOW((what.payload != nullptr || what.payload_bytes == 0));
    log_.start(lane_start(*pool_->file, marks_.lane(), epoch_));
    const begin_payload head{epoch_,           function.id,
                             function.version, static_cast<std::uint16_t>(engine().bit),
                             what.floats,      static_cast<std::uint32_t>(what.payload_bytes)};
    alignas(8) std::byte together[sizeof head + args_bytes_max];
    std::byte* const payload = together + sizeof head;
    store_begin(together, head);
    check_place(function);
    if (what.arguments) put_arguments(function, what.payload, payload);
    else if (what.payload_bytes > 0) std::memcpy(payload, what.payload, what.payload_bytes);
    const std::size_t sums = what.sums ? prepared_.filled().size() : 0;
    const std::size_t announced = what.staged ? prepared_.staged().size() + sums : 0;
    append(record_kind::begin, announced | log_.begin_bits, sizeof head + what.payload_bytes,
           together);
    if (announced != 0) append_prepared(sums);
    HF_ASSERT_SLOW(log_.valid());
}

template <class Medium>
void section_in<Medium>::append_prepared(std::size_t sums) {
    const heap& blocks = pool_->blocks.durable();
    const std::span logged = prepared_.filled().first(sums);
    for (block b : prepared_.staged())
        if (std::ranges::none_of(logged, [&](const filled_bytes& f) { return f.fill(blocks, b); }))
            append(record_kind::staged, b.offset, b.bytes);
    for (const filled_bytes& f : logged) {
        const bool whole =
            std::ranges::any_of(prepared_.staged(), [&](block b) { return f.fill(blocks, b); });
        append(whole ? record_kind::made : record_kind::filled, f.offset, sizeof f.what, &f.what);
    }
}

template <class Medium>
void section_in<Medium>::append(record_kind kind, std::uint64_t offset, std::uint64_t bytes,
                                const void* payload) {
    const std::uint64_t payload_bytes = has_payload(kind) ? bytes : 0;
    if (!log_.fits(payload_bytes)) [[unlikely]]
        if (!extend(payload_bytes)) return;
    log_.append(kind, offset, bytes, payload, payload_bytes);
    unfenced_ = true;
}

/// Continues the log in a block of the heap. False: there is no room, and the section is doomed.
template <class Medium>
bool section_in<Medium>::extend(std::uint64_t payload_bytes) {
    if (extend_if_room(payload_bytes, purpose::log)) return true;
    protocol_->no_room_for_log();
    return false;
}

template <class Medium>
block section_in<Medium>::reserve_segment(std::uint64_t bytes, purpose what) {
    // What can fail comes before the block is taken.
    blocks_.make_room_for_segment();
    const block b =
        pool_->blocks.reserve(*cache_, std::max(segment_bytes_min(*pool_->file), bytes), what);
    if (b.offset == 0) return b;
    HF_ASSERT_SLOW(b.bytes >= segment_bytes_min(*pool_->file)); // or recovery refuses it
    blocks_.add_segment(b);
    return b;
}

template <class Medium>
bool section_in<Medium>::extend_if_room(std::uint64_t payload_bytes, purpose what) {
    const block b = reserve_segment(
        lane_writer::record_bytes(payload_bytes) + sizeof(record_head) + 2 * line_bytes, what);
    if (b.offset == 0) return false;
    log_.continue_in(base_ + b.offset, b.offset, b.bytes);
    HF_ASSERT_SLOW(log_.fits(payload_bytes));
    HF_ASSERT_SLOW(log_.fits_kept(payload_bytes));
    return true;
}

template <class Medium>
void section_in<Medium>::log_old_bytes(const void* address, std::uint64_t bytes) {
    HF_ASSERT_SLOW(running());
    const std::uint64_t offset = checked_offset(address, bytes);
    if (offset == outside || bytes == 0) return;
    if (!fresh(offset)) {
        append_old_bytes(address, offset, bytes);
        before_in_place_store();
    }
    will_store(address, bytes);
}

template <class Medium>
void section_in<Medium>::log_ahead(const void* address, std::uint64_t bytes) {
    HF_ASSERT_SLOW(running());
    const auto offset = static_cast<std::uint64_t>(static_cast<const std::byte*>(address) - base_);
    // What is wrong with the address, the store itself will say.
    if (offset >= range_bytes_ && (!watched() || !pool_->blocks.durable().covers(offset, bytes)))
        return;
    if (bytes != 0 && !fresh(offset)) append_old_bytes(address, offset, bytes);
}

template <class Medium>
void section_in<Medium>::append_old_bytes(const void* address, std::uint64_t offset,
                                          std::uint64_t bytes) {
    if (already_logged(offset, bytes)) return;
    check_end(offset, bytes);
    left_.add(offset, bytes);
    append(record_kind::old_bytes, offset, bytes, address);
}

template <class Medium>
void section_in<Medium>::publish_blocks() {
    if (!blocks_.change_heap()) return;
    before_in_place_store(); // upholds section.hpp (2)
    blocks_.publish<Medium::keeps_order()>(pool_->blocks.durable(), *cache_,
                                           [&](const void* word) { will_store(word, word_bytes); });
    stored_ = true;
}

template <class Medium>
void section_in<Medium>::publish_blocks_apart()
    requires(!Medium::keeps_order())
{
    if (!blocks_.change_heap()) return;
    before_in_place_store(); // upholds section.hpp (2)
    const auto dirty = [&](const void* word) { will_store(word, word_bytes); };
    blocks_.name_chunks(pool_->blocks.durable(), *cache_, dirty);
    dirty_.flush_all(medium_);
    medium_.order();
    blocks_.change_bits(pool_->blocks.durable(), dirty);
    stored_ = true;
}

/// The section's blocks have changed hands, durably; those it no longer needs wait for its mark
/// (commit_marks.hpp, 1).
template <class Medium>
void section_in<Medium>::settle_blocks() {
    HF_ASSERT_SLOW(dirty_.empty());
    if (stored_) prepared_.forget_filled(); // they are in the log, or durable
    blocks_.settle<Medium::keeps_order()>(pool_->blocks.durable(), *cache_, marks_.freed());
}

template <class Medium>
void section_in<Medium>::make_stores_durable() {
    if (!stored_) return;
    dirty_.flush_all(medium_);
    fence(); // the section's stores are durable before its mark
}

/// Requires: of few lines.
template <class Medium>
void section_in<Medium>::leave_stores(std::size_t named)
    requires(!Medium::keeps_order())
{
    HF_ASSERT_SLOW(dirty_.is_short(left_stores::lines_max));
    HF_ASSERT_SLOW(!marks_.due()); // what stood here before is written over, durably
    left_stores& left = marks_.left(epoch_);
    left.start(dirty_.lines(), named);
    const auto base = reinterpret_cast<std::uintptr_t>(base_);
    const auto add = [&](block b) { left.add_own(base + b.offset, base + b.offset + b.bytes); };
    std::ranges::for_each(blocks_.taken(), add);
    std::ranges::for_each(blocks_.adopted(), add);
    dirty_.forget(); // the next section flushes them
}

template <class Medium>
void section_in<Medium>::leave_sums()
    requires(!Medium::keeps_order())
{
    left_stores& left = marks_.left(epoch_);
    const auto base = reinterpret_cast<std::uintptr_t>(base_);
    for (const filled_bytes& f : prepared_.filled())
        left.add_filled(base + f.offset, base + f.offset + f.what.bytes);
}

template <class Medium>
void section_in<Medium>::commit() {
    HF_ASSERT_SLOW(running());
    ++persist::thread_counters().sections;
    publish_blocks();
    make_stores_durable();
    settle_blocks();
    store_mark();
    end();
}

void section::go_on(protocol& by, const hf_txfunc& function, const pending_section& from) {
    HF_ASSERT(from.lane == marks_.lane());
    HF_ASSERT(from.sound);
    HF_ASSERT_SLOW(idle());
    HF_ASSERT_SLOW(from.begin.epoch <= marks_.state().epoch);
    next_section_here = {};
    protocol_ = &by;
    function_ = &function;
    epoch_ = from.begin.epoch; // the lane's next section stays above all that it may have used
    // Every offset is out of range from now on, and far_offset looks why: what is watched costs
    // other sections nothing.
    range_bytes_ = 0;
    for (const record_view& r : from.records) {
        if (r.kind == record_kind::staged) prepared_.staged().push_back({{r.offset, r.bytes}});
        if (r.kind == record_kind::segment) blocks_.add_segment({r.offset, r.bytes});
    }
    HF_ASSERT_SLOW(running());
}

template <class Medium>
void section_in<Medium>::take_up(protocol& by, const hf_txfunc& function,
                                 const pending_section& from)
    requires(!Medium::keeps_order())
{
    HF_ASSERT_SLOW(!is_ordered(marks_.header())); // where order is kept it has another log
    log_.go_on(from.end);
    go_on(by, function, from);
    for (const record_view& r : from.records) {
        if (r.kind != record_kind::filled) continue;
        filled_payload what;
        std::memcpy(&what, r.payload, sizeof what);
        prepared_.add_logged(r.offset, what);
    }
    // Changes the chain (lane.hpp, 2): a record that an earlier run wrote past the end of the valid
    // log cannot pass for one of this run.
    append(record_kind::resumed, pool_->file->generation(), 0);
}

template class section_in<ordered_medium>;
template class section_in<fenced_medium>;

std::unique_ptr<section> make_section(pool::impl& pool, std::uint32_t lane, thread_cache& cache,
                                      std::mutex* turns) {
    return as_its_kind(pool.file->medium(), [&](auto pm) -> std::unique_ptr<section> {
        return std::make_unique<section_in<decltype(pm)>>(pool, lane, cache, turns);
    });
}

} // namespace hf

extern "C" void hf_log_ahead(const void* address, std::uint64_t bytes) noexcept {
    HF_ASSERT_SLOW(hf::current_section != nullptr);
    if (hf::section::is_known_fresh(address)) return;
    hf::without_exceptions("hf_log_ahead",
                           [&] { hf::current_section->by().log_ahead(address, bytes); });
}
