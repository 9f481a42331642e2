; SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
; What tracing does to a function: its promises, its locals, its lines; functions that 'optnone'.
; RUN: %hf_opt -passes=holdfast-trace,verify %s | FileCheck %s

; It calls the checker now.
define i64 @pure(ptr nocapture readonly %p) memory(argmem: read) nosync willreturn {
; CHECK-LABEL: define i64 @pure(ptr %p)
; CHECK-NOT: memory
; CHECK: call void @hf_trace_load(ptr %p, i64 8)
  %x = load i64, ptr %p
  ret i64 %x
}

; An alloca behind a split would be dynamic: one more with every call of a loop that was inlined.
define i64 @late_local(ptr %p) {
; CHECK-LABEL: define i64 @late_local(
; CHECK-NEXT: %a = alloca i64
; CHECK: br i1
  %x = load i64, ptr %p
  %a = alloca i64
  store i64 %x, ptr %a
  %y = load i64, ptr %a
  ret i64 %y
}

define void @optnone(ptr %p) noinline optnone {
; CHECK-LABEL: define void @optnone(
; CHECK: call void @hf_trace_store(ptr %p, i64 8)
  store i64 1, ptr %p
  ret void
}

; The report has the line of its access, or where there is none that of no line.
define void @line(ptr %p) !dbg !4 {
; CHECK-LABEL: define void @line(
; CHECK: call void @hf_trace_store(ptr %p, i64 8) {{.*}}!dbg ![[LINE:[0-9]+]]
; CHECK: call void @hf_trace_store(ptr %p, i64 4) {{.*}}!dbg ![[NONE:[0-9]+]]
  store i64 1, ptr %p, !dbg !7
  store i32 1, ptr %p
  ret void
}

; CHECK: ![[LINE]] = !DILocation(line: 5, column: 3
; CHECK: ![[NONE]] = !DILocation(line: 0
!llvm.dbg.cu = !{!0}
!llvm.module.flags = !{!2}
!0 = distinct !DICompileUnit(language: DW_LANG_C_plus_plus_14, file: !1, emissionKind: LineTablesOnly)
!1 = !DIFile(filename: "a.cpp", directory: "/")
!2 = !{i32 2, !"Debug Info Version", i32 3}
!4 = distinct !DISubprogram(name: "line", file: !1, line: 4, type: !5, unit: !0, spFlags: DISPFlagDefinition)
!5 = !DISubroutineType(types: !6)
!6 = !{}
!7 = !DILocation(line: 5, column: 3, scope: !4)
