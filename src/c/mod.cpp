// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// MOD's structures of std::string behind pointers. Functions that several kinds share are written
// once, over the C++ handle 'of' in each pointer's struct.
//
// Every function that may allocate memory of the process runs under guarded(): no exception leaves.
#include <base/of_thread.hpp>
#include <c/pool_handle.hpp>

#include <holdfast/mod.h>
#include <holdfast/mod/map.hpp>
#include <holdfast/mod/queue.hpp>
#include <holdfast/mod/set.hpp>
#include <holdfast/mod/stack.hpp>
#include <holdfast/mod/vector.hpp>

#include <algorithm>
#include <cstdint>
#include <new>
#include <ranges>
#include <span>
#include <string>
#include <string_view>
#include <utility>

using hf::errc;
using hf::c::fail;
using hf::c::told;

#define HF_STRUCTS(kind, ...)                                                                      \
    struct hf_mod_##kind {                                                                         \
        using type = __VA_ARGS__;                                                                  \
        type of;                                                                                   \
    };                                                                                             \
    struct hf_mod_##kind##_snapshot {                                                              \
        hf_mod_##kind::type::version of;                                                           \
    };
HF_STRUCTS(map, hf::mod::map<std::string, std::string>)
HF_STRUCTS(set, hf::mod::set<std::string>)
HF_STRUCTS(vector, hf::mod::vector<std::string>)
HF_STRUCTS(stack, hf::mod::stack<std::string>)
HF_STRUCTS(queue, hf::mod::queue<std::string>)
#undef HF_STRUCTS

struct hf_mod_cursor {
    virtual ~hf_mod_cursor() = default;
    virtual bool next(hf_bytes* element, hf_bytes* value) noexcept = 0;
};

static_assert(int(HF_MOD_BY_NEXT_SECTION) == int(hf::mod::durability::by_next_section) &&
              int(HF_MOD_ON_RETURN) == int(hf::mod::durability::on_return));

namespace {

std::string_view view(hf_bytes of) noexcept {
    return {static_cast<const char*>(of.data), of.bytes};
}
hf_bytes bytes(std::string_view of) noexcept { return {of.data(), of.size()}; }

hf_status not_found() noexcept { return fail(errc::not_found, "not_found"); } // no allocation

template <class Work> hf_status guarded(Work&& work) noexcept try {
    return work();
} catch (const std::bad_alloc&) {
    return fail(errc::io_error, {}); // no room for words either
}

/// The last element that take or pop gave this thread.
struct taken_element {
    std::string bytes;
};
std::string& taken() { return hf::of_thread<taken_element>::get().bytes; }
void give(std::string_view element, hf_bytes* to) {
    constexpr std::size_t worth_keeping_bytes = 64 << 10;
    if (to == nullptr) return;
    if (taken().capacity() > worth_keeping_bytes) taken() = {};
    *to = bytes(taken().assign(element));
}

template <class Handle> hf_status open(hf_pool* pool, const char* name, Handle** opened) noexcept {
    *opened = nullptr;
    return guarded([&] {
        auto found = Handle::type::open(pool->opened, {name});
        if (!found) return told(found.error());
        *opened = new Handle{*found};
        return HF_OK;
    });
}

template <class Handle> void set_durability(Handle* of, hf_mod_durability wanted) noexcept {
    of->of.set_durability(static_cast<hf::mod::durability>(wanted));
}

template <class Handle, class Snapshot>
hf_status snapshot(const Handle* of, Snapshot** taken) noexcept {
    *taken = nullptr;
    return guarded([&] {
        *taken = new Snapshot{of->of.snapshot()};
        return HF_OK;
    });
}

template <class Version> class cursor_of final : public hf_mod_cursor {
public:
    explicit cursor_of(Version through)
        : through_(std::move(through)), at_(through_.begin()), end_(through_.end()) {}
    bool next(hf_bytes* element, hf_bytes* value) noexcept override {
        if (at_ == end_) return false;
        const auto& found = *at_;
        if constexpr (requires { found.second; }) {
            *element = bytes(found.first);
            if (value != nullptr) *value = bytes(found.second);
        } else {
            *element = bytes(found);
        }
        ++at_;
        return true;
    }

private:
    Version through_; // before the iterators, which read it
    decltype(std::declval<const Version&>().begin()) at_, end_;
};

template <class Version> hf_status iterate(Version through, hf_mod_cursor** cursor) noexcept {
    *cursor = nullptr;
    return guarded([&] {
        *cursor = new cursor_of<Version>(std::move(through));
        return HF_OK;
    });
}

template <class Handle> hf_status clear(Handle* of) noexcept {
    return guarded([&] { return told(of->of.clear()); });
}

/// Returns a result<bool> through a pointer, which may be null.
hf_status told_whether(const hf::result<bool>& ended, int* whether) noexcept {
    if (!ended) return told(ended.error());
    if (whether != nullptr) *whether = *ended;
    return HF_OK;
}

template <class Source> hf_status get(const Source& from, hf_bytes key, hf_bytes* value) noexcept {
    const auto found = from.get(view(key));
    if (!found) return not_found();
    if (value != nullptr) *value = bytes(*found);
    return HF_OK;
}

template <class Source> hf_status find(const Source& in, hf_bytes element) noexcept {
    return in.contains(view(element)) ? HF_OK : not_found();
}

template <class Source>
hf_status at(const Source& from, std::uint64_t index, hf_bytes* element) noexcept {
    if (index >= from.size()) return not_found();
    *element = bytes(from[index]);
    return HF_OK;
}

using vector_batch = hf::mod::vector<std::string>::batch;

/// Requires: index + removed_count <= size.
void splice(vector_batch& to, std::uint64_t index, std::uint64_t removed_count,
            std::span<const hf_bytes> elements) {
    if (index + removed_count == to.size()) {
        to.take(index);
        to.append_range(elements | std::views::transform(view));
        return;
    }
    const std::uint64_t kept_count = std::min<std::uint64_t>(removed_count, elements.size());
    for (std::uint64_t i = 0; i < kept_count; ++i) to.set(index + i, view(elements[i]));
    if (kept_count < removed_count) to.erase(index + kept_count, index + removed_count);
    for (std::uint64_t i = kept_count; i < elements.size(); ++i)
        to.insert(index + i, view(elements[i]));
}

/// Commits what 'change(batch)' does, unless that reports that there is no such element.
template <class Handle, class Change> hf_status change_if_there(Handle& of, Change&& change) {
    bool there = false;
    const hf::status ended = of.update([&](auto& to) { there = change(to); });
    return ended.ok() && !there ? not_found() : told(ended);
}

template <class Handle>
hf_status push_all(Handle& to, const hf_bytes* elements, std::size_t element_count) noexcept {
    if (element_count == 0) return HF_OK;
    return guarded([&] {
        return told(to.update([&](auto& batch) {
            for (const hf_bytes& each : std::span(elements, element_count)) batch.push(view(each));
        }));
    });
}

template <class Handle> hf_status pop(Handle& from, hf_bytes* element) noexcept {
    if (from.empty()) return not_found();
    return guarded([&] {
        auto found = from.pop();
        if (!found) return told(found.error());
        give(*found, element);
        return HF_OK;
    });
}

template <class Source> hf_status peek(const Source& of, hf_bytes* element) noexcept {
    if (of.empty()) return not_found();
    if constexpr (requires { of.top(); }) *element = bytes(of.top());
    else *element = bytes(of.front());
    return HF_OK;
}

} // namespace

extern "C" {

hf_status hf_mod_cursor_next(hf_mod_cursor* cursor, hf_bytes* element, hf_bytes* value) noexcept {
    return cursor->next(element, value) ? HF_OK : not_found();
}
void hf_mod_cursor_close(hf_mod_cursor* cursor) noexcept { delete cursor; }

hf_status hf_mod_verify(hf_pool* pool) noexcept {
    return guarded([&] { return told(hf::mod::store::in(pool->opened).verify()); });
}

#define HF_COMMON(kind)                                                                            \
    hf_status hf_mod_##kind##_open(hf_pool* pool, const char* name, hf_mod_##kind** to) noexcept { \
        return open(pool, name, to);                                                               \
    }                                                                                              \
    void hf_mod_##kind##_close(hf_mod_##kind* of) noexcept { delete of; }                          \
    void hf_mod_##kind##_set_durability(hf_mod_##kind* of, hf_mod_durability wanted) noexcept {    \
        set_durability(of, wanted);                                                                \
    }                                                                                              \
    uint64_t hf_mod_##kind##_count(const hf_mod_##kind* of) noexcept { return of->of.size(); }     \
    hf_status hf_mod_##kind##_iterate(const hf_mod_##kind* of, hf_mod_cursor** cursor) noexcept {  \
        return iterate(of->of.snapshot(), cursor);                                                 \
    }                                                                                              \
    hf_status hf_mod_##kind##_clear(hf_mod_##kind* of) noexcept { return clear(of); }              \
    hf_status hf_mod_##kind##_snapshot_take(const hf_mod_##kind* of,                               \
                                            hf_mod_##kind##_snapshot** to) noexcept {              \
        return snapshot(of, to);                                                                   \
    }                                                                                              \
    void hf_mod_##kind##_snapshot_close(hf_mod_##kind##_snapshot* of) noexcept { delete of; }      \
    uint64_t hf_mod_##kind##_snapshot_count(const hf_mod_##kind##_snapshot* of) noexcept {         \
        return of->of.size();                                                                      \
    }                                                                                              \
    hf_status hf_mod_##kind##_snapshot_iterate(const hf_mod_##kind##_snapshot* of,                 \
                                               hf_mod_cursor** cursor) noexcept {                  \
        return iterate(of->of, cursor);                                                            \
    }
HF_COMMON(map)
HF_COMMON(set)
HF_COMMON(vector)
HF_COMMON(stack)
HF_COMMON(queue)
#undef HF_COMMON

// ---- Map

hf_status hf_mod_map_get(const hf_mod_map* map, hf_bytes key, hf_bytes* value) noexcept {
    return get(map->of, key, value);
}

hf_status hf_mod_map_snapshot_get(const hf_mod_map_snapshot* snapshot, hf_bytes key,
                                  hf_bytes* value) noexcept {
    return get(snapshot->of, key, value);
}

hf_status hf_mod_map_put(hf_mod_map* map, hf_bytes key, hf_bytes value, int* inserted) noexcept {
    return guarded(
        [&] { return told_whether(map->of.insert_or_assign(view(key), view(value)), inserted); });
}

hf_status hf_mod_map_insert(hf_mod_map* map, hf_bytes key, hf_bytes value, int* inserted) noexcept {
    return guarded([&] { return told_whether(map->of.insert(view(key), view(value)), inserted); });
}

hf_status hf_mod_map_take(hf_mod_map* map, hf_bytes key, hf_bytes* value) noexcept {
    return guarded([&] {
        return change_if_there(map->of, [&](auto& batch) {
            const auto found = batch.get(view(key));
            if (!found) return false;
            give(*found, value); // before it goes
            return batch.erase(view(key));
        });
    });
}

hf_status hf_mod_map_update(hf_mod_map* map, const hf_mod_map_step* steps,
                            size_t step_count) noexcept {
    return guarded([&] {
        return told(map->of.update([&](auto& batch) {
            for (const hf_mod_map_step& each : std::span(steps, step_count)) {
                if (each.erase != 0) batch.erase(view(each.key));
                else batch.insert_or_assign(view(each.key), view(each.value));
            }
        }));
    });
}

// ---- Set

hf_status hf_mod_set_find(const hf_mod_set* set, hf_bytes element) noexcept {
    return find(set->of, element);
}

hf_status hf_mod_set_snapshot_find(const hf_mod_set_snapshot* snapshot, hf_bytes element) noexcept {
    return find(snapshot->of, element);
}

hf_status hf_mod_set_insert(hf_mod_set* set, hf_bytes element, int* inserted) noexcept {
    return guarded([&] { return told_whether(set->of.insert(view(element)), inserted); });
}

hf_status hf_mod_set_erase(hf_mod_set* set, hf_bytes element) noexcept {
    return guarded([&] {
        int there = 0;
        const hf_status ended = told_whether(set->of.erase(view(element)), &there);
        return ended == HF_OK && there == 0 ? not_found() : ended;
    });
}

hf_status hf_mod_set_update(hf_mod_set* set, const hf_mod_set_step* steps,
                            size_t step_count) noexcept {
    return guarded([&] {
        return told(set->of.update([&](auto& batch) {
            for (const hf_mod_set_step& each : std::span(steps, step_count)) {
                if (each.erase != 0) batch.erase(view(each.element));
                else batch.insert(view(each.element));
            }
        }));
    });
}

// ---- Vector

hf_status hf_mod_vector_get(const hf_mod_vector* vector, uint64_t index,
                            hf_bytes* element) noexcept {
    return at(vector->of, index, element);
}

hf_status hf_mod_vector_snapshot_get(const hf_mod_vector_snapshot* snapshot, uint64_t index,
                                     hf_bytes* element) noexcept {
    return at(snapshot->of, index, element);
}

hf_status hf_mod_vector_set(hf_mod_vector* vector, uint64_t index, hf_bytes element) noexcept {
    const hf_mod_vector_step one = {index, element};
    return hf_mod_vector_update(vector, &one, 1);
}

hf_status hf_mod_vector_push(hf_mod_vector* vector, hf_bytes element) noexcept {
    return guarded([&] { return told(vector->of.push_back(view(element))); });
}

hf_status hf_mod_vector_pop(hf_mod_vector* vector, hf_bytes* element) noexcept {
    return guarded([&] {
        return change_if_there(vector->of, [&](vector_batch& batch) {
            if (batch.empty()) return false;
            give(batch.back(), element); // before it goes
            batch.pop_back();
            return true;
        });
    });
}

hf_status hf_mod_vector_splice(hf_mod_vector* vector, uint64_t index, uint64_t removed_count,
                               const hf_bytes* elements, size_t element_count) noexcept {
    return guarded([&] {
        return change_if_there(vector->of, [&](vector_batch& batch) {
            if (index > batch.size() || removed_count > batch.size() - index) return false;
            splice(batch, index, removed_count, std::span(elements, element_count));
            return true;
        });
    });
}

hf_status hf_mod_vector_update(hf_mod_vector* vector, const hf_mod_vector_step* steps,
                               size_t step_count) noexcept {
    return guarded([&] {
        return change_if_there(vector->of, [&](vector_batch& batch) {
            const std::span all(steps, step_count);
            if (!std::ranges::all_of(all, [&](auto& each) { return each.index < batch.size(); }))
                return false;
            for (const hf_mod_vector_step& each : all) batch.set(each.index, view(each.element));
            return true;
        });
    });
}

// ---- Stack and queue

#define HF_ENDS(kind)                                                                              \
    hf_status hf_mod_##kind##_peek(const hf_mod_##kind* of, hf_bytes* element) noexcept {          \
        return peek(of->of, element);                                                              \
    }                                                                                              \
    hf_status hf_mod_##kind##_snapshot_peek(const hf_mod_##kind##_snapshot* of,                    \
                                            hf_bytes* element) noexcept {                          \
        return peek(of->of, element);                                                              \
    }                                                                                              \
    hf_status hf_mod_##kind##_push(hf_mod_##kind* to, hf_bytes element) noexcept {                 \
        return guarded([&] { return told(to->of.push(view(element))); });                          \
    }                                                                                              \
    hf_status hf_mod_##kind##_push_all(hf_mod_##kind* to, const hf_bytes* elements,                \
                                       size_t element_count) noexcept {                            \
        return push_all(to->of, elements, element_count);                                          \
    }                                                                                              \
    hf_status hf_mod_##kind##_pop(hf_mod_##kind* from, hf_bytes* element) noexcept {               \
        return pop(from->of, element);                                                             \
    }
HF_ENDS(stack)
HF_ENDS(queue)
#undef HF_ENDS

} // extern "C"
