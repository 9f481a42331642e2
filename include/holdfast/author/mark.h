/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * The words that mark functions for the compiler, for C and C++.
 *
 * Compiled without the plugin, a failure-atomic function is a plain function that survives no
 * crash. Such a program must not run by accident, so it cannot open a pool with an engine for
 * sections (errc::not_instrumented): HF_TXFUNC puts the function into an ELF section, and the
 * plugin takes it out again. GCC, which has no such plugin, refuses to compile calls of it. A
 * program that wants plain functions (unit tests, measurements) defines HOLDFAST_UNINSTRUMENTED;
 * ENGINE none does that. */
#ifndef HOLDFAST_MARK_H
#define HOLDFAST_MARK_H

#if defined(__clang__)
/* A failure-atomic function (docs/guide/writing-a-failure-atomic-function.md). */
#if defined(HOLDFAST_UNINSTRUMENTED)
#define HF_TXFUNC __attribute__((annotate("holdfast.txfunc"), noinline))
#else
#define HF_TXFUNC                                                                                  \
    __attribute__((annotate("holdfast.txfunc"), noinline, section("hf_uninstrumented")))
#endif
/* Promises that a function whose body the compiler cannot see neither reads nor writes memory that
 * the section may write, and always returns the same for the same arguments. */
#define HF_PURE __attribute__((annotate("holdfast.pure")))
/* A function without HF_TXFUNC that sections of other files may call: at its declaration in a
 * header. Its stores are then the section's; called outside of sections it is a plain function. */
#define HF_SECTION __attribute__((annotate("holdfast.section")))
/* For hf::tx: the arguments are a closure, which must not hold addresses of volatile variables. */
#define HF_CLOSURE __attribute__((annotate("holdfast.closure")))
/* A parameter of a failure-atomic function: an object of a trivially copyable type of more than 16
 * bytes. ARM64 passes it by its address, and the compiler does not see by that that it is no
 * pointer. Engines auto and redo do not need the mark. */
#if defined(__aarch64__)
#define HF_BY_VALUE __attribute__((annotate("holdfast.by_value")))
#else
#define HF_BY_VALUE
#endif
/* A member of an object in a pool that the next process cannot use as it stands, such as a pointer
 * to a function: the program sets it anew after each open, before anything reads it. */
#define HF_VOLATILE_OK __attribute__((annotate("holdfast.volatile_ok")))
#else
#if defined(HOLDFAST_UNINSTRUMENTED)
#define HF_TXFUNC __attribute__((noinline))
#else
#define HF_TXFUNC                                                                                  \
    __attribute__((noinline,                                                                       \
                   error("HF_TXFUNC is not failure-atomic without Holdfast's plugin for "          \
                         "clang 19; -DHOLDFAST_UNINSTRUMENTED if that is meant")))
#endif
#define HF_PURE
#define HF_SECTION
#define HF_CLOSURE
#define HF_BY_VALUE
#define HF_VOLATILE_OK
#endif

#endif
