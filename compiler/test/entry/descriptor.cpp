// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The entry packs its arguments, opens a section around the body, and describes both.
// RUN: %hf_clangxx -O2 -S -emit-llvm %s -o - | FileCheck %s
// RUN: %hf_clangxx -O0 -S -emit-llvm %s -o - | FileCheck %s --check-prefix=KINDS
#include <holdfast/txfunc.hpp>

// Values (0), pool pointers (1) and preserved volatile pointers (2), at their offsets.
// CHECK-DAG: @_Z5kindsPlsPKcmbf.hf_args = internal constant [6 x { i32, i32, i32 }] [{ i32, i32, i32 } { i32 0, i32 8, i32 1 }, { i32, i32, i32 } { i32 8, i32 2, i32 0 }, { i32, i32, i32 } { i32 16, i32 8, i32 2 }, { i32, i32, i32 } { i32 24, i32 8, i32 0 }, { i32, i32, i32 } { i32 32, i32 1, i32 0 }, { i32, i32, i32 } { i32 36, i32 4, i32 0 }]
// KINDS-DAG: @_Z5kindsPlsPKcmbf.hf_args = internal constant [6 x { i32, i32, i32 }] [{ i32, i32, i32 } { i32 0, i32 8, i32 1 }, { i32, i32, i32 } { i32 8, i32 2, i32 0 }, { i32, i32, i32 } { i32 16, i32 8, i32 2 }, { i32, i32, i32 } { i32 24, i32 8, i32 0 }, { i32, i32, i32 } { i32 32, i32 1, i32 0 }, { i32, i32, i32 } { i32 36, i32 4, i32 0 }]
HF_TXFUNC void kinds(long* p, short s, const char* volatile_bytes, std::size_t n, bool b,
                     float f) noexcept {
    const char* kept = volatile_bytes ? hf::vlog_preserve(volatile_bytes, n) : nullptr;
    *p += s + (kept ? kept[0] : 0) + b + long(f);
}

// A pointer read through is no preserved one, whatever else happens to it; an unused one is a value.
// CHECK-DAG: @_Z5mixedPlPKcS_.hf_args = internal constant [3 x { i32, i32, i32 }] [{ i32, i32, i32 } { i32 0, i32 8, i32 1 }, { i32, i32, i32 } { i32 8, i32 8, i32 1 }, { i32, i32, i32 } { i32 16, i32 8, i32 0 }]
// KINDS-DAG: @_Z5mixedPlPKcS_.hf_args = internal constant [3 x { i32, i32, i32 }] [{ i32, i32, i32 } { i32 0, i32 8, i32 1 }, { i32, i32, i32 } { i32 8, i32 8, i32 1 }, { i32, i32, i32 } { i32 16, i32 8, i32 0 }]
HF_TXFUNC void mixed(long* p, const char* bytes, long* unused) noexcept {
    *p += *hf::vlog_preserve(bytes) + bytes[1];
}

// A by-value struct travels as its bytes; a result slot is not recorded, the thunk has its own.
struct big {
    long x[5];
};
// CHECK-DAG: @_Z8by_value3bigPl.hf_args = internal constant [2 x { i32, i32, i32 }] [{ i32, i32, i32 } { i32 0, i32 40, i32 0 }, { i32, i32, i32 } { i32 40, i32 8, i32 1 }]
HF_TXFUNC big by_value(big in, long* p) noexcept {
    *p += in.x[4];
    return in;
}

// No arguments, no block.
// CHECK-DAG: @_Z4nonev.hf_args = internal constant [0 x { i32, i32, i32 }] zeroinitializer
HF_TXFUNC int none() noexcept { return 4; }

// CHECK-DAG: @_Z4nonev.hf_clobber = internal constant { i32, i32, i64, i64, ptr, ptr, ptr, i64, ptr } { i32 257, i32 0, i64 {{-?[0-9]+}}, i64 {{-?[0-9]+}}, ptr @_Z4nonev.hf_text, ptr @_Z4nonev.hf_text.{{[0-9]+}}, ptr @_Z4nonev.hf_args, i64 0, ptr @_Z4nonev.hf_re_execute }
// CHECK-DAG: descriptor.cpp:[[@LINE-3]]\00"

// CHECK-LABEL: define dso_local noundef {{.*}}i32 @_Z4nonev()
// CHECK: %[[OPENED:.*]] = call i32 @hf_clobber_begin(ptr @_Z4nonev.hf_clobber, ptr null)
// CHECK: %[[RESULT:.*]] = call noundef {{.*}}i32 @_Z4nonev.hf_body()
// CHECK: %[[IS_OPEN:.*]] = icmp ne i32 %[[OPENED]], 0
// CHECK: br i1 %[[IS_OPEN]], label %[[COMMIT:[0-9]+]], label %[[DONE:[0-9]+]]
// CHECK: [[COMMIT]]:
// CHECK-NEXT: call void @hf_clobber_commit()
// CHECK: [[DONE]]:
// CHECK-NEXT: ret i32 %[[RESULT]]

// The thunk calls the body, which opens no section.
// CHECK-LABEL: define internal void @_Z8by_value3bigPl.hf_re_execute(ptr %0)
// CHECK: alloca %struct.big
// CHECK: call void @_Z8by_value3bigPl.hf_body(ptr {{.*}}sret(%struct.big)
// CHECK: ret void
