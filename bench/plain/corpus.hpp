// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The corpus by build: engines, and three builds without an engine. 'none' is the plain code.
// 'floor' also notes the lines that it dirties, and makes them durable at the end of a section.
// 'by_hand' logs the bytes that it overwrites. The three take memory from floor.hpp's arena.
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
