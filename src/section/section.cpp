// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <base/assert.hpp>
#include <base/line.hpp>
#include <base/names.hpp>
#include <base/words.hpp>
#include <open/registry.hpp>
#include <section/section.hpp>
#include <section/thread.hpp>
#include <trace/trace.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace hf {

section::section(pool::impl& pool, std::uint32_t lane, thread_cache& cache, std::mutex* turns)
    : pool_(&pool), cache_(&cache), turns_(turns), marks_(pool, lane, cache),
      medium_(pool.file->medium()), base_(pool.file->base()),
      range_bytes_(pool.file->shape().max_bytes) {
    HF_ASSERT_SLOW(turns != nullptr || idle());
}

section::~section() = default;

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

/// Gives the pool's addresses among the arguments (null: none are logged) their canonical form.
void to_canonical(const pool_file& file, const hf_txfunc& function, std::byte* args) {
    if ((function.abi_version & HF_ABI_RELOCATABLE) == 0)
        fatal("%s: %s (%s) is not built relocatable, and the pool is not at its canonical address: "
              "build it "
              "with holdfast_relocatable(target)",
              file.path().c_str(), readable_name(function.name), function.where);
    if (args == nullptr) return;
    shift_pointers(function, args,
                   file.canonical_base() - reinterpret_cast<std::uint64_t>(file.base()));
}

} // namespace

void shift_pointers(const hf_txfunc& function, std::byte* args, std::uint64_t by) noexcept {
    for (std::uint64_t i = 0; i < function.args_count; ++i) {
        const hf_arg& a = function.args[i];
        if (a.kind != HF_ARG_POOL_POINTER || a.offset_bytes + word_bytes > function.args_bytes)
            continue;
        std::uint64_t pointer = 0;
        std::memcpy(&pointer, args + a.offset_bytes, sizeof pointer);
        if (pointer == 0) continue;
        pointer += by;
        std::memcpy(args + a.offset_bytes, &pointer, sizeof pointer);
    }
}

namespace {

/// Whether what the caller must not do is looked for though it costs: in debug builds, and under
/// the crash checker.
bool looks_closely() noexcept {
#if defined(NDEBUG)
    return trace::heard();
#else
    return true;
#endif
}

} // namespace

void section::begin(protocol& by, const hf_txfunc& function, bool as_it_goes) {
    if (turns_ != nullptr) [[unlikely]]
        turns_->lock();
    HF_ASSERT_SLOW(idle());
    // What is left to the next log of an engine is left to no other's (commit_marks.hpp, 3).
    if (protocol_ != &by && marks_.stores_left()) settle_mark();
    // The section before stored nothing and so never fenced: its begin record must be durable
    // before the one before that, whose mark it stands for, is overwritten. Its own mark stays due.
    if (unfenced_ && marks_.due()) medium_.fence();
    marks_.settle_others(as_it_goes);
    const bool closely = looks_closely();
    if (closely) [[unlikely]]
        check_left();
    if (!prepared_.filled().empty()) prepared_.forget_durable();
    if (closely) [[unlikely]]
        prepared_.check(*pool_->file);
    copies_.clear();
    left_.start(closely);
    function_ = &function;
    protocol_ = &by;
    stored_ = false;
    current_section = this; // without memory for what comes before no section begins
    epoch_ = ++marks_.state().epoch;
    HF_ASSERT_SLOW(running());
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

void section::start_log(const log_start& what) {
    const hf_txfunc& function = *function_;
    if (what.payload_bytes > args_bytes_max)
        fatal("%s (%s) takes %llu bytes of arguments, a section logs at most %llu: pass a pointer "
              "into the pool, or use hf::vlog_preserve",
              readable_name(function.name), function.where,
              static_cast<unsigned long long>(what.payload_bytes),
              static_cast<unsigned long long>(args_bytes_max));
    HF_ASSERT_SLOW((what.payload != nullptr || what.payload_bytes == 0));
    log_.start(medium_, lane_start(*pool_->file, marks_.lane(), epoch_));
    const begin_payload head{epoch_,           function.id,
                             function.version, static_cast<std::uint16_t>(engine().bit),
                             what.floats,      static_cast<std::uint32_t>(what.payload_bytes)};
    alignas(8) std::byte together[sizeof head + args_bytes_max];
    std::byte* const payload = together + sizeof head;
    store_begin(together, head);
    if (what.payload_bytes > 0) std::memcpy(payload, what.payload, what.payload_bytes);
    if (what.arguments) clear_gaps(function, payload);
    if (pool_->file->relocated()) [[unlikely]]
        to_canonical(*pool_->file, function, what.payload_bytes > 0 ? payload : nullptr);
    const std::size_t sums = what.sums ? prepared_.filled().size() : 0;
    const std::size_t announced = what.staged ? prepared_.staged().size() + sums : 0;
    const std::uint64_t order = medium_.keeps_order() ? in_order_bit : 0;
    append(record_kind::begin, announced | order, sizeof head + what.payload_bytes, together);
    if (announced != 0) append_prepared(sums);
    HF_ASSERT_SLOW(log_.valid());
}

void section::append_prepared(std::size_t sums) {
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

void section::append(record_kind kind, std::uint64_t offset, std::uint64_t bytes,
                     const void* payload) {
    const std::uint64_t payload_bytes = has_payload(kind) ? bytes : 0;
    if (!log_.fits(payload_bytes)) [[unlikely]]
        if (!extend(payload_bytes)) return;
    log_.append(kind, offset, bytes, payload, payload_bytes);
    unfenced_ = true;
}

/// Continues the log in a block of the heap. The block is only ever reserved: the log that lives in
/// it names it, so nothing leaks whenever a crash comes. False: there is no room, and the section is doomed.
bool section::extend(std::uint64_t payload_bytes) {
    if (extend_if_room(payload_bytes, purpose::log)) return true;
    protocol_->no_room_for_log();
    return false;
}

void section::no_room_for_log(const char* then) const {
    const status full = pool_->blocks.full(
        fmt::format("the log of {} ({})", readable_name(function_->name), function_->where));
    fault_guard::fatal_means(full.code());
    fatal("%s; %s", full.what().c_str(), then);
}

bool section::extend_if_room(std::uint64_t payload_bytes, purpose what) {
    const std::uint64_t wanted =
        std::max(segment_bytes_min(*pool_->file),
                 lane_writer::record_bytes(payload_bytes) + sizeof(record_head) + 2 * line_bytes);
    // What can fail comes before the block is taken.
    blocks_.make_room_for_segment();
    const block b = pool_->blocks.reserve(*cache_, wanted, what);
    if (b.offset == 0) return false;
    HF_ASSERT_SLOW(b.bytes >= segment_bytes_min(*pool_->file)); // or recovery refuses it
    blocks_.add_segment(b);
    log_.continue_in(base_ + b.offset, b.offset, b.bytes);
    HF_ASSERT_SLOW(log_.fits(payload_bytes));
    HF_ASSERT_SLOW(log_.fits_kept(payload_bytes));
    return true;
}

void section::fence() {
    medium_.fence();
    unfenced_ = false;
    marks_.fenced();
}

void section::settle_mark() {
    if (marks_.settle()) unfenced_ = false;
}

void section::fence_log() {
    medium_.fence();
    unfenced_ = false;
    marks_.log_fenced();
}

/// The rest of checked_offset: what is not the pool's, and everything that is watched.
std::uint64_t section::far_offset(const void* address, std::uint64_t offset,
                                  std::uint64_t bytes) const {
    if (watched()) protocol_->entered();
    if (offset >= pool_->file->shape().max_bytes) {
        if (registry::pool_of(address) != nullptr)
            fatal("%s (%s) stores %llu bytes to another pool: a section works on one pool; use a "
                  "section for each",
                  readable_name(function_->name), function_->where,
                  static_cast<unsigned long long>(bytes));
        return outside;
    }
    // A damaged pointer must not lead to headers, lanes or the allocator's tables.
    if (!pool_->blocks.durable().covers(offset, bytes))
        fatal("%s (%s) stores %llu bytes at offset %#llx, where no block is: the "
              "pointer leads into freed memory or none of the pool's, or the pool is damaged "
              "(holdfast verify)",
              readable_name(function_->name), function_->where,
              static_cast<unsigned long long>(bytes), static_cast<unsigned long long>(offset));
    if (watched() && bytes > 0) protocol_->stores(offset, bytes, fresh(offset));
    return offset;
}

void section::check_end(std::uint64_t offset, std::uint64_t bytes) const {
    if (bytes <= pool_->file->shape().max_bytes - offset) return;
    fatal("%s (%s) stores %llu bytes across the end of the pool: an index or a length is wrong",
          readable_name(function_->name), function_->where, static_cast<unsigned long long>(bytes));
}

void section::log_old_bytes(const void* address, std::uint64_t bytes) {
    HF_ASSERT_SLOW(running());
    const std::uint64_t offset = checked_offset(address, bytes);
    if (offset == outside || bytes == 0) return;
    if (!fresh(offset)) {
        append_old_bytes(address, offset, bytes);
        before_in_place_store();
    }
    will_store(address, bytes);
}

void section::log_ahead(const void* address, std::uint64_t bytes) {
    HF_ASSERT_SLOW(running());
    const auto offset = static_cast<std::uint64_t>(static_cast<const std::byte*>(address) - base_);
    // What is wrong with the address, the store itself will say.
    if (offset >= range_bytes_ && (!watched() || !pool_->blocks.durable().covers(offset, bytes)))
        return;
    if (bytes != 0 && !fresh(offset)) append_old_bytes(address, offset, bytes);
}

void section::append_old_bytes(const void* address, std::uint64_t offset, std::uint64_t bytes) {
    if (already_logged(offset, bytes)) return;
    check_end(offset, bytes);
    left_.add(offset, bytes);
    append(record_kind::old_bytes, offset, bytes, address);
}

bool section::already_logged(std::uint64_t offset, std::uint64_t bytes) {
    if (watched() && protocol_->logged(offset, bytes)) return true;
    return logged_.seen_or_add(epoch_, offset, bytes);
}

block section::reserve(std::uint64_t bytes) {
    block b{0, 0};
    try {
        blocks_.make_room();
        b = pool_->blocks.reserve(*cache_, bytes);
    } catch (const std::bad_alloc&) { // no memory to keep account of it: no room
    }
    const heap& blocks = pool_->blocks.durable();
    const auto rounded = [&] { return blocks.rounded(std::max<std::uint64_t>(bytes, 1)); };
    HF_ASSERT_SLOW(b.offset == 0 || b.bytes == rounded()); // what a re-execution will ask for
    return b.offset != 0 ? b : block{0, rounded()};
}

void section::free(void* given) {
    HF_ASSERT_SLOW(running());
    const std::uint64_t offset = checked_offset(given, 0);
    if (blocks_.free_own(offset)) return;
    const block b = pool_->blocks.find(offset);
    if (offset == outside || b.bytes == 0 || blocks_.freed().covers(offset))
        fatal("%s (%s) frees %p, which is no allocated block of the pool: it was freed before, or "
              "is not the "
              "pointer that hf::make or hf_alloc gave",
              readable_name(function_->name), function_->where, given);
    protocol_->free(b);
    blocks_.free(b);
}

void section::publish_blocks() {
    if (!blocks_.change_heap()) return;
    before_in_place_store(); // upholds (2)
    blocks_.publish(pool_->blocks.durable(), *cache_,
                    [&](const void* word) { will_store(word, word_bytes); });
    stored_ = true;
}

/// The section's blocks have changed hands, durably; those it no longer needs wait for its mark
/// (commit_marks.hpp, 1).
void section::settle_blocks() {
    HF_ASSERT_SLOW(dirty_.empty());
    if (stored_) prepared_.forget_filled(); // they are in the log, or durable
    blocks_.settle(pool_->blocks.durable(), *cache_, marks_.freed());
}

void section::make_stores_durable() {
    if (!stored_) return;
    dirty_.flush_all(medium_);
    fence(); // the section's stores are durable before its mark
}

/// Requires: of few lines.
void section::leave_stores(std::size_t named) {
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

void section::leave_sums() {
    left_stores& left = marks_.left(epoch_);
    const auto base = reinterpret_cast<std::uintptr_t>(base_);
    for (const filled_bytes& f : prepared_.filled())
        left.add_filled(base + f.offset, base + f.offset + f.what.bytes);
}

void section::commit() {
    HF_ASSERT_SLOW(running());
    ++persist::thread_counters().sections;
    publish_blocks();
    make_stores_durable();
    settle_blocks();
    store_mark();
    end();
}

void section::end() {
    HF_ASSERT_SLOW(idle());
    if (turns_ != nullptr) [[unlikely]]
        turns_->unlock();
}

void section::end_unlogged() {
    HF_ASSERT_SLOW(!blocks_.change_heap() && blocks_.segments().empty());
    marks_.release(blocks_.unused());
    // The section whose mark is due may name these as staged.
    std::vector<block>& unadopted = blocks_.unadopted();
    std::vector<block>& freed = marks_.freed();
    if (marks_.due()) freed.insert(freed.end(), unadopted.begin(), unadopted.end());
    else marks_.release(unadopted);
    unadopted.clear();
    epoch_ = --marks_.state().epoch;
    end();
}

/// A pending section's, whose inputs are restored.
void section::take_up(protocol& by, const hf_txfunc& function, const pending_section& from) {
    HF_ASSERT(from.lane == marks_.lane());
    HF_ASSERT(from.sound);
    HF_ASSERT_SLOW(idle());
    HF_ASSERT_SLOW(from.begin.epoch <= marks_.state().epoch);
    protocol_ = &by;
    function_ = &function;
    epoch_ = from.begin.epoch; // the lane's next section stays above all that it may have used
    log_.go_on(medium_, from.end);
    if (!medium_.keeps_order() && is_ordered(marks_.header())) { // it may tear from here on
        medium_.store_word(&marks_.header().witness, lane_unordered);
        medium_.fence();
    }
    // Every offset is out of range from now on, and far_offset looks why: what is watched costs other sections nothing.
    range_bytes_ = 0;
    for (const record_view& r : from.records) {
        if (r.kind == record_kind::staged) prepared_.staged().push_back({{r.offset, r.bytes}});
        if (r.kind == record_kind::segment) blocks_.add_segment({r.offset, r.bytes});
        if (r.kind != record_kind::filled) continue;
        filled_payload what;
        std::memcpy(&what, r.payload, sizeof what);
        prepared_.add_logged(r.offset, what);
    }
    // Changes the chain (lane.hpp, 2): a record that an earlier run wrote past the end of the valid
    // log cannot pass for one of this run.
    append(record_kind::resumed, pool_->file->generation(), 0);
    HF_ASSERT_SLOW(running());
}

void section::store_mark() {
    marks_.store(epoch_);
    if (!medium_.keeps_order()) unfenced_ = false;
}

void section::leave() {
    HF_ASSERT_SLOW(turns_ != nullptr || idle());
    if (marks_.due()) unfenced_ = false;
    marks_.leave();
}

} // namespace hf

extern "C" void hf_log_ahead(const void* address, std::uint64_t bytes) noexcept {
    HF_ASSERT_SLOW(hf::current_section != nullptr);
    hf::without_exceptions("hf_log_ahead", [&] { hf::current_section->log_ahead(address, bytes); });
}
