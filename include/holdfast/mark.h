/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * The words that mark functions for the compiler, for C and C++. Without the plugin, and with
 * other compilers, they change nothing: that is engine "none". */
#ifndef HOLDFAST_MARK_H
#define HOLDFAST_MARK_H

#if defined(__clang__)
/* A failure-atomic function (docs/guide/writing-a-failure-atomic-function.md). */
#define HF_TXFUNC __attribute__((annotate("holdfast.txfunc"), noinline))
/* Promises that a function whose body the compiler cannot see neither reads nor writes memory that
 * the section may write, and always returns the same for the same arguments. */
#define HF_PURE __attribute__((annotate("holdfast.pure")))
/* For hf::tx: the arguments are a closure, which must not hold addresses of volatile variables. */
#define HF_CLOSURE __attribute__((annotate("holdfast.closure")))
#else
#define HF_TXFUNC __attribute__((noinline))
#define HF_PURE
#define HF_CLOSURE
#endif

#endif
