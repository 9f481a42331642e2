// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Sections as the compiler plugin would instrument them, written by hand for each engine: every
// kind of log record comes from one of them. A thread can be stopped for good inside one.
//
// They follow pointers that a mutation may have made anything, so undefined behaviour in them is
// the mutation's: the sanitizers look at the library.
#pragma once

#include <holdfast/abi/holdfast_abi.h>
#include <holdfast/alloc.hpp>
#include <holdfast/pool.hpp>
#include <holdfast/txfunc.hpp>

#include <cstdint>

namespace hf::hostile {

struct node {
    node* next;
    std::uint64_t value;
    char text[184];
};
struct chain {
    node* head;
    std::uint64_t count;
    std::uint64_t sum;
    std::uint64_t* cells; // cells_count words, for long logs
};
inline constexpr std::uint64_t cells_count = 400;
inline constexpr unsigned chains_count = 4;
struct root_object {
    chain* chains[chains_count];
};

enum class built_for : std::uint8_t { clobber, undo, redo };

/// This thread's section stops before its 'n'th step, calling 'then', which does not return.
void stop_before_step(int n, void (*then)());

void push(built_for engine, chain* c, std::uint64_t value);
void pop(built_for engine, chain* c);
/// Replaces the head by a new node: allocates and frees.
void replace(built_for engine, chain* c, std::uint64_t value);
/// Adds one to every cell, 'rounds' times: a log that does not fit a lane.
void sweep(built_for engine, chain* c, std::uint64_t rounds);
/// Engine redo, the first 'cells' cells: up to 300 are few lines, so the section takes one fence,
/// and leaves its mark to the next one, with a log that does not fit a lane.
void sweep_in_part(chain* c, std::uint64_t cells);
/// Links a staged block.
void adopt(built_for engine, chain* c, node* staged);

/// A chain of its own, outside sections; null when the pool is full.
chain* make_chain();
void destroy_chain(chain* c);

/// The fault of a chain that should hold values first..last from its end to its head; null if it
/// has none.
const char* fault(const chain* c, std::uint64_t first, std::uint64_t last);

/// The functions, for logs that a mutation makes up.
inline constexpr std::uint64_t function_ids[] = {7001, 7002, 7003, 7004, 7005};
inline constexpr std::uint32_t function_args_bytes[] = {24, 8, 24, 16, 16};

} // namespace hf::hostile
