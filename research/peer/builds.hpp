// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The builds of applications whose sections are plain code. hf_application_builds (CMakeLists.txt
// of research/) compiles their sources once for each, in the namespace HF_APPLICATION_BUILD.
#pragma once

// 'none' is the papers' No-log. 'vlog_only' is clobber without the old values: it flushes and
// allocates as a section does. 'clobber_unrefined' logs what clobber's refinement leaves out.
#define HF_APPLICATION_BUILDS(X)                                                                   \
    X(none) X(vlog_only) X(undo) X(clobber) X(clobber_unrefined) X(redo) X(auto) X(justdo) X(ido)
