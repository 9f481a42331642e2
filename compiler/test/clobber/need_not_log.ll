; SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
; Writes that provably overwrite no input: noted, not logged.
; RUN: %hf_opt -passes=holdfast-instrument %s | FileCheck %s

target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"

; Nothing was read.
define void @output_only(ptr %p) #0 {
; CHECK-LABEL: define internal void @output_only.hf_body(
; CHECK-NEXT: call void @hf_clobber_note(ptr %p, i64 8)
; CHECK-NEXT: store i64 7, ptr %p
; CHECK-NEXT: ret void
  store i64 7, ptr %p
  ret void
}

; What is read was written first, on every path, all of it.
define void @own_result(ptr %p, ptr %q) #0 {
; CHECK-LABEL: define internal void @own_result.hf_body(
; CHECK-NOT: hf_clobber_log
; CHECK: ret void
  store i64 7, ptr %p
  %x = load i32, ptr %p
  store i32 %x, ptr %q
  ret void
}

; Two fields of one object.
define void @other_bytes(ptr %p) #0 {
; CHECK-LABEL: define internal void @other_bytes.hf_body(
; CHECK-NOT: hf_clobber_log
; CHECK: ret void
  %x = load i64, ptr %p
  %q = getelementptr i8, ptr %p, i64 8
  store i64 %x, ptr %q
  ret void
}

; The write comes before the read and never after it.
define i64 @write_first(ptr %p, ptr %q) #0 {
; CHECK-LABEL: define internal i64 @write_first.hf_body(
; CHECK-NOT: hf_clobber_log
; CHECK: ret i64
  store i64 7, ptr %p
  %x = load i64, ptr %q
  ret i64 %x
}

; Fresh memory holds no inputs, and one note does for neighbouring stores.
define void @fresh(ptr %head, i64 %v) #0 {
; CHECK-LABEL: define internal void @fresh.hf_body(
; CHECK: call void @hf_clobber_note(ptr %n, i64 16)
; CHECK-NEXT: store ptr %old, ptr %n
; CHECK-NOT: call void @hf_clobber_note
; CHECK: call void @hf_clobber_log(ptr %head, i64 8)
; CHECK-NEXT: store ptr %n, ptr %head
; CHECK-NOT: call
  %old = load ptr, ptr %head
  %n = call ptr @hf_alloc(i64 16)
  store ptr %old, ptr %n
  %value = getelementptr i8, ptr %n, i64 8
  store i64 %v, ptr %value
  store ptr %n, ptr %head
  ret void
}

; ... also when a helper allocates.
define void @fresh_by_helper(ptr %head) #0 {
; CHECK-LABEL: define internal void @fresh_by_helper.hf_body(
; CHECK: call void @hf_clobber_note(ptr %n, i64 8)
; CHECK-NOT: hf_clobber_log(ptr %n
  %old = load ptr, ptr %head
  %n = call ptr @make()
  store ptr %old, ptr %n
  ret void
}
define internal ptr @make() noinline {
  %n = call ptr @hf_alloc(i64 16)
  %none = icmp eq ptr %n, null
  br i1 %none, label %full, label %some
full:
  ret ptr null
some:
  store i64 1, ptr %n
  ret ptr %n
}

; Locals are made again by re-execution: neither logged nor noted.
define i64 @locals(ptr %p) #0 {
; CHECK-LABEL: define internal i64 @locals.hf_body(
; CHECK-NOT: call void @hf
; CHECK: ret i64
  %a = alloca [4 x i64]
  %x = load i64, ptr %p
  store i64 %x, ptr %a
  %y = load i64, ptr %a
  %z = add i64 %y, %x
  store i64 %z, ptr %a
  %r = load i64, ptr %a
  ret i64 %r
}

; Constants are no inputs that anything could overwrite.
@table = constant [4 x i64] [i64 1, i64 2, i64 3, i64 4]
define void @constant_input(ptr %p, i64 %i) #0 {
; CHECK-LABEL: define internal void @constant_input.hf_body(
; CHECK-NOT: hf_clobber_log
; CHECK: ret void
  %at = getelementptr i64, ptr @table, i64 %i
  %x = load i64, ptr %at
  store i64 %x, ptr %p
  ret void
}

; Recorded volatile bytes are in the v_log.
define void @preserved(ptr %p, ptr %v) #0 {
; CHECK-LABEL: define internal void @preserved.hf_body(
; CHECK-NOT: hf_clobber_log
; CHECK: ret void
  %kept = call ptr @hf_vlog_preserve(ptr %v, i64 8)
  %x = load i64, ptr %kept
  store i64 %x, ptr %p
  ret void
}

; A called function that reads its arguments' memory alone has read nothing but a local, and a fresh block
; of which nobody has the address as a number.
define void @reads_local(ptr %p) #0 {
; CHECK-LABEL: define internal void @reads_local.hf_body(
; CHECK-NOT: hf_clobber_log
; CHECK: ret void
  %local = alloca i64
  store i64 5, ptr %local
  %block = call ptr @hf_alloc(i64 8)
  store i64 5, ptr %block
  %x = call i64 @reads(ptr %local)
  %y = call i64 @reads(ptr %block)
  store i64 %x, ptr %p
  ret void
}
define i64 @reads(ptr nocapture %p) noinline memory(argmem: read) {
  %x = load i64, ptr %p
  ret i64 %x
}

; Or reads nothing: it stores, and through that argument it only stores.
define void @only_writes(ptr %p, ptr %q) #0 {
; CHECK-LABEL: define internal void @only_writes.hf_body(
; CHECK-NOT: hf_clobber_log
; CHECK: ret void
  %local = alloca i64
  store i64 5, ptr %local
  call void @writes(ptr %p)
  call void @copies(ptr %p, ptr %local)
  store i64 7, ptr %q
  ret void
}
define void @writes(ptr %p) noinline memory(argmem: write) {
  store i64 7, ptr %p
  ret void
}
define void @copies(ptr writeonly %p, ptr nocapture %q) noinline memory(argmem: readwrite) {
  %x = load i64, ptr %q
  store i64 %x, ptr %p
  ret void
}

declare ptr @hf_alloc(i64)
declare ptr @hf_vlog_preserve(ptr, i64)

attributes #0 = { noinline "holdfast.txfunc" }

; A relocatable program has no entries in line (words.ll): the calls alone say what is logged.
!holdfast.relocatable = !{}
