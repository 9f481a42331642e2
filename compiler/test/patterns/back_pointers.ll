; SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
; A pointer back that follows from the links, as a suggestion: with engine selective alone, whose program may say so.
; RUN: %hf_opt -passes=holdfast-instrument -holdfast-engine=selective -pass-remarks-analysis=holdfast %s -o /dev/null 2>&1 | FileCheck %s --implicit-check-not=remark
; RUN: %hf_opt -passes=holdfast-instrument -holdfast-engine=undo -pass-remarks-analysis=holdfast %s -o /dev/null 2>&1 | FileCheck %s --check-prefix=UNDO --allow-empty
; UNDO-NOT: remark

%node = type { ptr, ptr, ptr } ; left, right, parent

; Linked from either side, on every way: the parents could be lazy, the children not.
define void @adopt(ptr %p, ptr %c, ptr %d) #0 {
; CHECK: remark: {{.*}}could be hf::lazy
; CHECK: remark: {{.*}}could be hf::lazy
  %left = getelementptr %node, ptr %p, i64 0, i32 0
  store ptr %c, ptr %left
  %right = getelementptr %node, ptr %p, i64 0, i32 1
  store ptr %d, ptr %right
  %parent_c = getelementptr %node, ptr %c, i64 0, i32 2
  store ptr %p, ptr %parent_c
  %parent_d = getelementptr %node, ptr %d, i64 0, i32 2
  store ptr %p, ptr %parent_d
  ret void
}

; The link comes later, on one side or the other; where there is no parent there is none.
define void @replace(ptr %p, ptr %c, i1 %side) #0 {
; CHECK: remark: {{.*}}could be hf::lazy
  %parent = getelementptr %node, ptr %c, i64 0, i32 2
  store ptr %p, ptr %parent
  %top = icmp eq ptr %p, null
  br i1 %top, label %done, label %below
below:
  %left = getelementptr %node, ptr %p, i64 0, i32 0
  %right = getelementptr %node, ptr %p, i64 0, i32 1
  %link = select i1 %side, ptr %left, ptr %right
  store ptr %c, ptr %link
  br label %done
done:
  ret void
}

; On one way nothing links.
define void @sometimes(ptr %p, ptr %c, ptr %d, i1 %side) #0 {
  %parent = getelementptr %node, ptr %c, i64 0, i32 2
  store ptr %p, ptr %parent
  br i1 %side, label %below, label %done
below:
  %at = zext i1 %side to i64
  %link = getelementptr ptr, ptr %p, i64 %at
  store ptr %c, ptr %link
  br label %done
done:
  ret void
}

; Where there is a parent nothing links: where there is none, what is linked is linked elsewhere.
define void @of_none(ptr %p, ptr %c, i64 %side) #0 {
  %parent = getelementptr %node, ptr %c, i64 0, i32 2
  store ptr %p, ptr %parent
  %top = icmp eq ptr %p, null
  br i1 %top, label %above, label %done
above:
  %link = getelementptr ptr, ptr %p, i64 %side
  store ptr %c, ptr %link
  br label %done
done:
  ret void
}

; What is linked in the next iteration is another one.
define void @next_one(ptr %p, ptr %a, ptr %b, i64 %side) #0 {
  br label %loop
loop:
  %c = phi ptr [ %a, %0 ], [ %b, %back ]
  %first = phi i1 [ true, %0 ], [ false, %back ]
  br i1 %first, label %set, label %linked
set:
  %parent = getelementptr %node, ptr %c, i64 0, i32 2
  store ptr %p, ptr %parent
  br label %back
back:
  br label %loop
linked:
  %link = getelementptr ptr, ptr %p, i64 %side
  store ptr %c, ptr %link
  ret void
}

; Another object is linked, or from another.
define void @others(ptr %p, ptr %q, ptr %c, ptr %d, i64 %side) #0 {
  %one = getelementptr ptr, ptr %p, i64 %side
  store ptr %d, ptr %one
  %other = getelementptr ptr, ptr %q, i64 %side
  store ptr %c, ptr %other
  %parent = getelementptr %node, ptr %c, i64 0, i32 2
  store ptr %p, ptr %parent
  ret void
}

define void @from_another(ptr %p, ptr %q, ptr %c, i64 %side) #0 {
  %other = getelementptr ptr, ptr %q, i64 %side
  store ptr %c, ptr %other
  %parent = getelementptr %node, ptr %c, i64 0, i32 2
  store ptr %p, ptr %parent
  ret void
}

; The way back of a list is as good as the way there.
define void @list(ptr %a, ptr %b) #0 {
  %next = getelementptr %node, ptr %a, i64 0, i32 0
  store ptr %b, ptr %next
  %previous = getelementptr %node, ptr %b, i64 0, i32 1
  store ptr %a, ptr %previous
  ret void
}

attributes #0 = { noinline "holdfast.txfunc" }
