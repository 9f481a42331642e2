// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The six structures of holdfast/simpo/ under random calls, each of Table 3's functions as often as
// the others, except printing. SIMPO §4.2, Figs. 18 and 19
#pragma once

#include "driver.hpp"

#include <holdfast/simpo/array.hpp>
#include <holdfast/simpo/graph.hpp>
#include <holdfast/simpo/heap.hpp>
#include <holdfast/simpo/queue.hpp>
#include <holdfast/simpo/stack.hpp>
#include <holdfast/simpo/tree.hpp>

#include <bit>
#include <optional>

namespace hf::bench {

/// Each with the calls that are made on it, and a hash of what it holds in the end.
struct tried_array : simpo::array<std::int64_t, 500> {
    static constexpr simpo::class_name simpo_class{"tried_array", 1};
    template <class Object> static void call(Object& on, std::uint64_t r) {
        const auto index = static_cast<std::uint32_t>(r >> 32) % 500;
        if (r % 3 == 0) on.template defer<&tried_array::increase_all>(std::int64_t{1});
        else if (r % 3 == 1) on.template defer<&tried_array::zero>();
        else (void)on.template call<&tried_array::get>(index);
    }
    std::uint64_t fingerprint() const noexcept {
        std::uint64_t hash = 0;
        for (std::uint32_t i = 0; i < 500; ++i)
            hash = mixed(hash, static_cast<std::uint64_t>(get(i)));
        return hash;
    }
};

struct tried_queue : simpo::queue<std::uint64_t, 1000> {
    static constexpr simpo::class_name simpo_class{"tried_queue", 1};
    template <class Object> static void call(Object& on, std::uint64_t r) {
        switch (r % 5) {
        case 0: return on.template defer<&tried_queue::clear>();
        case 1: return on.template defer<&tried_queue::enqueue>(r);
        case 2: return (void)on.template call<&tried_queue::dequeue>();
        case 3: return (void)on.template call<&tried_queue::is_empty>();
        default: return (void)on.template call<&tried_queue::is_full>();
        }
    }
    std::uint64_t fingerprint() const noexcept {
        std::uint64_t hash = count();
        for (tried_queue rest = *this; const auto each = rest.dequeue();) hash = mixed(hash, *each);
        return hash;
    }
};

struct tried_heap : simpo::heap<std::uint64_t, 1000> {
    static constexpr simpo::class_name simpo_class{"tried_heap", 1};
    template <class Object> static void call(Object& on, std::uint64_t r) {
        if (r % 3 == 0) on.template defer<&tried_heap::enheap>(r);
        else if (r % 3 == 1) (void)on.template call<&tried_heap::deheap>();
        else (void)on.template call<&tried_heap::count>();
    }
    std::uint64_t fingerprint() const noexcept {
        std::uint64_t hash = count();
        for (tried_heap rest = *this; const auto each = rest.deheap();) hash = mixed(hash, *each);
        return hash;
    }
};

struct tried_stack : simpo::stack<std::uint64_t, 1000> {
    static constexpr simpo::class_name simpo_class{"tried_stack", 1};
    template <class Object> static void call(Object& on, std::uint64_t r) {
        switch (r % 4) {
        case 0: return on.template defer<&tried_stack::push>(r);
        case 1: return (void)on.template call<&tried_stack::pop>();
        case 2: return (void)on.template call<&tried_stack::peek>();
        default: return (void)on.template call<&tried_stack::is_empty>();
        }
    }
    std::uint64_t fingerprint() const noexcept {
        std::uint64_t hash = count();
        for (tried_stack rest = *this; const auto each = rest.pop();) hash = mixed(hash, *each);
        return hash;
    }
};

struct tried_tree : simpo::tree<std::uint32_t, 1000> {
    static constexpr simpo::class_name simpo_class{"tried_tree", 1};
    template <class Object> static void call(Object& on, std::uint64_t r) {
        const auto value = static_cast<std::uint32_t>(r >> 32) % 1500;
        switch (r % 4) {
        case 0: return on.template defer<&tried_tree::insert>(value);
        case 1: return on.template defer<&tried_tree::balance>();
        case 2: return on.template defer<&tried_tree::remove>(value);
        default: return (void)on.template call<&tried_tree::contains>(value);
        }
    }
    std::uint64_t fingerprint() const noexcept {
        std::uint64_t hash = count();
        for (std::uint32_t v = 0; v < 1500; ++v) hash = mixed(hash, contains(v));
        return hash;
    }
};

struct tried_graph : simpo::graph<100> {
    static constexpr simpo::class_name simpo_class{"tried_graph", 1};
    template <class Object> static void call(Object& on, std::uint64_t r) {
        const auto from = static_cast<std::uint32_t>(r >> 32) % 100;
        const auto to = static_cast<std::uint32_t>(r >> 16) % 100;
        if (r % 3 == 0)
            on.template defer<&tried_graph::join>(from, to, 1.0 + static_cast<double>(from));
        else if (r % 3 == 1) on.template defer<&tried_graph::separate>(from, to);
        else (void)on.template call<&tried_graph::adjacent>(from, to);
    }
    std::uint64_t fingerprint() const noexcept {
        std::uint64_t hash = 0;
        for (std::uint32_t from = 0; from < 100; ++from)
            for (std::uint32_t to = 0; to < 100; ++to)
                hash = mixed(hash, std::bit_cast<std::uint64_t>(weight(from, to)));
        return hash;
    }
};

/// Random calls by one thread. A crash loses deferred calls that are not committed, so a run ends
/// with a commit.
template <class Structure> class structure_calls {
public:
    using type = Structure;
    explicit structure_calls(std::uint64_t calls) : calls_(calls) {}
    std::uint64_t steps() const { return calls_; }
    std::unique_ptr<type> make_native() const { return std::make_unique<type>(); }
    result<simpo::object<type>> create(pool& in, const simpo::object_options& how) const {
        return simpo::object<type>::create(in, "it", how);
    }
    template <class Object> void run(Object& object, std::uint64_t from, std::uint64_t to) const {
        for (std::uint64_t step = from; step < to; ++step) type::call(object, mixed(1, step));
        object.sync();
    }

private:
    std::uint64_t calls_;
};

} // namespace hf::bench
