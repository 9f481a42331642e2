// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// HF_STRUCTURES_ENGINE: one inline namespace per engine, so that the same source built for several
// engines links into one program.
#pragma once

#include <holdfast/txfunc.hpp>

#define HF_STRUCTURES_JOIN_(a, b) a##b
#define HF_STRUCTURES_JOIN(a, b) HF_STRUCTURES_JOIN_(a, b)
// Named by the build where one engine is built in several ways.
#if !defined(HF_STRUCTURES_ENGINE) && defined(HF_RELOCATABLE)
#define HF_STRUCTURES_ENGINE                                                                       \
    HF_STRUCTURES_JOIN(relocatable_, HF_STRUCTURES_JOIN(engine_, HF_ENGINE))
#elif !defined(HF_STRUCTURES_ENGINE)
#define HF_STRUCTURES_ENGINE HF_STRUCTURES_JOIN(engine_, HF_ENGINE)
#endif
