// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The axioms of persistent x86-TSO, enumerated by brute force. It shares only the programs with the
// model that it judges: it has neither store buffers nor versions of lines, only orders and sets.
//
// An execution is a total order of all events, loads included. In it two events of a thread keep
// their program order if the table 'preserved' says so.
//
// (1) A load has the value of the newest store (in that order) to its word among the stores that
//     are before the load in that order or in program order. A locked operation loads and stores in
//     one event.
// (2) A failure comes after a prefix of the order. It leaves a set of the stores of that prefix.
// (3) Of the stores to one word, the set holds an initial part.
// (4) Of the ordinary stores to one line, the set holds an initial part. The last one, if it has 16
//     bytes, may be there with either word.
// (5) It holds every ordinary store to a line that is before a clflush of the line, and before a
//     clflushopt or clwb that is before a fence (sfence, mfence, locked operation) of its thread.
// (6) It holds every non-temporal store that is before a fence of its thread.
// (7) eADR: it holds every ordinary store. Process: it holds every store.
//
// Source: Raad et al., POPL'20; Khyzha and Lahav, POPL'21, for flushes that complete; with
// non-temporal stores as persistency-model.md has them.
#pragma once

#include <check/litmus/litmus.hpp>

namespace hf::check::litmus {

/// Every outcome of the test that the axioms allow.
///
/// Cost: exponential in the number of instructions: keep them below 10.
outcomes enumerate(const program& of, hf::domain d);

} // namespace hf::check::litmus
