; SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
; A walk in a loop, by any of many links: it is told where its place lies, and how many ways lead there is of no account.
; RUN: %hf_opt -passes=holdfast-instrument,verify -holdfast-engine=justdo %s | FileCheck %s

; CHECK-LABEL: define void @entry(
; CHECK: call ptr @hf_justdo_enter(
define internal void @walk(ptr %p, i64 %bits) noinline {
entry:
  %first = load ptr, ptr %p
  br label %loop
loop:
  %at = phi ptr [ %first, %entry ], [ %next, %loop ]
  %left = phi i64 [ %bits, %entry ], [ %fewer, %loop ]
  %link.0 = getelementptr i8, ptr %at, i64 0
  %to.0 = load ptr, ptr %link.0
  %link.1 = getelementptr i8, ptr %at, i64 8
  %to.1 = load ptr, ptr %link.1
  %link.2 = getelementptr i8, ptr %at, i64 16
  %to.2 = load ptr, ptr %link.2
  %link.3 = getelementptr i8, ptr %at, i64 24
  %to.3 = load ptr, ptr %link.3
  %link.4 = getelementptr i8, ptr %at, i64 32
  %to.4 = load ptr, ptr %link.4
  %link.5 = getelementptr i8, ptr %at, i64 40
  %to.5 = load ptr, ptr %link.5
  %link.6 = getelementptr i8, ptr %at, i64 48
  %to.6 = load ptr, ptr %link.6
  %link.7 = getelementptr i8, ptr %at, i64 56
  %to.7 = load ptr, ptr %link.7
  %link.8 = getelementptr i8, ptr %at, i64 64
  %to.8 = load ptr, ptr %link.8
  %link.9 = getelementptr i8, ptr %at, i64 72
  %to.9 = load ptr, ptr %link.9
  %link.10 = getelementptr i8, ptr %at, i64 80
  %to.10 = load ptr, ptr %link.10
  %link.11 = getelementptr i8, ptr %at, i64 88
  %to.11 = load ptr, ptr %link.11
  %link.12 = getelementptr i8, ptr %at, i64 96
  %to.12 = load ptr, ptr %link.12
  %link.13 = getelementptr i8, ptr %at, i64 104
  %to.13 = load ptr, ptr %link.13
  %link.14 = getelementptr i8, ptr %at, i64 112
  %to.14 = load ptr, ptr %link.14
  %link.15 = getelementptr i8, ptr %at, i64 120
  %to.15 = load ptr, ptr %link.15
  %link.16 = getelementptr i8, ptr %at, i64 128
  %to.16 = load ptr, ptr %link.16
  %link.17 = getelementptr i8, ptr %at, i64 136
  %to.17 = load ptr, ptr %link.17
  %link.18 = getelementptr i8, ptr %at, i64 144
  %to.18 = load ptr, ptr %link.18
  %link.19 = getelementptr i8, ptr %at, i64 152
  %to.19 = load ptr, ptr %link.19
  %link.20 = getelementptr i8, ptr %at, i64 160
  %to.20 = load ptr, ptr %link.20
  %link.21 = getelementptr i8, ptr %at, i64 168
  %to.21 = load ptr, ptr %link.21
  %link.22 = getelementptr i8, ptr %at, i64 176
  %to.22 = load ptr, ptr %link.22
  %link.23 = getelementptr i8, ptr %at, i64 184
  %to.23 = load ptr, ptr %link.23
  %is.1 = icmp eq i64 %left, 1
  %way.1 = select i1 %is.1, ptr %to.1, ptr %to.0
  %is.2 = icmp eq i64 %left, 2
  %way.2 = select i1 %is.2, ptr %to.2, ptr %way.1
  %is.3 = icmp eq i64 %left, 3
  %way.3 = select i1 %is.3, ptr %to.3, ptr %way.2
  %is.4 = icmp eq i64 %left, 4
  %way.4 = select i1 %is.4, ptr %to.4, ptr %way.3
  %is.5 = icmp eq i64 %left, 5
  %way.5 = select i1 %is.5, ptr %to.5, ptr %way.4
  %is.6 = icmp eq i64 %left, 6
  %way.6 = select i1 %is.6, ptr %to.6, ptr %way.5
  %is.7 = icmp eq i64 %left, 7
  %way.7 = select i1 %is.7, ptr %to.7, ptr %way.6
  %is.8 = icmp eq i64 %left, 8
  %way.8 = select i1 %is.8, ptr %to.8, ptr %way.7
  %is.9 = icmp eq i64 %left, 9
  %way.9 = select i1 %is.9, ptr %to.9, ptr %way.8
  %is.10 = icmp eq i64 %left, 10
  %way.10 = select i1 %is.10, ptr %to.10, ptr %way.9
  %is.11 = icmp eq i64 %left, 11
  %way.11 = select i1 %is.11, ptr %to.11, ptr %way.10
  %is.12 = icmp eq i64 %left, 12
  %way.12 = select i1 %is.12, ptr %to.12, ptr %way.11
  %is.13 = icmp eq i64 %left, 13
  %way.13 = select i1 %is.13, ptr %to.13, ptr %way.12
  %is.14 = icmp eq i64 %left, 14
  %way.14 = select i1 %is.14, ptr %to.14, ptr %way.13
  %is.15 = icmp eq i64 %left, 15
  %way.15 = select i1 %is.15, ptr %to.15, ptr %way.14
  %is.16 = icmp eq i64 %left, 16
  %way.16 = select i1 %is.16, ptr %to.16, ptr %way.15
  %is.17 = icmp eq i64 %left, 17
  %way.17 = select i1 %is.17, ptr %to.17, ptr %way.16
  %is.18 = icmp eq i64 %left, 18
  %way.18 = select i1 %is.18, ptr %to.18, ptr %way.17
  %is.19 = icmp eq i64 %left, 19
  %way.19 = select i1 %is.19, ptr %to.19, ptr %way.18
  %is.20 = icmp eq i64 %left, 20
  %way.20 = select i1 %is.20, ptr %to.20, ptr %way.19
  %is.21 = icmp eq i64 %left, 21
  %way.21 = select i1 %is.21, ptr %to.21, ptr %way.20
  %is.22 = icmp eq i64 %left, 22
  %way.22 = select i1 %is.22, ptr %to.22, ptr %way.21
  %is.23 = icmp eq i64 %left, 23
  %way.23 = select i1 %is.23, ptr %to.23, ptr %way.22
  %next = getelementptr i8, ptr %way.23, i64 0
  %fewer = lshr i64 %left, 1
  %done = icmp eq i64 %fewer, 0
  br i1 %done, label %end, label %loop
end:
  %value = getelementptr i8, ptr %next, i64 256
  store i64 1, ptr %value
  ret void
}
define void @entry(ptr %p, i64 %bits) "holdfast.txfunc" {
  call void @walk(ptr %p, i64 %bits)
  ret void
}
