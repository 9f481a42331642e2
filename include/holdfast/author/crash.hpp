// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A program for the crash checker: what to run, and what to look at afterwards. `holdfast crash`
// fails it at every store, in every way that memory allows, and reports where it does not recover.
// docs/guide/crash-checking.md
#pragma once

#include <holdfast/pool.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace hf::crash {

/// The state of a pool as a program shows it. Two equal sequences of values are the same state.
class state {
public:
    /// A value that belongs to the state: an element, a size, a balance. Order counts.
    void add(std::uint64_t value);
    void add(std::string_view text);
    /// An object that the structure reaches: a block of its own, allocated. Blocks that no object()
    /// names are leaks. The root object is named already.
    void object(const void* block);
    /// An invariant of the structure.
    void expect(bool holds, std::string_view what);

    /// Values so far, for people.
    std::string text() const;
    std::uint64_t digest() const noexcept;

private:
    friend class judge;
    std::vector<std::uint64_t> values_;
    std::vector<const void*> objects_;
    std::string wrong_; // the first invariant that did not hold
};

/// One thing to check. Deterministic: two runs from the same pool do the same.
class program {
public:
    virtual ~program() = default;
    /// How its pool is opened. Small pools are explored faster: 64 KiB is enough for most.
    virtual open_options options() const = 0;
    /// How the pool that setup() fills is made, if that differs: by an older program, of another
    /// layout.
    virtual open_options made_with() const { return options(); }
    /// Fills the pool; failures in here are not explored.
    virtual void setup(pool&) {}
    /// Called when the program has been checked: removes what setup() made beside the pool.
    virtual void teardown() {}
    /// How many threads run operations, and how many operations each runs.
    virtual unsigned threads() const { return 1; }
    virtual unsigned operations(unsigned thread) const = 0;
    /// One operation, acknowledged when it returns: then its effect survives. Before that, all of
    /// its effect survives or none. Operations of several threads take effect in some order.
    virtual void run(pool&, unsigned thread, unsigned operation) = 0;
    /// Whether the operation is durable only when the thread's next one returns, or the pool is
    /// closed. Before that a failure may lose it, and nothing before it.
    virtual bool buffered(unsigned thread, unsigned operation) const {
        return (void)thread, (void)operation, false;
    }
    /// What the program does, after the pool's own recovery, to a pool that a failure has left,
    /// before it uses the pool. The checker fails it as well.
    virtual void recover(pool&) {}
    /// Operations that go on with a recovered pool, in their order, each durable when it returns.
    /// The checker fails them like the others, after two failures in a row: only there are a log's
    /// epochs and the allocator's marks used again. Their result must be the same as without any
    /// failure.
    virtual unsigned operations_after() const { return 0; }
    virtual void run_after(pool&, unsigned operation) { (void)operation; }
    /// Which of the program's threads runs it. The others wait.
    virtual unsigned thread_after(unsigned operation) const { return (void)operation, 0; }
    /// Shows the state of a pool, whole or recovered. Only reads.
    virtual void describe(pool&, state&) = 0;
};

/// Makes the program known under 'name' to `holdfast crash` and to crash_main.
void add(std::string name, std::unique_ptr<program> given);

/// Registers at start-up: HF_CRASH_PROGRAM(my_class, "my structure").
#define HF_CRASH_PROGRAM(type, name)                                                               \
    [[maybe_unused]] static const bool hf_crash_program_##type =                                   \
        (::hf::crash::add(name, std::make_unique<type>()), true)

} // namespace hf::crash
