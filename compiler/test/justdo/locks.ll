; SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
; Locks that a section takes: each by its kind; one that is tried has two ends.
; RUN: %hf_opt -passes=holdfast-instrument -holdfast-engine=justdo %s | FileCheck %s
; RUN: %hf_opt -passes=holdfast-instrument,verify -holdfast-engine=justdo -disable-output %s

declare void @_ZN2hf12shared_mutex4lockEv(ptr)
declare void @_ZN2hf12shared_mutex6unlockEv(ptr)
declare void @_ZN2hf12shared_mutex11lock_sharedEv(ptr)
declare void @_ZN2hf12shared_mutex13unlock_sharedEv(ptr)
declare zeroext i1 @_ZN2hf12shared_mutex8try_lockEv(ptr)

; The class's own name has "shared": it once made every lock a shared one.
; CHECK-LABEL: define void @kinds(
; CHECK: call void @hf_justdo_lock(ptr {{.*}}, i32 0, i32
; CHECK: call void @hf_justdo_lock(ptr {{.*}}, i32 1, i32
; CHECK: call void @hf_justdo_unlock(ptr {{.*}}, i32 1, i32
; CHECK: call void @hf_justdo_unlock(ptr {{.*}}, i32 0, i32
define void @kinds(ptr %a, ptr %b) "holdfast.txfunc" {
  call void @_ZN2hf12shared_mutex4lockEv(ptr %a)
  call void @_ZN2hf12shared_mutex11lock_sharedEv(ptr %b)
  store i64 1, ptr %a, align 8
  call void @_ZN2hf12shared_mutex13unlock_sharedEv(ptr %b)
  call void @_ZN2hf12shared_mutex6unlockEv(ptr %a)
  ret void
}

; Where it is not held the snapshot is flipped back, and that it is not is a point, too.
; CHECK-LABEL: define void @tries(
; CHECK: %[[HELD:.*]] = call i32 @hf_justdo_try_lock(ptr {{.*}}, i32 0, i32
; CHECK-NEXT: %[[IS:.*]] = icmp ne i32 %[[HELD]], 0
; CHECK-NEXT: br i1 %[[IS]], label %held, label %not_held
; CHECK: not_held:
; CHECK-NEXT: %[[BACK:.*]] = xor i32 {{.*}}, 8388608
; CHECK: xor i32 %[[BACK]], 8388608
; CHECK: call void @hf_justdo_point(i32
define void @tries(ptr %a, i64 %n) "holdfast.txfunc" {
  store i64 1, ptr %a, align 8
  br label %loop
loop:
  %i = phi i64 [ 0, %0 ], [ %next, %loop ]
  %next = add i64 %i, 3
  %got = call zeroext i1 @_ZN2hf12shared_mutex8try_lockEv(ptr %a)
  br i1 %got, label %done, label %loop
done:
  store i64 %i, ptr %a, align 8
  call void @_ZN2hf12shared_mutex6unlockEv(ptr %a)
  ret void
}

; What another thread may change is asked once.
; CHECK-LABEL: define void @asks(
; CHECK: %x = load atomic i64, ptr {{.*}} acquire, align 8
; CHECK: store i64 %x, ptr
; CHECK: call void @hf_justdo_point(
; CHECK: call void @hf_justdo_store(ptr {{.*}}, i64 %{{.*}}, i32 8,
; CHECK: fence seq_cst
define void @asks(ptr %a, ptr %b) "holdfast.txfunc" {
  %x = load atomic i64, ptr %a acquire, align 8
  store atomic i64 %x, ptr %b seq_cst, align 8
  ret void
}
