; SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
; An exception that leaves a section takes it back, if this call opened it; nothing throws out of functions that
; throw nothing. Inside, handlers and clean-ups stay, and make buffered stores; calls that throw nothing are
; calls.
; RUN: %hf_opt -passes=holdfast-instrument -holdfast-engine=redo %s | FileCheck %s

declare void @__cxa_throw(ptr, ptr, ptr)
declare ptr @__cxa_allocate_exception(i64)
declare ptr @__cxa_begin_catch(ptr)
declare void @__cxa_end_catch()
declare i32 @__gxx_personality_v0(...)
declare i64 @strlen(ptr)
@_ZTIi = external constant ptr

; CHECK-LABEL: define void @may(ptr %p) {{.*}}personality ptr @__gxx_personality_v0
; CHECK: %[[OPENED:.*]] = call i32 @hf_redo_begin(
; CHECK: invoke void @may.hf_body(ptr %p)
; CHECK-NEXT: to label %[[RETURNED:.*]] unwind label %[[THROWN:.*]]
; CHECK: [[RETURNED]]:
; CHECK: [[THROWN]]:
; CHECK-NEXT: %[[E:.*]] = landingpad { ptr, i32 }
; CHECK-NEXT: cleanup
; CHECK-NEXT: %[[OURS:.*]] = icmp ne i32 %[[OPENED]], 0
; CHECK-NEXT: br i1 %[[OURS]], label %[[ABORT:.*]], label %[[RESUME:.*]]
; CHECK: [[ABORT]]:
; CHECK-NEXT: call void @hf_redo_abort()
; CHECK-NEXT: br label %[[RESUME]]
; CHECK: [[RESUME]]:
; CHECK-NEXT: resume { ptr, i32 } %[[E]]
; CHECK: call void @hf_redo_commit_or_throw()
define void @may(ptr %p) #0 {
  call void @throws(ptr %p)
  ret void
}

; CHECK-LABEL: define void @never(ptr %p)
; CHECK-NOT: personality
; CHECK: call void @never.hf_body(ptr %p)
; CHECK: call void @hf_redo_commit()
define void @never(ptr %p) #1 {
  store i64 1, ptr %p
  ret void
}

; CHECK-LABEL: define void @promises(ptr %p)
; CHECK: call void @promises.hf_body(ptr %p)
; CHECK: call void @hf_redo_commit_or_throw()
define void @promises(ptr %p) #2 {
  store i64 1, ptr %p
  ret void
}

define internal void @throws(ptr %p) noinline personality ptr @__gxx_personality_v0 {
  %e = call ptr @__cxa_allocate_exception(i64 4)
  store i32 7, ptr %e
  call void @__cxa_throw(ptr %e, ptr @_ZTIi, ptr null)
  unreachable
}

; CHECK-LABEL: define internal void @handles.hf_body(
; CHECK: call i64 @strlen(
; CHECK: invoke void @throws.hf(ptr %p)
; CHECK: landingpad
; CHECK: call ptr @hf_redo_write(ptr %p, i64 8)
define void @handles(ptr %p) #0 personality ptr @__gxx_personality_v0 {
  %n = invoke i64 @strlen(ptr %p) to label %go unwind label %pad
go:
  invoke void @throws(ptr %p) to label %done unwind label %pad
pad:
  %e = landingpad { ptr, i32 }
          catch ptr null
  %at = extractvalue { ptr, i32 } %e, 0
  %o = call ptr @__cxa_begin_catch(ptr %at)
  store i64 3, ptr %p, align 8
  call void @__cxa_end_catch()
  ret void
done:
  ret void
}

; An exception is in nobody's pool.
; CHECK-LABEL: define internal void @throws.hf(
; CHECK: %[[E:.*]] = call ptr @__cxa_allocate_exception(i64 4)
; CHECK-NEXT: store i32 7, ptr %[[E]]
; CHECK-NEXT: call void @__cxa_throw(ptr %[[E]]

attributes #0 = { noinline "holdfast.txfunc" }
attributes #1 = { noinline nounwind "holdfast.txfunc" }
attributes #2 = { noinline nounwind "holdfast.txfunc" "holdfast.may-throw" }
