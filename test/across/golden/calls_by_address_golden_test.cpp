// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Goal: a section of engine redo that calls by address costs what it costs with direct calls, and
// no flush, fence or log byte of it comes or goes unnoticed. Method: the same changes of a list,
// called directly, by a pointer to a function, as a virtual function, as a std::function; each kind
// in all is compared with golden/calls_by_address.txt, and with the direct calls.
// When a change is meant: HOLDFAST_GOLDEN_WRITE=1 ctest -R golden, and say in the commit why.
#include <holdfast/alloc.hpp>
#include <holdfast/author/persist.hpp>
#include <holdfast/engines.hpp>
#include <holdfast/pool.hpp>
#include <holdfast/txfunc.hpp>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <string>
#include <unistd.h>
#include <vector>

namespace golden {

struct item {
    item* next;
    std::uint64_t value;
};
struct list {
    item* first;
    std::uint64_t count, sum;
};

static void push(list* l, std::uint64_t value) {
    item* const fresh = hf::make<item>(l->first, value);
    if (fresh == nullptr) return;
    l->first = fresh;
    ++l->count;
    l->sum += value;
}
static void raise(list* l, std::uint64_t by) {
    for (item* i = l->first; i != nullptr && i->value < by; i = i->next) i->value += by;
    l->sum += l->first->value;
}
static void pop(list* l, std::uint64_t) {
    item* const gone = l->first;
    l->first = gone->next;
    --l->count;
    hf::destroy(gone);
}

using step = void (*)(list*, std::uint64_t);
// Another file might change them: a call's target is known only when it is called.
step steps[] = {push, raise, pop};

class change {
public:
    virtual ~change() = default;
    virtual void make(list* l, std::uint64_t with) const = 0;
};
template <step What> class does final : public change {
public:
    void make(list* l, std::uint64_t with) const override { What(l, with); }
};
static const does<push> pushing;
static const does<raise> raising;
static const does<pop> popping;
const change* changes[] = {&pushing, &raising, &popping};

std::function<void(list*, std::uint64_t)> objects[] = {
    [](list* l, std::uint64_t with) { push(l, with); },
    [](list* l, std::uint64_t with) { raise(l, with); },
    [](list* l, std::uint64_t with) { pop(l, with); }};

HF_TXFUNC void push_directly(list* l, std::uint64_t with) { push(l, with); }
HF_TXFUNC void raise_directly(list* l, std::uint64_t with) { raise(l, with); }
HF_TXFUNC void pop_directly(list* l, std::uint64_t with) { pop(l, with); }
HF_TXFUNC void by_pointer(list* l, std::uint64_t with, unsigned which) { steps[which](l, with); }
HF_TXFUNC void by_virtual(list* l, std::uint64_t with, unsigned which) {
    changes[which]->make(l, with);
}
HF_TXFUNC void by_object(list* l, std::uint64_t with, unsigned which) { objects[which](l, with); }

namespace {

constexpr std::uint64_t operations = 1000; // of each kind
constexpr const char* names[] = {"push", "raise", "pop"};

/// The events of each kind of change, in the file's order of numbers.
template <class Call> std::vector<std::string> measured(list* l, Call call) {
    std::vector<std::string> all;
    for (unsigned which = 0; which < 3; ++which) {
        const hf::persist::counters a = hf::persist::thread_counters();
        for (std::uint64_t i = 0; i < operations; ++i) call(l, i % 7 + 1, which);
        const hf::persist::counters b = hf::persist::thread_counters();
        all.push_back(fmt::format("{} {} {} {} {} {}", b.flushes - a.flushes, b.fences - a.fences,
                                  b.ordering_points - a.ordering_points,
                                  b.log_entries - a.log_entries, b.log_bytes - a.log_bytes,
                                  b.pm_bytes - a.pm_bytes));
    }
    EXPECT_EQ(l->count, 0U);
    return all;
}

/// On a pool of its own, so that each kind of call finds the same.
template <class Call> std::vector<std::string> in_new_pool(hf::mode mode, Call call) {
    const std::string path = fmt::format("/dev/shm/holdfast-golden-calls.{}", ::getpid());
    hf::open_options options;
    options.layout = "golden/1";
    options.mode = mode;
    options.creation = hf::create::always_new;
    options.engines = hf::engines_of_build();
    auto pool = hf::pool::open(path, options);
    ::unlink(path.c_str());
    if (!pool) return {pool.error().what()};
    hf::return_spare_blocks(*pool); // starts the thread's lane
    return measured(pool->root<list>(), call);
}

std::string lines_of(hf::mode mode, const char* mode_name) {
    const auto direct = in_new_pool(mode, [](list* l, std::uint64_t with, unsigned which) {
        if (which == 0) push_directly(l, with);
        else if (which == 1) raise_directly(l, with);
        else pop_directly(l, with);
    });
    EXPECT_EQ(in_new_pool(mode, by_pointer), direct);
    EXPECT_EQ(in_new_pool(mode, by_virtual), direct);
    EXPECT_EQ(in_new_pool(mode, by_object), direct);
    std::string lines;
    for (std::size_t i = 0; i < direct.size(); ++i)
        lines += fmt::format("{} {} {}\n", mode_name, names[i], direct[i]);
    return lines;
}

TEST(calls_by_address_golden_test, CostWhatDirectCallsDoAndTheFileSays) {
    const std::string now =
        fmt::format(
            "# Changes of a list, called directly, by pointer, virtually, as a function object, "
            "engine redo: events per {} operations.\n"
            "# mode operation flushes fences ordering_points log_entries log_bytes pm_bytes\n",
            operations) +
        lines_of(hf::mode::process, "process") + lines_of(hf::mode::pmem, "pmem");
    if (std::getenv("HOLDFAST_GOLDEN_WRITE") != nullptr) {
        std::ofstream(HF_GOLDEN_FILE) << now;
        return;
    }
    std::ifstream file(HF_GOLDEN_FILE);
    EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}), now);
}

} // namespace
} // namespace golden
