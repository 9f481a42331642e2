// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The structures of holdfast/simpo/, a set for each thread. An operation is one to four calls on
// one of them; the last call commits. A log that is nearly full commits before, so any first part
// of an operation that was cut short may be there.
// journal: 'last' holds a thread's structures after an even and after an odd number of operations.
#include "workload.hpp"
#include <simpo/core.hpp>

#include <holdfast/simpo/array.hpp>
#include <holdfast/simpo/graph.hpp>
#include <holdfast/simpo/heap.hpp>
#include <holdfast/simpo/queue.hpp>
#include <holdfast/simpo/stack.hpp>
#include <holdfast/simpo/tree.hpp>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <tuple>

namespace kill_test {
namespace {

using namespace hf;
using u32 = std::uint32_t;
using u64 = std::uint64_t;

// Without padding, so that bytes can be compared.
using array_type = simpo::array<u64, 64>;
using queue_type = simpo::queue<u64, 31>;
using heap_type = simpo::heap<u32, 31>;
using stack_type = simpo::stack<u32, 63>;
using tree_type = simpo::tree<u64, 60>;
using graph_type = simpo::graph<16>;
using all_types = std::tuple<array_type, queue_type, heap_type, stack_type, tree_type, graph_type>;

/// Call `part` of an operation, made by invoke.template operator()<function>(arguments…).
template <class Invoke> void call_on(const array_type*, u64 r, Invoke&& invoke) {
    if (r % 20 == 0) invoke.template operator()<&array_type::zero>();
    else if (r % 2 == 0) invoke.template operator()<&array_type::increase_all>(r % 1000);
    else invoke.template operator()<&array_type::set>(static_cast<u32>(r >> 20) % 64, r % 1000);
}
template <class Invoke> void call_on(const queue_type*, u64 r, Invoke&& invoke) {
    if (r % 40 == 0) invoke.template operator()<&queue_type::clear>();
    else if (r % 20 < 12) invoke.template operator()<&queue_type::enqueue>(r);
    else invoke.template operator()<&queue_type::dequeue>();
}
template <class Invoke> void call_on(const heap_type*, u64 r, Invoke&& invoke) {
    if (r % 2 == 0) invoke.template operator()<&heap_type::enheap>(static_cast<u32>(r >> 20));
    else invoke.template operator()<&heap_type::deheap>();
}
template <class Invoke> void call_on(const stack_type*, u64 r, Invoke&& invoke) {
    if (r % 2 == 0) invoke.template operator()<&stack_type::push>(static_cast<u32>(r >> 20));
    else invoke.template operator()<&stack_type::pop>();
}
template <class Invoke> void call_on(const tree_type*, u64 r, Invoke&& invoke) {
    if (r % 20 == 0) invoke.template operator()<&tree_type::balance>();
    else if (r % 2 == 0) invoke.template operator()<&tree_type::insert>((r >> 20) % 90);
    else invoke.template operator()<&tree_type::remove>((r >> 20) % 90);
}
template <class Invoke> void call_on(const graph_type*, u64 r, Invoke&& invoke) {
    const u32 from = (r >> 20) % 16, to = (r >> 30) % 16;
    if (r % 20 == 0) invoke.template operator()<&graph_type::shorten_by>(from);
    else if (r % 20 < 15)
        invoke.template operator()<&graph_type::join>(from, to, 1.0 + static_cast<double>(r % 9));
    else invoke.template operator()<&graph_type::separate>(from, to);
}

unsigned parts_of(u64 operation) { return 1 + operation % 4; }
u64 which_of(u64 operation) { return (operation >> 32) % std::tuple_size_v<all_types>; }

/// In memory alone.
template <class T> void make_part(T& on, u64 operation, unsigned part) {
    call_on(&on, mix(operation, part),
            [&]<auto F>(auto... arguments) { (void)(on.*F)(arguments...); });
}
/// One part of an operation on a persistent object; calls what cannot be deferred.
template <class T> void make_part(simpo::object<T>& on, u64 operation, unsigned part) {
    call_on(static_cast<const T*>(nullptr), mix(operation, part), [&]<auto F>(auto... arguments) {
        using returns = typename simpo::detail::member_function<decltype(F)>::returns;
        if constexpr (std::is_void_v<returns>) on.template defer<F>(arguments...);
        else (void)on.template call<F>(arguments...);
    });
}

/// Calls visit(index, structure) for the operation's structure.
template <class Visit, std::size_t... I>
void visit_one(all_types& all, u64 which, Visit&& visit, std::index_sequence<I...>) {
    ((which == I ? visit(I, std::get<I>(all)) : void()), ...);
}
template <class Visit> void visit_one(all_types& all, u64 which, Visit&& visit) {
    visit_one(all, which, visit, std::make_index_sequence<std::tuple_size_v<all_types>>{});
}
template <class Visit> void visit_all(all_types& all, Visit&& visit) {
    for (u64 i = 0; i < std::tuple_size_v<all_types>; ++i) visit_one(all, i, visit);
}

static_assert(2 * sizeof(all_types) <= sizeof thread_journal::last);
/// A thread's structures after so many operations.
all_types& after(thread_journal& of, u64 operations) {
    return *reinterpret_cast<all_types*>(reinterpret_cast<std::byte*>(of.last) +
                                         operations % 2 * sizeof(all_types));
}

class structures_load final : public workload {
public:
    const char* name() const override { return "structures"; }
    void shape(open_options& o, u64) const override {
        o.layout = "kill-simpo-structures/1";
        o.create_bytes = 2 << 20;
        o.max_bytes = 16 << 20;
        o.engines.push_back(simpo::engine());
    }
    void prepare(pool& in, journal& log) override {
        for (unsigned t = 0; t < log.threads; ++t) {
            if (log.of[t].started.load() == 0) ::new (&after(log.of[t], 0)) all_types();
            visit_all(after(log.of[t], log.of[t].acked.load()), [&]<class T>(u64 i, T&) {
                if (simpo::object<T>::find(in, name_of(t, i))) return;
                const simpo::object_options how{log.seed % 2 == 0 ? 1024U : 8192U};
                if (auto made = simpo::object<T>::create(in, name_of(t, i), how); !made)
                    log.fail("%s", made.error().what().c_str());
            });
        }
    }
    [[noreturn]] void run(pool& in, journal& log, unsigned thread) override {
        thread_journal& mine = log.of[thread];
        for (;;) {
            const u64 n = mine.acked.load(), operation = mix(log.seed, thread, n);
            mine.start();
            all_types& next = after(mine, n + 1);
            std::memcpy(static_cast<void*>(&next), &after(mine, n), sizeof next);
            visit_one(next, which_of(operation), [&]<class T>(u64 i, T& there) {
                auto found = simpo::object<T>::find(in, name_of(thread, i));
                if (!found) std::abort();
                for (unsigned part = 0; part < parts_of(operation); ++part) {
                    make_part(*found, operation, part);
                    make_part(there, operation, part);
                }
                found->sync();
            });
            mine.ack();
        }
    }
    void verify(pool& in, journal& log) override {
        for (unsigned t = 0; t < log.threads; ++t) verify(in, log, t);
    }

private:
    static std::string name_of(unsigned thread, u64 i) {
        return std::to_string(thread) + "." + std::to_string(i);
    }
    static void verify(pool& in, journal& log, unsigned thread) {
        thread_journal& mine = log.of[thread];
        const u64 n = mine.acked.load(), operation = mix(log.seed, thread, n);
        const bool cut_short = mine.unfinished();
        all_types& known = after(mine, n);
        visit_all(known, [&]<class T>(u64 i, T& there) {
            auto found = simpo::object<T>::find(in, name_of(thread, i));
            if (!found) {
                if (mine.started.load() != 0) log.fail("%s", found.error().what().c_str());
                return; // killed before it was made
            }
            found->internals().look([&](const void* at) {
                const bool concerned = cut_short && which_of(operation) == i;
                auto expected = std::make_unique<T>(there);
                for (unsigned part = 0;; ++part) {
                    if (std::memcmp(expected.get(), at, sizeof(T)) == 0) break;
                    if (!concerned || part == parts_of(operation)) {
                        ++log.lost;
                        return log.fail("structure %u of thread %u is not what %llu operations "
                                        "left",
                                        static_cast<unsigned>(i), thread,
                                        static_cast<unsigned long long>(n));
                    }
                    make_part(*expected, operation, part);
                }
                std::memcpy(static_cast<void*>(&there), at, sizeof(T)); // goes on from there
            });
        });
        if (!cut_short) return;
        ++log.pending;
        std::memcpy(static_cast<void*>(&after(mine, n + 1)), &known, sizeof known);
        mine.settle();
    }
};

} // namespace

workload& simpo_structures_workload() {
    static structures_load only;
    return only;
}

} // namespace kill_test
