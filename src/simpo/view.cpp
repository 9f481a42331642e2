// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <pool/file_checks.hpp>
#include <simpo/functions.hpp>
#include <simpo/objects.hpp>
#include <simpo/view.hpp>

#include <fmt/format.h>

#include <atomic>
#include <cstring>
#include <new>
#include <sched.h>

namespace hf::simpo {

namespace view_steps {
void (*taken)(step) = nullptr;
}

namespace {

constexpr unsigned overtaken_max = 1000; // attempts
constexpr unsigned damaged_max = 8; // looks at a table with what cannot be: blocks may change hands

std::uint64_t load(const std::uint64_t& word) noexcept {
    return std::atomic_ref(const_cast<std::uint64_t&>(word)).load(std::memory_order_acquire);
}
/// Behind it no byte of 'from' is read again, and later reads come after it.
void take(void* to, const void* from, std::uint64_t bytes) noexcept {
    std::memcpy(to, from, bytes);
    std::atomic_thread_fence(std::memory_order_acquire);
}
void pass(view_steps::step at) {
    if (view_steps::taken != nullptr) view_steps::taken(at);
}

} // namespace

namespace detail {

void seen::free_lines::operator()(std::byte* memory) const noexcept {
    ::operator delete(memory, std::align_val_t{line_bytes});
}

seen::seen(pool::impl& in, std::string_view name, const class_shape& what)
    : in_(&in), name_(name), what_(what), end_(in.file->size_bytes()) {}

const std::byte* seen::block(const place& at) const noexcept {
    return in_->file->base() + at.offset;
}

/// Whether that lies in the pool, and all of it is mapped. Throws std::bad_alloc.
bool seen::covers(std::uint64_t offset, std::uint64_t bytes) {
    pool_file& file = *in_->file;
    const std::uint64_t max = file.shape().max_bytes;
    if (bytes > max || offset > max - bytes) return false;
    if (offset + bytes <= end_) return true;
    if (!file.reads_beside()) return false;
    header_bytes_read read; // it has grown
    if (!read_copies(*file.own_file(), read).ok()) return false;
    const auto present = file.own_file()->size_bytes();
    if (!present) return false;
    read.file_bytes = *present;
    const auto now = choose_header(file.path(), read);
    if (!now || !check_header(file.path(), now->header, *present).ok()) return false;
    if (!file.cover_growth()) throw std::bad_alloc(); // no addresses (ulimit -v)
    const extent& last = now->header.extents[now->header.extent_count - 1];
    end_ = last.offset_bytes + last.size_bytes;
    return offset + bytes <= end_;
}

/// The fault of the object that the word names; null: no fault.
const char* seen::read_head(place& at) {
    if (at.offset % line_bytes != 0 || !covers(at.offset, sizeof at.head))
        return "expected it in the pool, found it elsewhere";
    take(&at.head, block(at), sizeof at.head);
    if (const char* const wrong = wrong_in(at.head)) return wrong;
    if (!covers(at.offset, block_bytes_of(at.head)))
        return "expected it to end in the pool, found its end behind";
    return nullptr;
}

/// Upholds (4).
bool seen::is_there(const place& at) const noexcept {
    const auto& head = *reinterpret_cast<const object_head*>(block(at));
    return load(*at.word) == at.offset && load(head.magic) == at.head.magic &&
           load(head.salt) == at.head.salt && load(head.since) == at.head.since;
}

result<bool> seen::find(place& at) {
    if (now_ != nullptr && is_there(at_)) {
        at = at_;
        return true;
    }
    result<bool> found = search(at);
    for (unsigned looks = 1; looks < damaged_max; ++looks) {
        if (found || found.error().code() != errc::corrupt) break;
        found = search(at);
    }
    return found;
}

result<bool> seen::search(place& at) {
    const pool_file& file = *in_->file;
    const auto missing = [&] {
        return refusal(file.path(), errc::not_found,
                       fmt::format("there is no persistent object \"{}\"", name_));
    };
    const std::uint64_t super_at = load(file.roots()->anchor(engine_simpo));
    const std::uint64_t chunk = file.shape().chunk_bytes;
    if (super_at == 0) return missing();
    if (super_at % chunk != 0 || !covers(super_at, chunk))
        return corrupt(
            file, fmt::format("the superblock: expected a chunk of the heap, found offset {:#x}",
                              super_at));
    const auto* const in_pool = reinterpret_cast<const superblock*>(file.base() + super_at);
    superblock super;
    take(&super, in_pool, sizeof super);
    if (super.magic != superblock_magic || super.objects_max != objects_max_for(chunk))
        return corrupt(file, "the superblock: expected its magic number and size, found others");
    bool in_flux = false;
    status damage;
    const auto* const words = reinterpret_cast<const std::uint64_t*>(in_pool + 1);
    for (std::uint64_t i = 0; i < super.objects_max; ++i) {
        at = {words + i, load(words[i]), {}};
        if (at.offset == 0) continue;
        const char* const wrong = read_head(at);
        // Else the block may have been any object's when it was read.
        if (wrong == nullptr ? !is_there(at) : load(words[i]) != at.offset) {
            in_flux = true;
            continue;
        }
        if (wrong != nullptr) {
            damage = corrupt(file, fmt::format("the object at offset {:#x}: {}", at.offset, wrong));
            continue;
        }
        if (name_ != at.head.name) continue;
        if (status s = check_shape(file, at.head, what_); !s.ok()) return s;
        return true;
    }
    if (in_flux) return false;
    return damage.ok() ? missing() : damage;
}

/// Reads the groups from there on. A writer is not followed for more than the log is long.
seen::read_to seen::read_calls(const place& at, position from) {
    const object_head& h = at.head;
    const std::byte* const log = block(at) + layout_of(h).log_offset;
    const position logged = load(reinterpret_cast<const object_head*>(block(at))->logged);
    calls_.clear();
    position end = from, p = from;
    std::size_t whole = 0;
    record r;
    while (p - from < h.log_lines && log_array::read(log, h, logged, p, r)) {
        const auto* const its = reinterpret_cast<const line*>(&r);
        calls_.insert(calls_.end(), its, its + r.lines());
        p += r.lines();
        if (!ends_group(r.head.kind)) continue;
        end = p;
        whole = calls_.size();
    }
    calls_.resize(whole);
    return {end, p, logged};
}

/// Whether two groups end behind an invalid record, which was invalid when they were found, too.
/// Their lines are not written again before the resilient index, which is at 'from', is beyond the
/// hole: (3).
bool seen::stands_before_groups(const place& at, position hole, position from) const noexcept {
    const object_head& h = at.head;
    const std::byte* const log = block(at) + layout_of(h).log_offset;
    record r;
    unsigned ends = 0;
    for (position p = hole + 1; p < from + h.log_lines && ends < 2; ++p) {
        const std::byte* const line = log + (p & (h.log_lines - 1)) * line_bytes;
        if (load(reinterpret_cast<const record_head*>(line)->position) != p) continue;
        ends += log_array::read(log, h, 0, p, r) && ends_group(r.head.kind);
    }
    return ends == 2 && !log_array::read(log, h, 0, hole, r);
}

template <class Visit> void seen::for_each_call(Visit&& visit) const {
    record r;
    for (std::size_t i = 0; i < calls_.size(); i += r.lines()) {
        std::memcpy(&r, &calls_[i], line_bytes);
        std::memcpy(&r, &calls_[i], r.lines() * line_bytes);
        visit(r);
    }
}

/// Whether this build can make them. Errors: function_changed.
status seen::check_calls(const object_head& of) const {
    std::string unknown;
    for_each_call([&](const record& r) {
        if (!unknown.empty()) return;
        if (r.head.kind == 0 || r.head.kind > record_kind_last)
            unknown = fmt::format("a record of kind {}", r.head.kind);
        else if (r.head.function != 0) (void)find_function(of, r.head, &unknown);
    });
    if (unknown.empty()) return {};
    return refusal(
        in_->file->path(), errc::function_changed,
        fmt::format(
            "object \"{}\" of class {}: its log: expected functions of this build, found {}",
            of.name, of.class_text, unknown));
}

void seen::make_calls(std::byte* on, const object_head& of) const {
    for_each_call([&](const record& r) {
        make_call(on, of, r, r.head.function == 0 ? nullptr : find_function(of, r.head));
    });
}

result<bool> seen::try_to_look() {
    place at;
    if (const auto found = find(at); !found || !*found) return found;
    pass(view_steps::step::found);
    const object_layout parts = layout_of(at.head);
    const auto& head = *reinterpret_cast<const object_head*>(block(at));
    const auto damaged = [&](const char* what) {
        return corrupt(*in_->file, fmt::format("the object at offset {:#x}: {}", at.offset, what));
    };
    const std::uint64_t index = load(head.resilient);
    pass(view_steps::step::read_index);
    if (!index_holds(index, at.head.salt)) {
        if (!is_there(at)) return false;
        return damaged("its resilient index: expected one that verifies, found another");
    }
    const position from = position_of(index);
    // A checkpoint at the same position may be of a next writer that had given up what was seen
    // (roll_back).
    const bool anew = now_ == nullptr || at.head.salt != at_.head.salt || from > version_ ||
                      (from == version_ && index != index_);
    if (anew) make_room(parts.copy_bytes);
    if (is_swapped(at.head)) return look_into_file(at, index, anew);
    std::uint64_t check = 0;
    if (anew) {
        check = load(head.copy_checks[copy_of(index)]);
        take(next_.get(), block(at) + parts.copy_offset(copy_of(index)), parts.copy_bytes);
        pass(view_steps::step::copied);
        if (load(head.resilient) != index) return false; // upholds (2)
    }
    const position first = anew ? from : version_;
    const auto [end, stopped, logged] = read_calls(at, first);
    pass(view_steps::step::read_log);
    const bool lost =
        !in_->salvage && (end < logged || (anew && stands_before_groups(at, stopped, from)));
    const position known = logged > first ? first : end;         // what lies there needs no check
    if (position_of(load(head.resilient)) > known) return false; // upholds (3)
    pass(view_steps::step::asked_again);
    if (!is_there(at)) return false; // upholds (4)
    // From here on all is private.
    if (lost) // upholds (7)
        return damaged(
            "a record of its log: expected one that verifies, found damage, and committed calls "
            "behind it");
    if (anew && check != copy_check(at.head, next_.get(), parts.copy_bytes))
        return damaged("its copy: expected a checksum that holds, found another");
    if (status s = check_calls(at.head); !s.ok()) return s;
    make_calls(anew ? next_.get() : now_.get(), at.head);
    show(at, index, end, anew);
    return true;
}

/// For the copy that is read next. Throws std::bad_alloc.
void seen::make_room(std::uint64_t bytes) {
    if (next_bytes_ == bytes) return;
    next_.reset();
    next_bytes_ = 0;
    next_.reset(static_cast<std::byte*>(::operator new(bytes, std::align_val_t{line_bytes})));
    next_bytes_ = bytes;
}

/// For an object that is swapped out: it is in one file, whole, that nobody writes.
result<bool> seen::look_into_file(place& at, std::uint64_t index, bool anew) {
    const auto& head = *reinterpret_cast<const object_head*>(block(at));
    object_head now;
    take(&now, &head,
         sizeof now); // it may be another state's since it was found, or another object's
    if (now.salt != at.head.salt || !is_swapped(now)) return false;
    if (const char* const wrong = wrong_in(now)) { // upholds (1): sizes are the found one's then
        if (!is_there(at)) return false;
        return corrupt(*in_->file, fmt::format("the object at offset {:#x}: {}", at.offset, wrong));
    }
    at.head = now;
    const auto overtaken = [&] { return !is_there(at) || load(head.resilient) != index; };
    if (anew) {
        const auto from = static_cast<objects*>(in_->state_of(engine_simpo))->folder();
        if (!from) return from.error();
        const status found = (*from)->read(at.head, next_.get());
        if (overtaken()) return false; // another state's file may be gone
        if (!found.ok()) return found;
    }
    if (at.head.resilient != index || overtaken()) return false; // upholds (4)
    show(at, index, position_of(index), anew);
    return true;
}

void seen::show(const place& at, std::uint64_t index, position end, bool anew) {
    if (anew) {
        const std::uint64_t had = now_ == nullptr ? 0 : layout_of(at_.head).copy_bytes;
        now_.swap(next_);
        next_bytes_ = had;
    }
    at_ = at;
    version_ = end;
    index_ = index;
}

status seen::look() {
    if (status here = in_->usable(); !here.ok()) return here;
    for (unsigned attempt = 0; attempt < overtaken_max; ++attempt) {
        if (attempt != 0) ::sched_yield();
        const result<bool> looked = try_to_look();
        if (!looked) return looked.error();
        if (*looked) return {};
    }
    return refusal(
        in_->file->path(), errc::in_use,
        fmt::format("object \"{}\" changed during each of {} attempts to read it (its writer made "
                    "checkpoints, or another object of that name): try again",
                    name_, overtaken_max));
}

void end_seen::operator()(seen* which) const noexcept { delete which; }

result<seen_pointer> look(pool& in, std::string_view name, const class_shape& what) try {
    if (const auto all = objects_of(in); !all) return all.error();
    if (!in.internals().file->read_only())
        return refusal(
            in.path(), errc::bad_argument,
            "a view: expected a pool that is open read-only, found one that is open for writing: "
            "use object::call");
    seen_pointer made(new seen(in.internals(), name, what));
    if (status s = made->look(); !s.ok()) return s;
    return made;
} catch (const std::bad_alloc&) {
    return out_of_memory(in.path());
}

status look_again(seen& at) try { return at.look(); } catch (const std::bad_alloc&) {
    return out_of_memory(at.path());
}

const void* object_of(const seen& at) noexcept { return at.object(); }
std::uint64_t version_of(const seen& at) noexcept { return at.version(); }
std::uint64_t instance_of(const seen& at) noexcept { return at.salt(); }

} // namespace detail
} // namespace hf::simpo
