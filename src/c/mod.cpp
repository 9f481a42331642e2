// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// MOD's structures of std::string behind pointers. Functions that several kinds share are written
// once, over the C++ handle 'of' in each pointer's struct.
#include <base/assert.hpp>
#include <c/bytes.hpp>

#include <holdfast/mod/map.hpp>
#include <holdfast/mod/ordered_map.hpp>
#include <holdfast/mod/queue.hpp>
#include <holdfast/mod/set.hpp>
#include <holdfast/mod/stack.hpp>
#include <holdfast/mod/vector.hpp>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <memory>
#include <new>
#include <ranges>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

using hf::errc;
using namespace hf::c;

namespace {

/// What a transaction makes of one structure.
struct draft {
    hf::mod::root* of;
    hf::mod::version next;
    std::uint64_t word_before;
    hf::status failed{}; // why the transaction cannot be committed
};

} // namespace

struct hf_mod_transaction {
    hf::pool& in;
    std::vector<std::unique_ptr<draft>> drafts; // handles point to them
};

#define HF_STRUCTS(kind, ...)                                                                      \
    struct hf_mod_##kind {                                                                         \
        using type = __VA_ARGS__;                                                                  \
        type of;                                                                                   \
        draft* in = nullptr; /* that reads and changes are of; null: the structure's own */        \
    };                                                                                             \
    struct hf_mod_##kind##_snapshot {                                                              \
        hf_mod_##kind::type::version of;                                                           \
    };
HF_STRUCTS(map, hf::mod::map<std::string, std::string>)
HF_STRUCTS(ordered_map, hf::mod::ordered_map<std::string, std::string>)
HF_STRUCTS(set, hf::mod::set<std::string>)
HF_STRUCTS(vector, hf::mod::vector<std::string>)
HF_STRUCTS(stack, hf::mod::stack<std::string>)
HF_STRUCTS(queue, hf::mod::queue<std::string>)
#undef HF_STRUCTS

static_assert(int(HF_MOD_BY_NEXT_SECTION) == int(hf::mod::durability::by_next_section) &&
              int(HF_MOD_ON_RETURN) == int(hf::mod::durability::on_return));

namespace {

template <class Handle> hf_status open(hf_pool* pool, const char* name, Handle** opened) noexcept {
    *opened = nullptr;
    return guarded([&] {
        auto found = Handle::type::open(pool->opened, {name});
        if (!found) return told(found.error());
        *opened = new Handle{*found};
        return HF_OK;
    });
}

template <class Handle>
hf_status open_in(hf_mod_transaction* transaction, const char* name, Handle** opened) noexcept {
    *opened = nullptr;
    return guarded([&] {
        auto found = Handle::type::open(transaction->in, {name});
        if (!found) return told(found.error());
        hf::mod::root* const root = found->its_root();
        auto& all = transaction->drafts;
        auto mine = std::ranges::find(all, root, [](auto& each) { return each->of; });
        if (mine == all.end()) {
            const hf::mod::version before = root->read();
            all.push_back(std::make_unique<draft>(root, before.derived(), before.word()));
            mine = all.end() - 1;
        }
        *opened = new Handle{*found, mine->get()};
        return HF_OK;
    });
}

/// Looks at the structure, or at a transaction's draft of it.
template <class Handle, class Look> auto look(const Handle* of, Look&& at) {
    if (of->in == nullptr) return at(of->of);
    hf::mod::version& next = of->in->next;
    const typename Handle::type::batch draft(next.work(), next.word());
    return at(draft);
}

/// Returns why a draft failed, as its commit says it, and lets the transaction fail for that. Then
/// the draft is the current version again.
hf_status given_up(draft& of) {
    of.next.done();
    of.failed = of.of->its_store().commit({{of.of, &of.next}});
    HF_ASSERT(!of.failed.ok());
    of.next = of.of->read().derived();
    return told(of.failed);
}

/// Commits what 'with(batch)' does, or adds it to a transaction's draft; nothing if it returns
/// false.
template <class Handle, class Change> hf_status change(Handle* of, Change&& with) {
    if (of->in == nullptr) return told(of->of.update(with));
    hf::mod::version& next = of->in->next;
    typename Handle::type::batch draft(next.work(), next.word());
    bool wanted = true;
    if constexpr (std::is_void_v<decltype(with(draft))>) with(draft);
    else wanted = with(draft);
    const bool failed = draft.failed(); // it may say no for want of room
    if (failed || wanted) next.set_word(draft.word());
    return failed ? given_up(*of->in) : HF_OK;
}

/// Current version, or a transaction's draft as it is now.
template <class Handle> typename Handle::type::version version_of(const Handle* of) {
    if (of->in == nullptr) return of->of.snapshot();
    hf::mod::version& next = of->in->next;
    next.done(); // what comes now leaves its nodes as they are
    const hf::mod::version found = next;
    next = found.derived();
    return typename Handle::type::version(found);
}

template <class Handle> void set_durability(Handle* of, hf_mod_durability wanted) noexcept {
    of->of.set_durability(static_cast<hf::mod::durability>(wanted));
}

template <class Handle, class Snapshot>
hf_status snapshot(const Handle* of, Snapshot** taken) noexcept {
    *taken = nullptr;
    return guarded([&] {
        *taken = new Snapshot{version_of(of)};
        return HF_OK;
    });
}

template <class Version, class Iterator> class cursor_of final : public hf_mod_cursor {
public:
    template <class Range>
    cursor_of(Version through, Range&& range)
        : through_(std::move(through)), at_(range(through_).first), end_(range(through_).second) {}
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
    Iterator at_, end_;
};

/// A cursor through what 'range' gives of a version: the first iterator and the end.
template <class Version, class Range>
hf_mod_cursor* cursor_through(Version through, Range&& range) {
    using iterator = typename decltype(range(std::as_const(through)))::first_type;
    return new cursor_of<Version, iterator>(std::move(through), range);
}

template <class Version> hf_mod_cursor* cursor_through_all(Version through) {
    return cursor_through(std::move(through),
                          [](const Version& all) { return std::pair(all.begin(), all.end()); });
}

template <class Version>
hf_mod_cursor* cursor_between(Version through, const hf_bytes* from, const hf_bytes* upto,
                              bool backwards) {
    const auto bounds = [=](const Version& all) {
        auto begin = from == nullptr ? all.begin() : all.lower_bound(view(*from));
        auto end = upto == nullptr ? all.end() : all.lower_bound(view(*upto));
        const bool empty = from != nullptr && upto != nullptr && view(*upto) < view(*from);
        return std::pair(begin, empty ? begin : end);
    };
    if (!backwards) return cursor_through(std::move(through), bounds);
    return cursor_through(std::move(through), [=](const Version& all) {
        const auto [begin, end] = bounds(all);
        return std::pair(std::make_reverse_iterator(end), std::make_reverse_iterator(begin));
    });
}

template <class Handle> hf_status clear(Handle* of) noexcept {
    return guarded([&] { return change(of, [](auto& batch) { batch.clear(); }); });
}

/// Commits what 'with(batch)' does, and gives what it returns.
template <class Handle, class Change>
hf_status change_and_tell(Handle* of, int* whether, Change&& with) noexcept {
    return guarded([&] {
        bool found = false;
        const hf_status ended = change(of, [&](auto& batch) { found = with(batch); });
        if (ended == HF_OK && whether != nullptr) *whether = found;
        return ended;
    });
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

/// Commits what 'with(batch)' does, unless that reports that there is no such element.
template <class Handle, class Change> hf_status change_if_there(Handle* of, Change&& with) {
    bool there = false;
    const hf_status ended = change(of, [&](auto& to) { return there = with(to); });
    return ended == HF_OK && !there ? not_found() : ended;
}

template <class Handle> hf_status take(Handle* from, hf_bytes key, hf_bytes* value) noexcept {
    return guarded([&] {
        return change_if_there(from, [&](auto& batch) {
            const auto found = batch.get(view(key));
            if (!found) return false;
            give(*found, value); // before it goes
            return batch.erase(view(key));
        });
    });
}

template <class Handle>
hf_status update(Handle* to, const hf_mod_map_step* steps, std::size_t step_count) noexcept {
    return guarded([&] {
        return change(to, [&](auto& batch) {
            for (const hf_mod_map_step& each : std::span(steps, step_count)) {
                if (each.erase != 0) batch.erase(view(each.key));
                else batch.insert_or_assign(view(each.key), view(each.value));
            }
        });
    });
}

template <class Handle>
hf_status push_all(Handle* to, const hf_bytes* elements, std::size_t element_count) noexcept {
    if (element_count == 0) return HF_OK;
    return guarded([&] {
        return change(to, [&](auto& batch) {
            for (const hf_bytes& each : std::span(elements, element_count)) batch.push(view(each));
        });
    });
}

/// The element that pop() takes next.
template <class Source> auto next_of(const Source& of) noexcept {
    if constexpr (requires { of.top(); }) return of.top();
    else return of.front();
}

template <class Handle> hf_status pop(Handle* from, hf_bytes* element) noexcept {
    return guarded([&] {
        return change_if_there(from, [&](auto& batch) {
            if (batch.empty()) return false;
            give(next_of(batch), element); // before it goes
            batch.pop();
            return true;
        });
    });
}

template <class Source> hf_status peek(const Source& of, hf_bytes* element) noexcept {
    if (of.empty()) return not_found();
    *element = bytes(next_of(of));
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

hf_status hf_mod_transaction_begin(hf_pool* pool, hf_mod_transaction** transaction) noexcept {
    *transaction = nullptr;
    return guarded([&] {
        *transaction = new hf_mod_transaction{pool->opened, {}};
        return HF_OK;
    });
}

hf_status hf_mod_transaction_commit(hf_mod_transaction* transaction) noexcept {
    const std::unique_ptr<hf_mod_transaction> ended(transaction);
    return guarded([&] {
        std::vector<hf::mod::new_version> changed;
        for (const auto& each : ended->drafts) {
            if (!each->failed.ok()) return told(each->failed);
            if (each->next.word() == each->word_before) continue;
            each->next.done();
            changed.push_back({each->of, &each->next});
        }
        if (changed.empty()) return HF_OK;
        return told(hf::mod::store::in(ended->in).commit(changed));
    });
}

void hf_mod_transaction_close(hf_mod_transaction* transaction) noexcept { delete transaction; }

#define HF_COMMON(kind)                                                                            \
    hf_status hf_mod_##kind##_open(hf_pool* pool, const char* name, hf_mod_##kind** to) noexcept { \
        return open(pool, name, to);                                                               \
    }                                                                                              \
    hf_status hf_mod_##kind##_open_in(hf_mod_transaction* transaction, const char* name,           \
                                      hf_mod_##kind** to) noexcept {                               \
        return open_in(transaction, name, to);                                                     \
    }                                                                                              \
    void hf_mod_##kind##_close(hf_mod_##kind* of) noexcept { delete of; }                          \
    void hf_mod_##kind##_set_durability(hf_mod_##kind* of, hf_mod_durability wanted) noexcept {    \
        set_durability(of, wanted);                                                                \
    }                                                                                              \
    uint64_t hf_mod_##kind##_count(const hf_mod_##kind* of) noexcept {                             \
        return look(of, [](const auto& at) -> uint64_t { return at.size(); });                     \
    }                                                                                              \
    hf_status hf_mod_##kind##_iterate(const hf_mod_##kind* of, hf_mod_cursor** cursor) noexcept {  \
        return give_cursor(cursor, [&] { return cursor_through_all(version_of(of)); });            \
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
        return give_cursor(cursor, [&] { return cursor_through_all(of->of); });                    \
    }
HF_COMMON(map)
HF_COMMON(ordered_map)
HF_COMMON(set)
HF_COMMON(vector)
HF_COMMON(stack)
HF_COMMON(queue)
#undef HF_COMMON

// ---- Map and ordered map

#define HF_MAPS(kind)                                                                              \
    hf_status hf_mod_##kind##_get(const hf_mod_##kind* map, hf_bytes key,                          \
                                  hf_bytes* value) noexcept {                                      \
        return look(map, [&](const auto& from) { return get(from, key, value); });                 \
    }                                                                                              \
    hf_status hf_mod_##kind##_snapshot_get(const hf_mod_##kind##_snapshot* snapshot, hf_bytes key, \
                                           hf_bytes* value) noexcept {                             \
        return get(snapshot->of, key, value);                                                      \
    }                                                                                              \
    hf_status hf_mod_##kind##_put(hf_mod_##kind* map, hf_bytes key, hf_bytes value,                \
                                  int* inserted) noexcept {                                        \
        return change_and_tell(map, inserted, [&](auto& batch) {                                   \
            return batch.insert_or_assign(view(key), view(value));                                 \
        });                                                                                        \
    }                                                                                              \
    hf_status hf_mod_##kind##_insert(hf_mod_##kind* map, hf_bytes key, hf_bytes value,             \
                                     int* inserted) noexcept {                                     \
        return change_and_tell(map, inserted,                                                      \
                               [&](auto& batch) { return batch.insert(view(key), view(value)); }); \
    }                                                                                              \
    hf_status hf_mod_##kind##_take(hf_mod_##kind* map, hf_bytes key, hf_bytes* value) noexcept {   \
        return take(map, key, value);                                                              \
    }                                                                                              \
    hf_status hf_mod_##kind##_update(hf_mod_##kind* map, const hf_mod_map_step* steps,             \
                                     size_t step_count) noexcept {                                 \
        return update(map, steps, step_count);                                                     \
    }
HF_MAPS(map)
HF_MAPS(ordered_map)
#undef HF_MAPS

hf_status hf_mod_ordered_map_range(const hf_mod_ordered_map* map, const hf_bytes* from,
                                   const hf_bytes* upto, int backwards,
                                   hf_mod_cursor** cursor) noexcept {
    return give_cursor(cursor,
                       [&] { return cursor_between(version_of(map), from, upto, backwards != 0); });
}

hf_status hf_mod_ordered_map_snapshot_range(const hf_mod_ordered_map_snapshot* snapshot,
                                            const hf_bytes* from, const hf_bytes* upto,
                                            int backwards, hf_mod_cursor** cursor) noexcept {
    return give_cursor(cursor,
                       [&] { return cursor_between(snapshot->of, from, upto, backwards != 0); });
}

// ---- Set

hf_status hf_mod_set_find(const hf_mod_set* set, hf_bytes element) noexcept {
    return look(set, [&](const auto& in) { return find(in, element); });
}

hf_status hf_mod_set_snapshot_find(const hf_mod_set_snapshot* snapshot, hf_bytes element) noexcept {
    return find(snapshot->of, element);
}

hf_status hf_mod_set_insert(hf_mod_set* set, hf_bytes element, int* inserted) noexcept {
    return change_and_tell(set, inserted, [&](auto& batch) { return batch.insert(view(element)); });
}

hf_status hf_mod_set_erase(hf_mod_set* set, hf_bytes element) noexcept {
    return guarded([&] {
        return change_if_there(set, [&](auto& batch) { return batch.erase(view(element)); });
    });
}

hf_status hf_mod_set_update(hf_mod_set* set, const hf_mod_set_step* steps,
                            size_t step_count) noexcept {
    return guarded([&] {
        return change(set, [&](auto& batch) {
            for (const hf_mod_set_step& each : std::span(steps, step_count)) {
                if (each.erase != 0) batch.erase(view(each.element));
                else batch.insert(view(each.element));
            }
        });
    });
}

// ---- Vector

hf_status hf_mod_vector_get(const hf_mod_vector* vector, uint64_t index,
                            hf_bytes* element) noexcept {
    return look(vector, [&](const auto& from) { return at(from, index, element); });
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
    return guarded([&] {
        return change(vector, [&](vector_batch& batch) { batch.push_back(view(element)); });
    });
}

hf_status hf_mod_vector_pop(hf_mod_vector* vector, hf_bytes* element) noexcept {
    return guarded([&] {
        return change_if_there(vector, [&](vector_batch& batch) {
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
        return change_if_there(vector, [&](vector_batch& batch) {
            if (index > batch.size() || removed_count > batch.size() - index) return false;
            splice(batch, index, removed_count, std::span(elements, element_count));
            return true;
        });
    });
}

hf_status hf_mod_vector_update(hf_mod_vector* vector, const hf_mod_vector_step* steps,
                               size_t step_count) noexcept {
    return guarded([&] {
        return change_if_there(vector, [&](vector_batch& batch) {
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
        return look(of, [&](const auto& at) { return peek(at, element); });                        \
    }                                                                                              \
    hf_status hf_mod_##kind##_snapshot_peek(const hf_mod_##kind##_snapshot* of,                    \
                                            hf_bytes* element) noexcept {                          \
        return peek(of->of, element);                                                              \
    }                                                                                              \
    hf_status hf_mod_##kind##_push(hf_mod_##kind* to, hf_bytes element) noexcept {                 \
        return push_all(to, &element, 1);                                                          \
    }                                                                                              \
    hf_status hf_mod_##kind##_push_all(hf_mod_##kind* to, const hf_bytes* elements,                \
                                       size_t element_count) noexcept {                            \
        return push_all(to, elements, element_count);                                              \
    }                                                                                              \
    hf_status hf_mod_##kind##_pop(hf_mod_##kind* from, hf_bytes* element) noexcept {               \
        return pop(from, element);                                                                 \
    }
HF_ENDS(stack)
HF_ENDS(queue)
#undef HF_ENDS

} // extern "C"
