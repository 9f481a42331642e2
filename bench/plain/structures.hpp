// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Holdfast's own structures as subjects.
#pragma once

#include "subject.hpp"

extern "C" hf::bench::plain::subjects hf_bench_plain_structures();
