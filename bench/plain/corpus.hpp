// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The corpus by build: engines, and three that no pool knows. 'none' is the plain code; 'floor' the
// same with the lines noted that it dirties, which are made durable at the end of a section;
// 'by_hand' with a log of the bytes that it overwrites. They take memory from floor.hpp's arena.
#pragma once

#include "subject.hpp"

extern "C" {
hf::bench::plain::subjects hf_bench_plain_none();
hf::bench::plain::subjects hf_bench_plain_floor();
hf::bench::plain::subjects hf_bench_plain_by_hand();
hf::bench::plain::subjects hf_bench_plain_undo();
hf::bench::plain::subjects hf_bench_plain_justdo();
hf::bench::plain::subjects hf_bench_plain_clobber();
hf::bench::plain::subjects hf_bench_plain_redo();
hf::bench::plain::subjects hf_bench_plain_auto();
}
