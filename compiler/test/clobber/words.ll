; SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
; Engines undo and selective: where the medium keeps order an entry of the log is made in line, before the store that it is
; for; a call remains for what has no room, lies elsewhere, or has no constant length, unless it goes to memory that the section took
; last.
; RUN: %hf_opt -passes=holdfast-instrument -holdfast-engine=undo %s | FileCheck %s
; RUN: %hf_opt -passes=holdfast-instrument -holdfast-engine=selective %s | FileCheck %s --check-prefix=SELECTIVE
; RUN: %hf_opt -passes=holdfast-instrument -holdfast-engine=clobber %s | FileCheck %s --check-prefix=CLOBBER
; RUN: %hf_opt -passes=holdfast-instrument -holdfast-engine=redo %s | FileCheck %s --check-prefix=CALLS

; CHECK: @hf_words = external thread_local(initialexec) global
; CALLS-NOT: @hf_words

define void @half_word(ptr %p) #0 {
; CHECK-LABEL: define internal void @half_word.hf_body(
; CHECK: %[[NEXT:.*]] = load ptr, ptr
; CHECK: %[[LIMIT:.*]] = load ptr, ptr
; CHECK: %[[ROOM:.*]] = icmp ult ptr %[[NEXT]], %[[LIMIT]]
; CHECK: br i1 %[[ROOM]], label %[[CHECK:.*]], label %[[CALL:.*]], !prof
; CHECK: [[CHECK]]:
; CHECK: %[[OFFSET:.*]] = sub i64
; CHECK: icmp ult i64 %[[OFFSET]],
; CHECK: br i1 {{.*}}, label %[[WRITE:.*]], label %[[CALL]], !prof
; CHECK: [[WRITE]]:
; CHECK: %[[WHAT:.*]] = or i64 %[[OFFSET]], -8935141660703064064
; CHECK: %[[OLD:.*]] = load i32, ptr %p, align 1
; CHECK: store i64 %[[WHAT]], ptr %[[NEXT]]
; CHECK: zext i32 %[[OLD]] to i64
; CHECK: store ptr
; CHECK: store atomic i64 {{.*}} release
; CHECK-NEXT: fence syncscope("singlethread") seq_cst
; CHECK: [[CALL]]:
; CHECK: icmp ult i64
; CHECK-NEXT: br i1 {{.*}}, label %{{.*}}, label %[[SLOW:.*]]
; CHECK: [[SLOW]]:
; CHECK-NEXT: call void @hf_undo_log(ptr %p, i64 4)
; CHECK: store i32 7, ptr %p
; SELECTIVE-LABEL: define internal void @half_word.hf_body(
; SELECTIVE: store atomic i64 {{.*}} release
; SELECTIVE-NEXT: fence syncscope("singlethread") seq_cst
; SELECTIVE: call void @hf_selective_log(ptr %p, i64 4)
; SELECTIVE: store i32 7, ptr %p
  store i32 7, ptr %p
  ret void
}

; What a loop stores to again and again is left to the call.
define void @again(ptr %p, i64 %n) #0 {
; CHECK-LABEL: define internal void @again.hf_body(
; CHECK-NOT: fence
; CHECK: call void @hf_undo_log(ptr %p, i64 8)
; CHECK-NOT: fence
; CHECK: store i64 %i, ptr %p
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %more, %loop ]
  store i64 %i, ptr %p
  %more = add i64 %i, 1
  %goes_on = icmp ult i64 %more, %n
  br i1 %goes_on, label %loop, label %done
done:
  ret void
}

; Of up to three words each gets an entry. They are counted together, and the pool ends where the last one does.
define void @three_words(ptr %p, ptr %q) #0 {
; CHECK-LABEL: define internal void @three_words.hf_body(
; CHECK: %[[NEXT:.*]] = load ptr, ptr
; CHECK: %[[LIMIT:.*]] = load ptr, ptr
; CHECK: %[[LAST:.*]] = getelementptr i8, ptr %[[NEXT]], i64 32
; CHECK: icmp ult ptr %[[LAST]], %[[LIMIT]]
; CHECK: %[[OFFSET:.*]] = sub i64
; CHECK: %[[END:.*]] = sub i64 {{.*}}, 16
; CHECK: icmp ult i64 %[[OFFSET]], %[[END]]
; CHECK: load i64, ptr %p, align 1
; CHECK-NOT: fence
; CHECK: add i64 %[[OFFSET]],
; CHECK: load i64, ptr {{.*}}, align 1
; CHECK-NOT: fence
; CHECK: add i64 %[[OFFSET]],
; CHECK: load i64, ptr {{.*}}, align 1
; CHECK: store atomic i64 {{.*}} release
; CHECK-NEXT: fence syncscope("singlethread") seq_cst
; CHECK: call void @hf_undo_log(ptr %p, i64 24)
; CHECK: call void @llvm.memcpy
  call void @llvm.memcpy.p0.p0.i64(ptr %p, ptr %q, i64 24, i1 false)
  ret void
}

; A long range is one entry.
define void @range(ptr %p, ptr %q) #0 {
; CHECK-LABEL: define internal void @range.hf_body(
; CHECK-NOT: fence
; CHECK: call void @hf_undo_log(ptr %p, i64 64)
; CHECK-NEXT: call void @llvm.memcpy
  call void @llvm.memcpy.p0.p0.i64(ptr %p, ptr %q, i64 64, i1 false)
  ret void
}

; A note is nothing there.
define void @fresh() #0 {
; CHECK-LABEL: define internal void @fresh.hf_body(
; CHECK: br i1 {{.*}}, label %[[GOES_ON:.*]], label %[[CALL:.*]], !prof
; CHECK: [[CALL]]:
; CHECK: icmp ult i64
; CHECK-NEXT: br i1 {{.*}}, label %[[GOES_ON]], label %[[SLOW:.*]]
; CHECK: [[SLOW]]:
; CHECK-NEXT: call void @hf_undo_note(ptr %n, i64 8)
; CHECK: [[GOES_ON]]:
; CHECK-NEXT: store i64 7, ptr %n
  %n = call ptr @hf_alloc(i64 16)
  store i64 7, ptr %n
  ret void
}

; Of engine clobber an input's entry is in line; what is overwritten unread is kept by a call.
define void @counts(ptr %p, ptr %q) #0 {
; CLOBBER-LABEL: define internal void @counts.hf_body(
; CLOBBER: fence syncscope("singlethread") seq_cst
; CLOBBER: call void @hf_log_ahead(ptr %p, i64 8)
; CLOBBER: call void @hf_clobber_note(ptr %q, i64 8)
; CLOBBER-NEXT: store i64 7, ptr %q
; CLOBBER: call void @hf_clobber_note(ptr %p, i64 8){{.*}} !holdfast.no_entry
; CLOBBER: store i64 %more, ptr %p
  store i64 7, ptr %q
  %old = load i64, ptr %p
  %more = add i64 %old, 1
  store i64 %more, ptr %p
  ret void
}

; What is said to need no log is nothing there, either.
define void @said(ptr %p) #0 {
; SELECTIVE-LABEL: define internal void @said.hf_body(
; SELECTIVE: br i1 {{.*}}, label %[[GOES_ON:.*]], label %[[CALL:.*]], !prof
; SELECTIVE: [[CALL]]:
; SELECTIVE: icmp ult i64
; SELECTIVE-NEXT: br i1 {{.*}}, label %[[GOES_ON]], label %[[SLOW:.*]]
; SELECTIVE: [[SLOW]]:
; SELECTIVE-NEXT: call void @hf_log_free(ptr %p, i64 8)
; SELECTIVE: [[GOES_ON]]:
; SELECTIVE-NEXT: store i64 7, ptr %p
  call void @hf_log_free(ptr %p, i64 8)
  store i64 7, ptr %p
  ret void
}

declare void @hf_log_free(ptr, i64)
declare ptr @hf_alloc(i64)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
attributes #0 = { noinline "holdfast.txfunc" }
