// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <base/assert.hpp>
#include <base/line.hpp>
#include <base/names.hpp>
#include <base/words.hpp>
#include <open/registry.hpp>
#include <persist/float_environment.hpp>
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
      range_bytes_(pool.file->shape().max_bytes), relocated_(pool.file->relocated()) {
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

void section::begin(const engine_row& engine, const hf_txfunc& function, const void* args,
                    std::uint64_t args_bytes) {
    if (args_bytes > args_bytes_max)
        fatal("%s (%s) takes %llu bytes of arguments, a section logs at most %llu: pass a pointer "
              "into the pool, or use hf::vlog_preserve",
              readable_name(function.name), function.where,
              static_cast<unsigned long long>(args_bytes),
              static_cast<unsigned long long>(args_bytes_max));
    if (turns_ != nullptr) [[unlikely]]
        turns_->lock();
    HF_ASSERT_SLOW(idle());
    HF_ASSERT_SLOW((args != nullptr || args_bytes == 0));
    const bool buffered = engine.sections == engine_sections::buffered;
    const bool where_left = begins_where_left(engine);
    // The section before stored nothing and so never fenced: its begin record must be durable
    // before the one before that, whose mark it stands for, is overwritten. Its own mark stays due.
    if (unfenced_ && marks_.due()) medium_.fence();
    marks_.settle_others(!buffered); // what it will store is not known yet
    if (looks_closely()) [[unlikely]]
        check_left();
    if (!prepared_.filled().empty()) prepared_.forget_durable();
    if (looks_closely()) [[unlikely]]
        prepared_.check(*pool_->file);
    copies_.clear();
    function_ = &function;
    engine_ = &engine;
    stored_ = false;
    refilled_ = false;
    log_begun_ = false;
    doomed_ = doomed_by::nothing;
    keeping_ = pool_->keep_overwritten && engine.sections == engine_sections::inputs;
    epoch_ = ++marks_.state().epoch;
    summing_ = engine.sections == engine_sections::writes && pool_->leaves_stores &&
               medium_.loses_caches() &&
               pool_->file->mode() != mode::power && // a kill loses that log's end
               !relocated_ && turns_ == nullptr && prepared_.staged().empty();
    left_.start(summing_ || looks_closely());
    if (where_left) start_log(&left_log_, sizeof left_log_);
    else if (!buffered) start_log(args, args_bytes);
    HF_ASSERT_SLOW(running());
}

/// Whether the section before has left its stores to the one that begins (11), which starts their write-back. What
/// is left to the next log of an engine is left to no other's.
bool section::begins_where_left(const engine_row& next) {
    if (!marks_.stores_left()) return false;
    if (engine_->bit != next.bit) return settle_mark(), false;
    if (next.sections == engine_sections::buffered) return false; // its commit does (9)
    static_cast<void>(marks_.left(epoch_).flush(medium_));
    return true;
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

void section::start_log(const void* args, std::uint64_t args_bytes) {
    const hf_txfunc& function = *function_;
    log_.start(medium_, lane_start(*pool_->file, marks_.lane(), epoch_));
    // Looked at where the function may run again: it takes as long as a small log record.
    const std::uint16_t floats = engine_->verb == recovery_verb::re_execute
                                     ? persist::float_environment::current().bits()
                                     : std::uint16_t{0};
    const begin_payload head{epoch_,           function.id,
                             function.version, static_cast<std::uint16_t>(engine_->bit),
                             floats,           static_cast<std::uint32_t>(args_bytes)};
    alignas(8) std::byte together[sizeof head + args_bytes_max];
    const std::uint64_t bytes = sizeof head + args_bytes;
    store_begin(together, head);
    if (args_bytes > 0) std::memcpy(together + sizeof head, args, args_bytes);
    if (args_bytes > 0 && args != &left_log_) clear_gaps(function, together + sizeof head);
    if (relocated_) [[unlikely]]
        to_canonical(*pool_->file, function, args_bytes > 0 ? together + sizeof head : nullptr);
    // Of a section that will be rolled back recovery reads no filled bytes.
    const std::size_t sums =
        engine_->verb != recovery_verb::roll_back ? prepared_.filled().size() : 0;
    const std::size_t announced = buffered() ? 0 : prepared_.staged().size() + sums;
    const std::uint64_t order = medium_.keeps_order() ? in_order_bit : 0;
    append(record_kind::begin, announced | order, bytes, together);
    if (!buffered()) append_staged(sums);
    log_begun_ = true;
}

void section::append_staged(std::size_t sums) {
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
    if (engine_->sections == engine_sections::buffered) return doom(doomed_by::no_room), false;
    no_room_for_log("the next open rolls the section back, or completes it where there is room");
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

inline void section::before_in_place_store() {
    if (unfenced_) fence(); // upholds (1)
}

bool section::fresh(std::uint64_t offset) const noexcept { return blocks_.taken().covers(offset); }

/// The rest of checked_offset: what is not the pool's, and everything in a re-execution.
std::uint64_t section::far_offset(const void* address, std::uint64_t offset,
                                  std::uint64_t bytes) const {
    if (first_ != nullptr) first_->entered();
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
    if (first_ != nullptr && bytes > 0) first_->stores(offset, bytes, fresh(offset));
    return offset;
}

void section::note_store(const void* address, std::uint64_t bytes) {
    HF_ASSERT_SLOW(running());
    const std::uint64_t offset = checked_offset(address, bytes);
    if (offset == outside || bytes == 0) return;
    if (prepared_.in_filled(offset, bytes)) [[unlikely]] // upholds (5)
        return log_old_bytes(address, bytes);
    if (!fresh(offset)) {
        if (keeping_) keep_overwritten(address, offset, bytes); // upholds (7)
        if (unfenced_ && !medium_.keeps_order()) fence();       // upholds (1)
    } else if (buffered()) {
        return store_to_own(address, bytes);
    }
    will_store(address, bytes);
}

void section::keep_overwritten(const void* address, std::uint64_t offset, std::uint64_t bytes) {
    if (already_kept(offset, bytes)) return;
    if (bytes > pool_->file->shape().max_bytes - offset)
        fatal("%s (%s) stores %llu bytes across the end of the pool: an index or a length is wrong",
              readable_name(function_->name), function_->where,
              static_cast<unsigned long long>(bytes));
    if (log_.fits_kept(bytes)) return log_.keep(offset, bytes, address); // nothing waits for it
    if (extend_if_room(bytes, purpose::data)) {
        log_.keep(offset, bytes, address);
        unfenced_ = true; // the segment's record: what is kept in it is not found without
    } else {
        append(record_kind::unkept, offset, bytes);
        keeping_ = false;
    }
}

bool section::already_kept(std::uint64_t offset, std::uint64_t bytes) {
    if (first_ != nullptr && first_->kept(offset, bytes)) [[unlikely]]
        return true;
    if (logged_.seen(epoch_, offset, bytes)) return true;
    if (bytes > logged_words::bytes_max)
        return overwritten_long_.seen_or_add(epoch_, offset, bytes);
    return overwritten_.seen_or_add(epoch_, offset, bytes);
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
    if (offset >= range_bytes_ &&
        (first_ == nullptr || !pool_->blocks.durable().covers(offset, bytes)))
        return;
    if (bytes != 0 && !fresh(offset)) append_old_bytes(address, offset, bytes);
}

void section::append_old_bytes(const void* address, std::uint64_t offset, std::uint64_t bytes) {
    if (already_logged(offset, bytes)) return;
    if (bytes > pool_->file->shape().max_bytes - offset)
        fatal("%s (%s) stores %llu bytes across the end of the pool: an index or a length is wrong",
              readable_name(function_->name), function_->where,
              static_cast<unsigned long long>(bytes));
    left_.add(offset, bytes);
    append(record_kind::old_bytes, offset, bytes, address);
}

bool section::already_logged(std::uint64_t offset, std::uint64_t bytes) {
    if (first_ != nullptr && first_->logged(offset, bytes)) return true;
    return logged_.seen_or_add(epoch_, offset, bytes);
}

void* section::alloc(std::uint64_t bytes) {
    HF_ASSERT_SLOW(running());
    const std::uint64_t rounded =
        pool_->blocks.durable().rounded(std::max<std::uint64_t>(bytes, 1));
    if (first_ != nullptr) {
        first_->entered();
        if (const std::optional<block> again = first_->next_block(rounded)) {
            if (again->offset == 0) return nullptr;
            HF_ASSERT_SLOW(pool_->blocks.durable().well_formed(*again)); // its record is checked
            blocks_.take(*again);
            return base_ + again->offset;
        }
    }
    block b{0, 0};
    try {
        blocks_.make_room();
        b = pool_->blocks.reserve(*cache_, bytes);
    } catch (const std::bad_alloc&) { // no memory to keep account of it: no room
    }
    if (buffered()) { // its log says so at the commit
        if (b.offset == 0 && marks_.holds_blocks()) {
            settle_mark();
            b = pool_->blocks.reserve(*cache_, bytes);
        }
        if (b.offset == 0) return nullptr;
        blocks_.take(b);
        return base_ + b.offset;
    }
    if (b.offset == 0) {
        // That there was no room is an input of the section as well.
        append(record_kind::alloc, 0, rounded);
        return nullptr;
    }
    HF_ASSERT_SLOW(b.bytes == rounded); // what a re-execution will ask for
    if (summing_) left_.add(b.offset, b.bytes);
    append(record_kind::alloc, b.offset, b.bytes);
    blocks_.take(b);
    return base_ + b.offset;
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
    const bool logged = buffered() || (first_ != nullptr && first_->freed(offset));
    if (!logged) append(record_kind::free, b.offset, b.bytes);
    blocks_.free(b);
}

const void* section::preserve(const void* volatile_bytes, std::uint64_t bytes) {
    HF_ASSERT_SLOW(running());
    if (engine_->verb != recovery_verb::re_execute) return copies_.keep(volatile_bytes, bytes);
    if (first_ != nullptr) first_->entered();
    if (relocated_) hf_relocated_raw_load(volatile_bytes, bytes, function_->where);
    if (first_ != nullptr) return first_->next_preserved(bytes);
    if (stored_)
        fatal("%s (%s) calls vlog_preserve after a store to PM: preserve first, store afterwards",
              readable_name(function_->name), function_->where);
    append(record_kind::preserve, 0, bytes, volatile_bytes);
    // The section may change the original (a local, bytes of the pool): a re-execution reads what
    // was recorded, and so does the first run.
    return copies_.keep(volatile_bytes, bytes);
}

void section::publish_blocks() {
    if (!blocks_.change_heap()) return;
    before_in_place_store(); // upholds (2)
    blocks_.publish(pool_->blocks.durable(), *cache_,
                    [&](const void* word) { will_store(word, word_bytes); });
    stored_ = true;
}

/// The section's blocks have changed hands, durably; those it no longer needs wait for its mark
/// (3).
void section::settle_blocks() {
    HF_ASSERT_SLOW(dirty_.empty());
    blocks_.settle(pool_->blocks.durable(), *cache_, marks_.freed());
}

void section::commit(bool eager_mark) {
    HF_ASSERT_SLOW(running());
    ++persist::thread_counters().sections;
    if (!log_begun_) return end_unlogged();
    // What the section before has left is durable before this one's mark, or its log, can be (11).
    if (!buffered() && marks_.stores_left()) fence();
    const std::size_t deferred = dirty_.lines().size();
    publish_blocks();
    // The thread that has the next turn on a shared lane writes over the log.
    const bool may_wait = !eager_mark && turns_ == nullptr && !medium_.keeps_order();
    const bool lazy = summing_
                          ? may_leave_to_next()
                          : may_wait && (buffered() ? may_leave_stores() : marks_.may_leave_out());
    const bool stores_left = lazy && (buffered() || summing_);
    if (stores_left) leave_stores(deferred);
    else if (lazy) {
        marks_.left(epoch_).start({}, 0);
        leave_sums();
    }
    const auto& lazy_lines = marks_.state().lazy_lines;
    if (lazy_lines != nullptr && lazy_lines->listed() > lazy_lines_max)
        lazy_lines->flush_all(medium_); // under a fence that comes anyway
    if (stored_ && !stores_left) {
        dirty_.flush_all(medium_);
        fence(); // the section's stores are durable before its mark
    }
    if (stored_) prepared_.forget_filled();
    settle_blocks();
    if (lazy) {
        const std::uint64_t sum = left_.sum_up(epoch_, base_);
        // Not flushed: when the process alone dies, this tells a finished section from one that
        // may be rolled back. It may become durable all the same: not before the section is; or, of one
        // that has left its stores, to no harm (11).
        if (summing_) {
            left_log_ = {log_.chain(), sum};
            std::atomic_ref(marks_.header().returned).store(sum, std::memory_order_release);
            trace::announce(trace::store, &marks_.header().returned, word_bytes);
        } else if (!buffered()) {
            marks_.store_unflushed(epoch_);
        }
        marks_.leave_out(epoch_, stores_left);
    } else {
        store_mark();
    }
    HF_ASSERT_SLOW(idle());
    if (turns_ != nullptr) [[unlikely]]
        turns_->unlock();
}

/// The section's mark is durable when it returns, and nothing of it waits for that any more.
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

// Here, so that they are inlined: they are called for every store.
extern "C" void hf_note_store(const void* address, std::uint64_t bytes) noexcept {
    if (hf::section* s = hf::current_section)
        hf::without_exceptions("hf_note_store", [&] { s->note_store(address, bytes); });
}

extern "C" void hf_log_ahead(const void* address, std::uint64_t bytes) noexcept {
    HF_ASSERT_SLOW(hf::current_section != nullptr);
    hf::without_exceptions("hf_log_ahead", [&] { hf::current_section->log_ahead(address, bytes); });
}
