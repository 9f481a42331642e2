// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <base/assert.hpp>
#include <base/line.hpp>
#include <persist/float_environment.hpp>
#include <section/registry.hpp>
#include <section/section.hpp>
#include <section/thread.hpp>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <span>
#include <unistd.h>

namespace hf {

constinit thread_local section* current_section = nullptr;

namespace {
constexpr std::size_t filled_max = 16; // sums in one section's log
}

namespace {

/// Bytes of the pool, a bit each: memory by the lines that they are in.
class logged_bytes {
public:
    void add(std::uint64_t offset, std::uint64_t bytes) {
        lines_.make_room(bytes / line_bytes + 2);
        each_line(offset, bytes, [&](std::uint64_t line, std::uint64_t mask) {
            lines_.at(line) |= mask;
            return true;
        });
    }
    /// True when all of these were added.
    bool all(std::uint64_t offset, std::uint64_t bytes) const noexcept {
        return each_line(offset, bytes, [&](std::uint64_t line, std::uint64_t mask) {
            const std::uint64_t* found = lines_.find(line);
            return found != nullptr && (*found & mask) == mask;
        });
    }

private:
    template <class Visit>
    static bool each_line(std::uint64_t offset, std::uint64_t bytes, Visit&& visit) {
        for (std::uint64_t at = offset, end = offset + bytes; at < end;) {
            const std::uint64_t next = std::min(end, round_down(at, line_bytes) + line_bytes);
            const std::uint64_t mask = ~std::uint64_t{0} >> (line_bytes - (next - at))
                                                                << at % line_bytes;
            if (!visit(at / line_bytes, mask)) return false;
            at = next;
        }
        return true;
    }
    offset_table lines_;
};

} // namespace

struct section::resumed_state {
    std::vector<record_view> allocs;    // to be handed out again, in order
    std::vector<record_view> preserved; // to be read again, in order
    std::size_t next_alloc = 0;
    std::size_t next_preserved = 0;
    block_set frees;                        // already in the log
    logged_bytes logged;                    // already in the log, as old_bytes
    logged_bytes held;                      // the same, and as overwritten
    logged_bytes reached;                   // lines that this run has stored to
    volatile std::uint64_t progress = 0;    // read by a signal handler of this thread
    std::uint64_t progress_seen = 0;        // by the handler
    void reach(std::uint64_t offset, std::uint64_t bytes);
    std::deque<translated_copy> translated; // logged bytes, made elsewhere
    bool in_place = false;                  // it has stored to memory that is not fresh
    volatile bool expired = false;          // written by a signal handler of this thread
    std::jmp_buf discard;
};

section::section(pool::impl& pool, std::uint32_t lane, thread_cache& cache, std::mutex* turns)
    : pool_(&pool), state_(&pool.lanes[lane]), header_(lane_at(*pool.file, lane)), cache_(&cache),
      turns_(turns), domain_(pool.file->domain()), base_(pool.file->base()),
      range_bytes_(pool.file->shape().max_bytes), lane_(lane), relocated_(pool.file->relocated()),
      keeps_(pool.keep_overwritten) {}

section::~section() = default;

void pool::impl::store_due_mark(std::uint32_t lane) noexcept {
    const std::uint64_t due = lanes[lane].mark_due.load(std::memory_order_acquire);
    if (due == 0) return;
    std::atomic_ref committed(lane_at(*file, lane)->committed);
    std::uint64_t seen = committed.load(std::memory_order_relaxed);
    while (seen < due && !committed.compare_exchange_weak(seen, due, std::memory_order_release)) {}
    persist::flush(file->domain(), lane_at(*file, lane), sizeof(lane_header));
    lanes[lane].settled.store(due, std::memory_order_release);
}

std::jmp_buf& section::discard_point() noexcept { return resumed_->discard; }

void section::expire() noexcept {
    if (resumed_ != nullptr) resumed_->expired = true;
}

bool section::progressed() noexcept {
    const bool any = resumed_->progress != resumed_->progress_seen;
    resumed_->progress_seen = resumed_->progress;
    return any;
}

void section::stop_if_expired() const noexcept {
    if (resumed_ != nullptr && resumed_->expired) fault_guard::expired();
}

void section::resumed_state::reach(std::uint64_t offset, std::uint64_t bytes) {
    const std::uint64_t first = round_down(offset, line_bytes);
    const std::uint64_t end = round_up(offset + bytes, line_bytes);
    if (reached.all(first, end - first)) return;
    reached.add(first, end - first);
    progress = progress + 1;
}

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
    // somebody's argument all the same.
    if (function.args_bytes > end && function.args_bytes - end < word_bytes)
        std::memset(args + end, 0, function.args_bytes - end);
}

/// Gives the pool's addresses among the arguments (null: none are logged) their canonical form.
void to_canonical(const pool_file& file, const hf_txfunc& function, std::byte* args) {
    if ((function.abi_version & HF_ABI_RELOCATABLE) == 0)
        fatal("%s: %s (%s) is not built relocatable, and the pool is not at its canonical address",
              file.path().c_str(), function.name, function.where);
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
    return persist::detail::hook.load(std::memory_order_relaxed) != nullptr;
#else
    return true;
#endif
}

} // namespace

/// Sums up what the section left of its inputs that it overwrote. Not of fresh memory: there may be
/// locks in it, which change between sections.
void section::remember_left() noexcept {
    for (left_bytes& l : left_) l.sum = XXH3_64bits(base_ + l.offset, l.bytes);
}

void section::check_left() const noexcept {
    if (!mark_due_) return;
    for (const left_bytes& l : left_) {
        if (l.sum == XXH3_64bits(base_ + l.offset, l.bytes)) continue;
        // Another thread's section has settled the mark before it stored.
        if (state_->settled.load(std::memory_order_acquire) >= epoch_) return;
        fatal("%s: a plain store between sections changed offset %#llx, an input that %s (%s) had "
              "overwritten: "
              "a power failure would take it back; call hf::settle first",
              pool_->file->path().c_str(), static_cast<unsigned long long>(l.offset),
              function_->name, function_->where);
    }
}

void section::check_filled() const noexcept {
    for (const filled_bytes& f : filled_)
        if (f.what.sum != XXH3_64bits(base_ + f.offset, f.what.bytes))
            fatal("%s: a plain store changed offset %#llx after hf::stage_words or stage_written: "
                  "a power failure would undo the section that follows; persist it before",
                  pool_->file->path().c_str(), static_cast<unsigned long long>(f.offset));
}

void section::begin(engine_bit engine, const hf_txfunc& function, const void* args,
                    std::uint64_t args_bytes) {
    if (args_bytes > args_bytes_max)
        fatal("%s (%s) takes %llu bytes of arguments, a section logs at most %llu: pass a pointer "
              "into the pool, or use hf::vlog_preserve",
              function.name, function.where, static_cast<unsigned long long>(args_bytes),
              static_cast<unsigned long long>(args_bytes_max));
    if (turns_ != nullptr) [[unlikely]]
        turns_->lock();
    // The section before stored nothing and so never fenced: its begin record must be durable
    // before the one before that, whose mark it stands for, is overwritten. Its own mark stays due.
    if (unfenced_ && mark_due_) persist::fence(domain_);
    if (!counted_) {
        counted_ = true;
        pool_->section_threads.fetch_add(1);
    }
    // This lane's own mark is superseded by the begin record about to be written. Another's has
    // been due since before its owner released its locks.
    const std::uint32_t lazy = pool_->lazy_lane.load(std::memory_order_acquire);
    if (lazy != pool::impl::no_lane && lazy != lane_) [[unlikely]]
        settle_mark_of(lazy);
    if (looks_closely()) [[unlikely]]
        check_left();
    if (!filled_.empty()) forget_durable();
    if (looks_closely()) [[unlikely]]
        check_filled();
    left_.clear();
    function_ = &function;
    engine_ = engine;
    stored_ = false;
    unkept_ = false;
    epoch_ = ++state_->epoch;
    log_.start(domain_, lane_start(*pool_->file, lane_, epoch_));
    const begin_payload head{epoch_,
                             function.id,
                             function.version,
                             static_cast<std::uint16_t>(engine),
                             persist::float_environment::current().bits(),
                             static_cast<std::uint32_t>(args_bytes)};
    alignas(8) std::byte together[sizeof head + args_bytes_max];
    const std::uint64_t bytes = sizeof head + args_bytes;
    std::memcpy(together, &head, sizeof head);
    if (args_bytes > 0) std::memcpy(together + sizeof head, args, args_bytes);
    if (args_bytes > 0) clear_gaps(function, together + sizeof head);
    if (relocated_) [[unlikely]]
        to_canonical(*pool_->file, function, args_bytes > 0 ? together + sizeof head : nullptr);
    // Of a section that is rolled back nobody will read the bytes.
    const std::size_t sums = engine == engine_clobber ? filled_.size() : 0;
    const std::uint64_t order = domain_ == domain::process ? in_order_bit : 0;
    append(record_kind::begin, (staged_.size() + sums) | order, bytes, together);
    append_staged(sums);
}

void section::append_staged(std::size_t sums) {
    const heap& blocks = pool_->blocks.durable();
    const std::span logged(filled_.data(), sums);
    const auto fills = [&](const filled_bytes& f, block b) {
        return f.offset == b.offset && blocks.rounded(f.what.bytes) == b.bytes;
    };
    for (block b : staged_)
        if (std::ranges::none_of(logged, [&](const filled_bytes& f) { return fills(f, b); }))
            append(record_kind::staged, b.offset, b.bytes);
    for (const filled_bytes& f : logged) {
        const bool whole = std::ranges::any_of(staged_, [&](block b) { return fills(f, b); });
        append(whole ? record_kind::made : record_kind::filled, f.offset, sizeof f.what, &f.what);
    }
}

void section::resume(const pending_section& from) {
    function_ = registry::find_txfunc(from.begin.function_id, from.begin.function_version);
    engine_ = static_cast<engine_bit>(from.begin.engine);
    epoch_ = from.begin.epoch; // the lane's next section stays above all that it may have used
    log_.go_on(domain_, from.end);
    unkept_ = !from.kept_known; // a section that cannot be rolled back any more keeps nothing
    if (domain_ != domain::process && is_ordered(*header_)) { // it may tear from here on
        persist::store_word(domain_, &header_->witness, lane_unordered);
        persist::fence(domain_);
    }
    resumed_ = std::make_unique<resumed_state>();
    // Every offset is out of range from now on, and far_offset looks why: what a re-execution has
    // to be asked costs other sections nothing.
    range_bytes_ = 0;
    for (const record_view& r : from.records) {
        if (r.kind == record_kind::alloc) resumed_->allocs.push_back(r);
        if (r.kind == record_kind::preserve) resumed_->preserved.push_back(r);
        if (r.kind == record_kind::free) resumed_->frees.add({r.offset, r.bytes});
        if (r.kind == record_kind::staged) staged_.push_back({r.offset, r.bytes});
        if (r.kind == record_kind::segment) segments_.push_back({r.offset, r.bytes});
        if (r.kind == record_kind::filled) {
            filled_.push_back({r.offset, {}, 0});
            std::memcpy(&filled_.back().what, r.payload, sizeof(filled_payload));
        }
        unkept_ = unkept_ || r.kind == record_kind::unkept;
        if (r.kind != record_kind::old_bytes && r.kind != record_kind::overwritten) continue;
        resumed_->held.add(r.offset, r.bytes);
        if (r.kind == record_kind::old_bytes) resumed_->logged.add(r.offset, r.bytes);
    }
    // Changes the chain (lane.hpp, 2): a record that an earlier run wrote past the end of the valid
    // log cannot pass for one of this run.
    append(record_kind::resumed, pool_->file->generation(), 0);
}

void section::append(record_kind kind, std::uint64_t offset, std::uint64_t bytes,
                     const void* payload) {
    const std::uint64_t payload_bytes = has_payload(kind) ? bytes : 0;
    if (!log_.fits(payload_bytes)) [[unlikely]]
        extend(payload_bytes);
    log_.append(kind, offset, bytes, payload, payload_bytes);
    unfenced_ = true;
}

/// Continues the log in a block of the heap. The block is only ever reserved: the log that lives in
/// it names it, so nothing leaks whenever a crash comes.
void section::extend(std::uint64_t payload_bytes) {
    if (extend_if_room(payload_bytes, purpose::log)) return;
    fault_guard::fatal_means(errc::pool_full);
    fatal("%s: no room for the log of %s (%s): the pool is full at %llu bytes; the next open rolls "
          "the section back, or completes it with a larger open_options::max_bytes",
          pool_->file->path().c_str(), function_->name, function_->where,
          static_cast<unsigned long long>(pool_->file->size_bytes()));
}

bool section::extend_if_room(std::uint64_t payload_bytes, purpose what) {
    const std::uint64_t wanted =
        std::max(segment_bytes_min(*pool_->file),
                 lane_writer::record_bytes(payload_bytes) + sizeof(record_head) + 2 * line_bytes);
    // What can fail comes before the block is taken.
    if (segments_.size() == segments_.capacity()) segments_.reserve(2 * segments_.size() + 4);
    const block b = pool_->blocks.reserve(*cache_, wanted, what);
    if (b.offset == 0) return false;
    segments_.push_back(b);
    log_.continue_in(base_ + b.offset, b.offset, b.bytes);
    return true;
}

/// Makes another lane's mark durable before anything of this section can be: with both pending,
/// recovery would take them for independent (4). Not again for a mark that it has fenced before.
void section::settle_mark_of(std::uint32_t lane) noexcept {
    const std::uint64_t due = pool_->lanes[lane].mark_due.load(std::memory_order_acquire);
    if (due == 0 || (lane == settled_lane_ && due == settled_due_)) return;
    pool_->store_due_mark(lane);
    persist::fence(domain_); // upholds (4)
    settled_lane_ = lane;
    settled_due_ = due;
}

void section::fence() {
    persist::fence(domain_);
    unfenced_ = false;
    if (!mark_due_) return;
    // Made durable: the mark itself (settle_mark), or the begin record that stands for it.
    mark_due_ = false;
    state_->mark_due.store(0, std::memory_order_relaxed);
    release_freed();
}

inline void section::before_in_place_store() {
    if (unfenced_) fence(); // upholds (1)
}

bool section::fresh(std::uint64_t offset) const noexcept { return allocs_.covers(offset); }

inline bool section::in_filled(std::uint64_t offset, std::uint64_t bytes) const noexcept {
    for (const filled_bytes& f : filled_)
        if (offset < f.offset + f.what.bytes && f.offset < offset + bytes) return true;
    return false;
}

void section::note_filled(const void* to, std::uint64_t bytes, std::uint64_t sum) {
    if (filled_.size() == filled_max) { // durable, they need no sum
        persist::fence(domain_);
        filled_.clear();
    }
    const auto offset = static_cast<std::uint64_t>(static_cast<const std::byte*>(to) - base_);
    // Bytes filled in twice have the sum of neither: the first ones wait for no fence any more.
    if (in_filled(offset, bytes)) {
        persist::fence(domain_);
        filled_.clear();
    }
    filled_.push_back({offset, {bytes, sum}, persist::thread_counters().fences});
}

/// A fence of this thread since then (hf::stage_persist, hf::persist …) has made them durable, and
/// whatever was stored there before it.
void section::forget_durable() {
    std::erase_if(filled_, [now = persist::thread_counters().fences](const filled_bytes& f) {
        return f.fences != now;
    });
}

void section::forget_filled(block inside) noexcept {
    std::erase_if(filled_,
                  [&](const filled_bytes& f) { return f.offset - inside.offset < inside.bytes; });
}

/// Offset of a store's target; 'outside' when it is volatile memory.
inline std::uint64_t section::checked_offset(const void* address, std::uint64_t bytes) const {
    const auto offset = static_cast<std::uint64_t>(static_cast<const std::byte*>(address) - base_);
    return offset < range_bytes_ ? offset : far_offset(address, offset, bytes);
}

/// The rest of checked_offset: what is not the pool's, and everything in a re-execution.
std::uint64_t section::far_offset(const void* address, std::uint64_t offset,
                                  std::uint64_t bytes) const {
    stop_if_expired();
    if (offset >= pool_->file->shape().max_bytes) {
        if (registry::pool_of(address) != nullptr)
            fatal("%s (%s) stores %llu bytes to another pool: a section works on one pool",
                  function_->name, function_->where, static_cast<unsigned long long>(bytes));
        return outside;
    }
    // A damaged pointer must not lead to headers, lanes or the allocator's tables.
    if (!pool_->blocks.durable().covers(offset, bytes))
        fatal("%s (%s) stores %llu bytes at offset %#llx, where no block is", function_->name,
              function_->where, static_cast<unsigned long long>(bytes),
              static_cast<unsigned long long>(offset));
    if (resumed_ == nullptr || bytes == 0) return offset;
    resumed_->reach(offset, bytes);
    if (!fresh(offset)) resumed_->in_place = true;
    return offset;
}

inline void section::will_store(const void* address, std::uint64_t bytes) {
    stored_ = true;
    persist::thread_counters().pm_bytes += bytes;
    persist::trace(persist::event::store, address, bytes);
    if (domain_ == domain::adr) dirty_.add(address, bytes);
}

void section::note_store(const void* address, std::uint64_t bytes) {
    const std::uint64_t offset = checked_offset(address, bytes);
    if (offset == outside || bytes == 0) return;
    if (in_filled(offset, bytes)) [[unlikely]] // upholds (5)
        return log_old_bytes(address, bytes);
    if (!fresh(offset)) {
        if (engine_ == engine_clobber) keep_overwritten(address, offset, bytes); // upholds (7)
        if (unfenced_ && domain_ != domain::process) fence();                    // upholds (1)
    }
    will_store(address, bytes);
}

void section::keep_overwritten(const void* address, std::uint64_t offset, std::uint64_t bytes) {
    if (!keeps_ || unkept_ || already_kept(offset, bytes)) return;
    if (bytes > pool_->file->shape().max_bytes - offset)
        fatal("%s (%s) stores %llu bytes across the end of the pool", function_->name,
              function_->where, static_cast<unsigned long long>(bytes));
    if (log_.fits_kept(bytes)) return log_.keep(offset, bytes, address); // nothing waits for it
    if (extend_if_room(bytes, purpose::data)) {
        log_.keep(offset, bytes, address);
        unfenced_ = true; // the segment's record: what is kept in it is not found without
    } else {
        append(record_kind::unkept, offset, bytes);
        unkept_ = true;
    }
}

bool section::already_kept(std::uint64_t offset, std::uint64_t bytes) {
    if (resumed_ != nullptr) [[unlikely]]
        if (resumed_->held.all(offset, bytes)) return true;
    if (bytes > logged_words::bytes_max)
        return overwritten_long_.seen_or_add(epoch_, offset, bytes);
    return logged_.seen(epoch_, offset, bytes) ||
           overwritten_.seen_or_add(epoch_, offset, bytes);
}

void section::log_old_bytes(const void* address, std::uint64_t bytes) {
    const std::uint64_t offset = checked_offset(address, bytes);
    if (offset == outside || bytes == 0) return;
    if (!fresh(offset)) {
        if (!already_logged(offset, bytes)) {
            if (bytes > pool_->file->shape().max_bytes - offset)
                fatal("%s (%s) stores %llu bytes across the end of the pool", function_->name,
                      function_->where, static_cast<unsigned long long>(bytes));
            if (looks_closely()) [[unlikely]]
                left_.push_back({offset, bytes, 0});
            append(record_kind::old_bytes, offset, bytes, address);
        }
        before_in_place_store();
    }
    will_store(address, bytes);
}

bool section::already_logged(std::uint64_t offset, std::uint64_t bytes) {
    if (resumed_ != nullptr && resumed_->logged.all(offset, bytes)) return true;
    return logged_.seen_or_add(epoch_, offset, bytes);
}

void* section::alloc(std::uint64_t bytes) {
    stop_if_expired();
    if (resumed_ != nullptr) resumed_->progress = resumed_->progress + 1;
    if (resumed_ != nullptr && resumed_->next_alloc < resumed_->allocs.size()) {
        const record_view& again = resumed_->allocs[resumed_->next_alloc++];
        if (again.bytes != pool_->blocks.durable().rounded(std::max<std::uint64_t>(bytes, 1)))
            fatal("%s (%s) diverged when it was re-executed: it allocated %llu bytes, now it asks "
                  "for %llu",
                  function_->name, function_->where, static_cast<unsigned long long>(again.bytes),
                  static_cast<unsigned long long>(bytes));
        if (again.offset == 0) return nullptr;
        allocs_.add({again.offset, again.bytes});
        return base_ + again.offset;
    }
    block b{0, 0};
    try {
        allocs_.make_room();
        b = pool_->blocks.reserve(*cache_, bytes);
    } catch (const std::bad_alloc&) { // no memory to keep account of it: no room
    }
    if (b.offset == 0) {
        // That there was no room is an input of the section as well.
        append(record_kind::alloc, 0,
               pool_->blocks.durable().rounded(std::max<std::uint64_t>(bytes, 1)));
        return nullptr;
    }
    append(record_kind::alloc, b.offset, b.bytes);
    allocs_.add(b);
    return base_ + b.offset;
}

void section::free(void* given) {
    const std::uint64_t offset = checked_offset(given, 0);
    const auto at_offset = [&](block b) { return b.offset == offset; };
    // A block of this section's own: it never becomes allocated.
    if (const block own = allocs_.remove(offset); own.bytes != 0) {
        unused_.push_back(own);
        return;
    }
    if (const auto own = std::ranges::find_if(adopted_, at_offset); own != adopted_.end()) {
        unused_.push_back(*own);
        adopted_.erase(own);
        return;
    }
    const block b = pool_->blocks.find(offset);
    if (offset == outside || b.bytes == 0 || frees_.covers(offset))
        fatal("%s (%s) frees %p, which is no allocated block of the pool", function_->name,
              function_->where, given);
    if (resumed_ == nullptr || !resumed_->frees.covers(offset))
        append(record_kind::free, b.offset, b.bytes);
    frees_.add(b);
}

void section::adopt(void* staged_block) {
    const std::uint64_t offset = checked_offset(staged_block, 0);
    const auto found = std::ranges::find_if(staged_, [&](block b) { return b.offset == offset; });
    if (found == staged_.end())
        fatal("%s (%s) adopts %p, which this thread did not stage", function_->name,
              function_->where, staged_block);
    adopted_.push_back(*found);
    staged_.erase(found);
}

const void* section::preserve(const void* volatile_bytes, std::uint64_t bytes) {
    if (engine_ != engine_clobber) return keep(volatile_bytes, bytes); // never re-executed
    stop_if_expired();
    if (relocated_) hf_relocated_raw_load(volatile_bytes, bytes, function_->where);
    if (resumed_ == nullptr) {
        if (stored_)
            fatal("%s (%s) calls vlog_preserve after a store to PM", function_->name,
                  function_->where);
        append(record_kind::preserve, 0, bytes, volatile_bytes);
        // The section may change the original (a local, bytes of the pool): a re-execution reads
        // what was recorded, and so does the first run.
        return keep(volatile_bytes, bytes);
    }
    // The log ended before the inputs did: then nothing was stored in place (1), and the section is
    // discarded as if it had never begun.
    if (resumed_->next_preserved == resumed_->preserved.size()) std::longjmp(resumed_->discard, 1);
    const record_view& r = resumed_->preserved[resumed_->next_preserved++];
    resumed_->progress = resumed_->progress + 1;
    if (r.bytes != bytes)
        fatal("%s (%s) diverged when it was re-executed: it preserved %llu bytes, now %llu",
              function_->name, function_->where, static_cast<unsigned long long>(r.bytes),
              static_cast<unsigned long long>(bytes));
    return as_read(r.payload, bytes);
}

const void* section::as_read(const void* logged, std::uint64_t bytes) {
    if (pool_->file->logged_base() != reinterpret_cast<std::uint64_t>(base_))
        return resumed_->translated.emplace_back(logged, bytes, pool_->file->logged_forms()).data();
    return keep(logged, bytes);
}

const void* section::keep(const void* bytes, std::uint64_t count) {
    std::byte* copy = keep_here_ + keep_here_used_;
    if (count <= sizeof keep_here_ - keep_here_used_)
        keep_here_used_ += round_up(count, alignof(std::max_align_t));
    else copy = kept_.emplace_back(std::make_unique_for_overwrite<std::byte[]>(count)).get();
    if (count > 0) std::memcpy(copy, bytes, count);
    return copy;
}

void section::publish_blocks() {
    if (allocs_.empty() && adopted_.empty() && frees_.empty()) return;
    before_in_place_store(); // upholds (2)
    const auto dirty = [&](const void* word) { will_store(word, word_bytes); };
    heap& durable = pool_->blocks.durable();
    const auto publish = [&](block b) {
        if (!cache_->named(durable, b)) durable.name_chunk(b, dirty);
        durable.set_bit(b, dirty);
    };
    std::ranges::for_each(allocs_, publish);
    std::ranges::for_each(adopted_, publish);
    for (block b : frees_) durable.retract(b, dirty);
    stored_ = true;
}

/// The section's blocks have changed hands, durably; those it no longer needs wait for its mark
/// (3).
void section::settle_blocks() {
    const auto note_named = [&](block b) { cache_->note_named(pool_->blocks.durable(), b); };
    std::ranges::for_each(allocs_, note_named);
    std::ranges::for_each(adopted_, note_named);
    const auto give_back = [&](auto& done) {
        freed_.insert(freed_.end(), done.begin(), done.end());
        done.clear();
    };
    give_back(frees_);
    give_back(unused_);
    give_back(segments_);
    allocs_.clear();
    adopted_.clear();
}

void section::commit(bool eager_mark) {
    publish_blocks();
    if (stored_) {
        dirty_.flush_all(domain_);
        fence(); // the section's stores are durable before its mark
        filled_.clear();
    }
    settle_blocks();
    ++persist::thread_counters().sections;
    const bool alone = pool_->section_threads.load(std::memory_order_acquire) == 1;
    // Whoever has the next turn on a shared lane writes over the log.
    const bool may_wait = alone && !eager_mark && turns_ == nullptr;
    if (domain_ != domain::process && may_wait && may_be_lazy()) {
        // Stores, and no locked operation: the next section's first loads need not wait for the
        // fence above.
        mark_due_ = true;
        remember_left();
        // Not flushed: when the process alone dies, this tells a finished section from one that
        // may be rolled back.
        std::atomic_ref(header_->committed).store(epoch_, std::memory_order_release);
        persist::trace(persist::event::store, &header_->committed, word_bytes);
        state_->mark_due.store(epoch_, std::memory_order_release);
    } else {
        store_mark(domain_, header_, epoch_);
        if (domain_ != domain::process) fence(); // upholds (3), and (4) by not using it
        release_freed();
        no_longer_lazy();
    }
    if (turns_ != nullptr) [[unlikely]]
        turns_->unlock();
}

/// Makes this lane the one whose marks may be left out, unless another is.
bool section::may_be_lazy() noexcept {
    std::uint32_t lazy = pool_->lazy_lane.load(std::memory_order_relaxed);
    return lazy == lane_ ||
           (lazy == pool::impl::no_lane && pool_->lazy_lane.compare_exchange_strong(lazy, lane_));
}

/// Requires: no mark of this lane is due.
void section::no_longer_lazy() noexcept {
    if (pool_->lazy_lane.load(std::memory_order_relaxed) == lane_)
        pool_->lazy_lane.store(pool::impl::no_lane, std::memory_order_release);
}

void section::discard() {
    HF_ASSERT(dirty_.empty() && frees_.empty());
    filled_.clear();
    unused_.insert(unused_.end(), allocs_.begin(), allocs_.end());
    unused_.insert(unused_.end(), adopted_.begin(), adopted_.end());
    for (; resumed_->next_alloc < resumed_->allocs.size(); ++resumed_->next_alloc)
        if (const record_view& r = resumed_->allocs[resumed_->next_alloc]; r.offset != 0)
            unused_.push_back({r.offset, r.bytes});
    settle_blocks();
    store_mark(domain_, header_, epoch_);
    fence();
    release_freed();
}

void section::give_up() {
    // As deterministic as the section itself: had its first run stored in place before it came
    // here, so would this one.
    if (resumed_ == nullptr || resumed_->in_place) return;
    frees_.clear(); // would have taken effect at commit
    dirty_.flush_all(domain_);
    std::longjmp(resumed_->discard, 1);
}

void section::release_freed() {
    for (block b : freed_) pool_->blocks.release(*cache_, b);
    freed_.clear();
}

void section::settle_mark() {
    if (!mark_due_) return;
    pool_->store_due_mark(lane_);
    fence();
}

std::unique_lock<std::mutex> section::at_once(block b) {
    std::unique_lock<std::mutex> turn;
    if (turns_ != nullptr) turn = std::unique_lock(*turns_);
    if (domain_ == hf::domain::adr)
        std::atomic_ref(header_->at_once).store(b.offset, std::memory_order_release);
    return turn;
}

void section::leave() {
    settle_mark();
    no_longer_lazy();
    if (counted_) pool_->section_threads.fetch_sub(1);
    counted_ = false;
}

int begin_section(engine_bit engine, const hf_txfunc& function, const void* args,
                  std::uint64_t args_bytes) {
    if (section* open = current_section) {
        if (open->engine() != engine)
            fatal("%s (%s) is built for another engine than the section it is called in",
                  function.name, function.where);
        return 0;
    }
    current_section = &section_for(function, args);
    pool::impl& pool = current_section->pool();
    if ((pool.engine_bits & engine) == 0)
        fatal("%s: %s (%s) runs on an engine that the pool was not opened with%s",
              pool.file->path().c_str(), function.name, function.where,
              pool.file->read_only() ? ": it is open read-only" : "");
    current_section->begin(engine, function, args, args_bytes);
    return 1;
}

} // namespace hf

extern "C" {

void hf_note_store(const void* address, std::uint64_t bytes) noexcept {
    if (hf::section* s = hf::current_section)
        hf::without_exceptions("hf_note_store", [&] { s->note_store(address, bytes); });
}

const void* hf_vlog_preserve(const void* volatile_bytes, std::size_t bytes) noexcept {
    hf::section* s = hf::current_section;
    if (s == nullptr) return volatile_bytes;
    return hf::without_exceptions("hf_vlog_preserve",
                                  [&] { return s->preserve(volatile_bytes, bytes); });
}

void hf_adopt(void* staged_block) noexcept {
    hf::without_exceptions("hf_adopt", [&] {
        if (hf::section* s = hf::current_section) s->adopt(staged_block);
        else hf::adopt_at_once(staged_block);
    });
}

void* hf_alloc(std::size_t bytes) noexcept {
    hf::section* s = hf::current_section;
    return hf::without_exceptions(
        "hf_alloc", [&] { return s == nullptr ? hf::alloc_at_once(bytes) : s->alloc(bytes); });
}

void hf_free(void* block) noexcept {
    if (block == nullptr) return;
    hf::without_exceptions("hf_free", [&] {
        if (hf::section* s = hf::current_section) s->free(block);
        else hf::free_at_once(block);
    });
}

void hf_crash_point(const char* name) noexcept {
    static const char* const armed = std::getenv("HOLDFAST_CRASH_AT");
    if (armed != nullptr && std::strcmp(armed, name) == 0) ::kill(::getpid(), SIGKILL);
}

} // extern "C"
