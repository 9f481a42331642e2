// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The litmus tests written by hand. The sentences are verdicts of the literature, or follow from a
// rule that it states: SB, MP and the like from x86-TSO (Sewell et al., CACM'10); Px86 orders from
// POPL'20; completion of flushes at fences from POPL'21; non-temporal stores from
// POPL'22 and the instruction manual. Tests without a sentence are only compared.
#include <check/litmus/litmus.hpp>

namespace hf::check::litmus {
namespace {

constexpr auto adr = hf::domain::adr;
constexpr auto eadr = hf::domain::eadr;
constexpr auto process = hf::domain::process;

std::vector<litmus_test> volatile_order() {
    return {
        {"SB", adr, "x=1; a=y || y=1; b=x", "final allows a=0 b=0; final allows a=1 b=1"},
        {"SB+mfences", adr, "x=1; mfence; a=y || y=1; mfence; b=x", "final forbids a=0 b=0"},
        {"SB+mfence+po", adr, "x=1; mfence; a=y || y=1; b=x", "final allows a=0 b=0"},
        {"SB+sfences", adr, "x=1; sfence; a=y || y=1; sfence; b=x", "final allows a=0 b=0"},
        {"SB+locked", adr, "x=1; c=xchg z 1; a=y || y=1; d=xchg w 1; b=x", "final forbids a=0 b=0"},
        {"SB+xchg-stores", adr, "c=xchg x 1; a=y || d=xchg y 1; b=x", "final forbids a=0 b=0"},
        {"SB+flushes", adr, "x=1; clflush x; a=y || y=1; clflush y; b=x",
         "final allows a=0 b=0; done forbids x=0; crash allows a=0 x=0"},
        {"SB-forwarding", adr, "x=1; a=x; b=y || y=1; c=y; d=x",
         "final allows a=1 b=0 c=1 d=0; final forbids a=0; final forbids c=0"},
        {"MP", adr, "x=1; y=1 || a=y; b=x", "final forbids a=1 b=0; final allows a=0 b=1"},
        {"MP-same-line", adr, "x=1; x1=1 || a=x1; b=x", "final forbids a=1 b=0"},
        {"LB", adr, "a=x; y=1 || b=y; x=1", "final forbids a=1 b=1"},
        {"S", adr, "x=2; y=1 || a=y; x=1", "final forbids a=1 x=2"},
        {"R", adr, "x=1; y=1 || y=2; a=x", "final allows y=2 a=0"},
        {"R+mfence", adr, "x=1; y=1 || y=2; mfence; a=x", "final forbids y=2 a=0"},
        {"2+2W", adr, "x=1; y=2 || y=1; x=2", "final forbids x=1 y=1; final allows x=2 y=2"},
        {"CoRR", adr, "x=1 || x=2 || a=x; b=x", "final forbids a=1 b=0; final allows a=1 b=2"},
        {"CoWW", adr, "x=1; x=2 || a=x; b=x", "final forbids x=1; final forbids a=2 b=1"},
        {"WRC", adr, "x=1 || a=x; y=1 || b=y; c=x", "final forbids a=1 b=1 c=0"},
        {"IRIW-2", adr, "x=1; y=1 || a=x; b=y || c=y; d=x", "final forbids c=1 d=0"},
        {"xchg-xchg", adr, "a=xchg x 1 || b=xchg x 2",
         "final forbids a=0 b=0; final forbids a=2 b=1"},
        {"add-add", adr, "a=add x 1 || b=add x 1", "final forbids x=1; final forbids a=0 b=0"},
        {"cas-cas", adr, "a=cas x 0 1 || b=cas x 0 2",
         "final forbids a=0 b=0; final allows x=2 a=2"},
        {"cas-fails-fences", adr, "x=1; a=cas z 5 1; b=y || y=1; mfence; c=x",
         "final forbids b=0 c=0; final forbids z=1"},
        {"store-under-add", adr, "x=3 || a=add x 1; b=add x 1",
         "final allows x=5; final allows x=4"},
    };
}

std::vector<litmus_test> persist_order() {
    return {
        {"two-lines", adr, "x=1; y=1", "crash allows x=0 y=1; done allows x=0 y=0"},
        {"one-line", adr, "x=1; x1=1", "crash forbids x=0 x1=1; crash allows x=1 x1=0"},
        {"one-line-reversed", adr, "x1=1; x=1", "crash forbids x=1 x1=0"},
        {"one-line-three", adr, "x=1; x1=1; x2=1",
         "crash forbids x=0 x2=1; crash forbids x1=0 x2=1"},
        {"one-line-around-another", adr, "x=1; y=1; x1=1",
         "crash forbids x=0 x1=1; crash allows x1=1 y=0"},
        {"one-line-two-threads", adr, "x=1; x1=1 || a=x1; x2=1", "crash forbids x=0 x2=1 a=1"},
        {"one-word-twice", adr, "x=1; x=2; y=1", "crash allows y=1 x=1; crash allows y=1 x=0"},
        {"ABA", adr, "x=1; x1=1; x=0", "crash allows x=0 x1=1; crash allows x=1 x1=1"},
        {"same-value-again", adr, "x=1; x1=1; x=1; clwb x; sfence; y=1", "crash forbids y=1 x1=0"},
        {"clflush", adr, "x=1; clflush x; y=1", "crash forbids y=1 x=0; crash allows x=0 y=0"},
        {"clflush-other-line", adr, "x=1; clflush y; y=1", "crash allows y=1 x=0"},
        {"clflush-by-word-of-line", adr, "x=1; clflush x3; y=1", "crash forbids y=1 x=0"},
        {"clflush-first", adr, "clflush x; x=1; y=1", "crash allows y=1 x=0"},
        {"clflush-done", adr, "x=1; clflush x", "done forbids x=0; crash allows x=0"},
        {"clflush-prefix", adr, "x=1; clflush x; x1=1; y=1",
         "crash forbids y=1 x=0; crash allows y=1 x1=0; crash forbids x1=1 x=0"},
        {"clflush-between", adr, "x=1; clflush x; x=2; y=1",
         "crash allows y=1 x=1; crash forbids y=1 x=0"},
        {"clflushopt", adr, "x=1; clflushopt x; y=1", "crash allows y=1 x=0"},
        {"clwb", adr, "x=1; clwb x; y=1", "crash allows y=1 x=0"},
        {"clflushopt-done", adr, "x=1; clflushopt x", "done allows x=0"},
        {"clflushopt+sfence", adr, "x=1; clflushopt x; sfence; y=1",
         "crash forbids y=1 x=0; done allows x=1 y=0"},
        {"clwb+sfence", adr, "x=1; clwb x; sfence; y=1", "crash forbids y=1 x=0"},
        {"clwb+mfence", adr, "x=1; clwb x; mfence; y=1", "crash forbids y=1 x=0"},
        {"clwb+xchg", adr, "x=1; clwb x; a=xchg z 1; y=1",
         "crash forbids y=1 x=0; crash allows y=1 z=0"},
        {"clwb+xchg-itself", adr, "x=1; clwb x; a=xchg y 1", "crash forbids y=1 x=0"},
        {"clwb+add", adr, "x=1; clwb x; a=add y 1", "crash forbids y=1 x=0"},
        {"clwb+failed-cas", adr, "x=1; clwb x; a=cas z 5 1; y=1", "crash forbids y=1 x=0"},
        {"sfence-alone", adr, "x=1; sfence; y=1", "crash allows y=1 x=0"},
        {"mfence-alone", adr, "x=1; mfence; y=1", "crash allows y=1 x=0"},
        {"xchg-alone", adr, "a=xchg x 1; y=1", "crash allows y=1 x=0"},
        {"clwb-before-store", adr, "clwb x; x=1; sfence; y=1", "crash allows y=1 x=0"},
        {"fence-before-clwb", adr, "x=1; sfence; clwb x; y=1", "crash allows y=1 x=0"},
        {"clwb-other-line", adr, "x=1; clwb y; sfence; y=1", "crash allows y=1 x=0"},
        {"clwb-by-word-of-line", adr, "x=1; clwb x5; sfence; y=1", "crash forbids y=1 x=0"},
        {"clwb-too-short", adr, "x=1; y=1; clwb x; sfence; z=1",
         "crash forbids z=1 x=0; crash allows z=1 y=0"},
        {"clwb-past-other-store", adr, "x=1; clwb x; y=1; sfence; z=1",
         "crash forbids z=1 x=0; crash allows y=1 x=0"},
        {"clwb-then-same-line", adr, "x=1; clwb x; x1=1; sfence; y=1",
         "crash forbids y=1 x=0; crash allows y=1 x1=0"},
        {"clwb-then-same-word", adr, "x=1; clwb x; x=2; sfence; y=1",
         "crash forbids y=1 x=0; crash allows y=1 x=1"},
        {"two-clwb-one-fence", adr, "x=1; y=1; clwb x; clwb y; sfence; z=1",
         "crash forbids z=1 x=0; crash forbids z=1 y=0; crash allows x=0 y=1 z=0"},
        {"clwb-twice", adr, "x=1; clwb x; x1=1; clwb x; sfence; y=1", "crash forbids y=1 x1=0"},
        {"clwb-clflush", adr, "x=1; clwb x; clflush x; y=1", "crash forbids y=1 x=0"},
        {"clwb-clflush-other", adr, "x=1; clwb x; clflush y; z=1", "crash allows z=1 x=0"},
        {"clflush-of-two", adr, "x=1; y=1; clflush x; clflush y; z=1",
         "crash forbids z=1 y=0; crash forbids z=1 x=0"},
        {"second-fence-free", adr, "x=1; clwb x; sfence; sfence; y=1", "crash forbids y=1 x=0"},
        {"persist-twice", adr, "x=1; clwb x; sfence; x=2; clwb x; sfence; y=1",
         "crash forbids y=1 x=0; crash forbids y=1 x=1"},
        {"valid-mark-unfenced", adr, "x=1; y=1; clwb x; clwb y; sfence",
         "crash allows y=1 x=0; done forbids x=0; done forbids y=0"},
        {"valid-mark-fenced", adr, "x=1; clwb x; sfence; y=1; clwb y; sfence",
         "crash forbids y=1 x=0; done forbids y=0"},
        {"log-in-line", adr, "x=1; x1=1; clwb x; sfence; y=1",
         "crash forbids y=1 x1=0; crash forbids x1=1 x=0"},
    };
}

std::vector<litmus_test> persist_between_threads() {
    return {
        {"read-unpersisted", adr, "x=1 || a=x; y=1", "crash allows a=1 y=1 x=0"},
        {"read-then-own-clwb", adr, "x=1 || a=x; clwb x; sfence; y=1", "crash forbids a=1 y=1 x=0"},
        {"read-then-own-clflush", adr, "x=1 || a=x; clflush x; y=1", "crash forbids a=1 y=1 x=0"},
        {"no-read-own-clwb", adr, "x=1 || clwb x; sfence; y=1", "crash allows y=1 x=0"},
        {"others-clwb", adr, "x=1; clwb x || a=x; sfence; y=1", "crash allows a=1 y=1 x=0"},
        {"others-fence", adr, "x=1; clwb x; y=1 || a=y; sfence; z=1", "crash allows a=1 z=1 x=0"},
        {"others-clflush", adr, "x=1; clflush x; y=1 || a=y; z=1", "crash forbids a=1 z=1 x=0"},
        {"MP-persisted", adr, "x=1; clwb x; sfence; y=1 || a=y; z=1",
         "crash forbids a=1 x=0; crash forbids z=1 a=1 x=0"},
        {"MP-unfenced", adr, "x=1; clwb x; y=1 || a=y; z=1", "crash allows a=1 z=1 x=0"},
        {"MP-reader-flushes", adr, "x=1; y=1 || a=y; clwb x; sfence; z=1",
         "crash forbids a=1 z=1 x=0; crash allows a=1 z=1 y=0"},
        {"clwb-early", adr, "x=1; y=1; clwb x; sfence; z=1 || x=2; a=y", "crash forbids z=1 x=0"},
        {"clwb-past-buffered", adr, "x=1; z=1; clwb x; sfence; y=1 || a=z; x=2",
         "crash forbids y=1 x=0; crash allows a=1 y=1 x=1"},
        {"clwb-before-buffered", adr, "x=1; z=1; clwb x; sfence; y=1 || b=x; x=2; mfence; a=z",
         "crash allows b=1 a=0 y=1 x=1; crash forbids b=1 a=1 y=1 x=0"},
        {"same-line-writers", adr, "x=1 || a=x; x1=1; clwb x1; sfence; y=1",
         "crash forbids y=1 a=1 x=0"},
        {"same-word-writers", adr, "x=1; clwb x; sfence || x=2; clwb x; sfence",
         "done forbids x=0"},
        {"clwb-covers-other-thread", adr, "x=1 || x1=1; clwb x; sfence; y=1",
         "crash forbids y=1 x1=0"},
        {"SB-persisted", adr, "x=1; clwb x; mfence; a=y || y=1; clwb y; mfence; b=x",
         "crash forbids a=0 b=0; crash forbids a=0 x=0; crash allows a=1 b=_ y=0"},
        {"SB-sfence-persisted", adr, "x=1; clwb x; sfence; a=y || y=1; clwb y; sfence; b=x",
         "crash allows a=0 b=0 x=0 y=0"},
        {"xchg-publishes", adr, "x=1; clwb x; a=xchg y 1 || b=y; z=1", "crash forbids b=1 z=1 x=0"},
        {"cas-hand-over", adr, "x=1; a=cas y 0 1 || b=cas y 1 2; z=1", "crash allows b=1 z=1 x=0"},
        {"add-counter", adr, "a=add x 1; clwb x; sfence; y=1 || b=add x 1",
         "crash forbids y=1 x=0"},
        {"three-lines", adr, "x=1 || y=1; clflush y || a=y; z=1", "crash allows a=1 z=1 y=1 x=0"},
        {"WRC-persisted", adr, "x=1 || a=x; clflush x; y=1 || b=y; z=1",
         "crash forbids a=1 b=1 z=1 x=0"},
        {"ISA2-persisted", adr, "x=1; clflush x; y=1 || a=y; z=1 || b=z; w=1",
         "crash forbids a=1 b=1 w=1 x=0"},
        {"2+2W-persisted", adr, "x=1; clflush x; y=2 || y=1; clflush y; x=2", ""},
        {"fence-of-third", adr, "x=1; clwb x; y=1 || a=y; mfence; z=1 || sfence; b=z",
         "crash allows a=1 z=1 x=0"},
    };
}

std::vector<litmus_test> wide_stores() {
    return {
        {"torn", adr, "x:2=1",
         "crash allows x=1 x1=0; crash allows x=0 x1=1; done allows x=0 x1=1"},
        {"torn-flushed", adr, "x:2=1; clwb x; sfence; y=1",
         "crash forbids y=1 x=0; crash forbids y=1 x1=0"},
        {"torn-clflush", adr, "x:2=1; clflush x; y=1", "crash forbids y=1 x1=0"},
        {"torn-then-store", adr, "x:2=1; x2=1", "crash forbids x2=1 x=0; crash forbids x2=1 x1=0"},
        {"store-then-torn", adr, "x2=1; x:2=1", "crash forbids x2=0 x=1; crash forbids x2=0 x1=1"},
        {"torn-over-word", adr, "x=1; x:2=2", "crash allows x=1 x1=2; crash forbids x=0 x1=2"},
        {"torn-under-word", adr, "x:2=1; x1=2", "crash forbids x=0 x1=2; crash allows x=0 x1=1"},
        {"torn-twice", adr, "x:2=1; x:2=2", "crash forbids x=0 x1=2; crash allows x=1 x1=2"},
        {"torn-overlapping", adr, "x:2=1; x1:2=2", ""},
        {"torn-two-lines", adr, "x:2=1; y:2=1; clwb x; sfence", "crash allows y=1 y1=0 x=0"},
        {"torn-read", adr, "x:2=1 || a=x; b=x1", "crash allows a=1 b=1 x=0 x1=1"},
        {"torn-same-value", adr, "x=1; x:2=1", "crash forbids x=0 x1=1"},
        {"torn-eadr", eadr, "x:2=1", "crash forbids x=1 x1=0; crash forbids x=0 x1=1"},
        {"torn-and-nt", adr, "x:2=1; x=nt 2", ""},
        {"torn-same-value-nt", adr, "x:2=3; x=3; x=nt 5",
         "crash forbids x=5 x1=0; crash allows x=3 x1=0"},
        {"nt-torn-over-fenced", adr, "x1=nt 2; x:2=1; sfence",
         "done forbids x1=0; done allows x=0 x1=1"},
        {"nt-and-torn", adr, "x=nt 2; x:2=1", ""},
    };
}

std::vector<litmus_test> nt_stores() {
    return {
        {"nt", adr, "x=nt 1; y=1", "crash allows y=1 x=0; done allows x=0"},
        {"nt+sfence", adr, "x=nt 1; sfence; y=1", "crash forbids y=1 x=0; crash allows x=0 y=0"},
        {"nt+mfence", adr, "x=nt 1; mfence; y=1", "crash forbids y=1 x=0"},
        {"nt+xchg", adr, "x=nt 1; a=xchg y 1", "crash forbids y=1 x=0"},
        {"nt-nt", adr, "x=nt 1; y=nt 1", "crash allows y=1 x=0; crash allows x=1 y=0"},
        {"nt-nt-same-line", adr, "x=nt 1; x1=nt 1", "crash allows x1=1 x=0; crash allows x=1 x1=0"},
        {"nt-nt-same-word", adr, "x=nt 1; x=nt 2; y=1", "crash allows y=1 x=1; done allows x=2"},
        {"nt-nt-same-word-fenced", adr, "x=nt 1; x=nt 2; sfence; y=1",
         "crash forbids y=1 x=1; crash forbids y=1 x=0"},
        {"nt-fence-nt", adr, "x=nt 1; sfence; x1=nt 1", "crash forbids x1=1 x=0"},
        {"nt-line-one-fence", adr, "x=nt 1; x1=nt 1; x2=nt 1; sfence; y=1",
         "crash forbids y=1 x=0; crash forbids y=1 x2=0"},
        {"nt-over-store", adr, "x=1; x=nt 2; sfence; y=1",
         "crash forbids y=1 x=0; crash forbids y=1 x=1"},
        {"store-over-nt", adr, "x=nt 1; x=2; sfence; y=1",
         "crash forbids y=1 x=0; crash allows y=1 x=1"},
        {"store-over-nt-flushed", adr, "x=nt 1; x=2; clwb x; sfence; y=1", "crash forbids y=1 x=1"},
        {"nt-same-value", adr, "x=1; x=nt 1; sfence; y=1", "crash forbids y=1 x=0"},
        {"nt-same-value-thread", adr, "x=1 || a=x; x=nt 1; sfence; y=1",
         "crash forbids a=1 y=1 x=0"},
        {"nt-same-value-nt", adr, "x=nt 1 || a=x; x=nt 1; sfence; y=1",
         "crash forbids a=1 y=1 x=0"},
        {"nt-same-value-reset", adr, "x=1; x=nt 0; sfence; y=1", "crash forbids y=1 x=1"},
        {"nt-after-line-store", adr, "x=1; x1=nt 1; sfence; y=1",
         "crash forbids y=1 x1=0; crash allows y=1 x=0"},
        {"nt-before-line-store", adr, "x=nt 1; x1=1; sfence; y=1",
         "crash forbids y=1 x=0; crash allows y=1 x1=0"},
        {"nt-forwarded", adr, "x=nt 1; a=x", "final forbids a=0; crash allows a=1 x=0"},
        {"nt-MP", adr, "x=nt 1; y=1 || a=y; b=x", "final allows a=1 b=0"},
        {"nt-MP+sfence", adr, "x=nt 1; sfence; y=1 || a=y; b=x", "final forbids a=1 b=0"},
        {"nt-of-other-thread", adr, "x=nt 1 || a=x; sfence; y=1", "crash allows a=1 y=1 x=0"},
        {"nt-two-threads-a-word", adr, "x=nt 1; sfence || x=nt 2; sfence", "done forbids x=0"},
        {"nt-order-of-three", adr, "x=nt 1; x=2; x=nt 3; sfence || x=nt 4",
         "done forbids x=0; done allows x=4"},
        {"nt-order-of-three-read", adr, "x=nt 1; x=2; x=nt 3; y=1; sfence || a=y; x=nt 4",
         "done forbids x=0"},
        {"nt-kept-by-others-fence", adr, "x=nt 1; x=2; x=nt 3; sfence || a=x; x=nt 4",
         "final forbids a=3 x=3; done forbids a=3 x=2; done allows a=3 x=4"},
        {"nt-over-flushed-prefix", adr, "x1=7; x=0; x=nt 0; sfence; y=1", "crash forbids y=1 x1=0"},
        {"nt-behind-same-values", adr, "x=nt 5; x1=7; x=5; sfence; x=nt 6",
         "crash forbids x=6 x1=0"},
        {"nt-then-clwb", adr, "x=nt 1; clwb x; y=1", "crash allows y=1 x=0"},
        {"nt-and-log", adr, "x=nt 1; x1=nt 1; sfence; y=1; clwb y; sfence; z=1",
         "crash forbids y=1 x1=0; crash forbids z=1 y=0"},
        {"nt-locked-over", adr, "x=nt 1 || a=xchg x 2; clwb x; sfence; y=1",
         "crash forbids a=1 y=1 x=0"},
    };
}

std::vector<litmus_test> other_domains() {
    return {
        {"eadr-two-lines", eadr, "x=1; y=1", "crash forbids y=1 x=0; done forbids x=0"},
        {"eadr-buffered", eadr, "x=1; a=y", "crash allows a=0 x=0; done forbids x=0"},
        {"eadr-mfence", eadr, "x=1; mfence; a=y", "crash forbids a=0 x=0"},
        {"eadr-SB", eadr, "x=1; a=y || y=1; b=x", "crash allows a=0 b=0 x=0 y=0"},
        {"eadr-MP", eadr, "x=1; y=1 || a=y; z=1",
         "crash forbids a=1 x=0; crash forbids z=1 a=1 y=0"},
        {"eadr-nt", eadr, "x=nt 1; y=1", "crash allows y=1 x=0; done allows x=0"},
        {"eadr-nt+sfence", eadr, "x=nt 1; sfence; y=1", "crash forbids y=1 x=0; done forbids x=0"},
        {"eadr-nt-line", eadr, "x=nt 1; x1=1", "crash allows x1=1 x=0"},
        {"eadr-nt-under-store", eadr, "x=nt 1; x=2", "done forbids x=1; done forbids x=0"},
        {"eadr-nt-over-store", eadr, "x=1; x=nt 2", "done allows x=1; done forbids x=0"},
        {"eadr-nt-same-value", eadr, "x=1; x=nt 1", "done forbids x=0"},
        {"eadr-flush", eadr, "x=1; clwb x; sfence; y=1", "crash forbids y=1 x=0"},
        {"eadr-xchg", eadr, "x=nt 1; a=xchg y 1", "crash forbids y=1 x=0"},
        {"eadr-nt-clflush", eadr, "x=nt 1; clflush x; y=1", ""},
        {"process-two-lines", process, "x=1; y=1", "crash forbids y=1 x=0; done forbids x=0"},
        {"process-nt", process, "x=nt 1", "done forbids x=0"},
        {"process-nt+sfence", process, "x=nt 1; sfence; y=1", "crash forbids y=1 x=0"},
        {"process-torn", process, "x:2=1; y=1", "crash forbids y=1 x1=0; crash forbids x=1 x1=0"},
        {"process-MP", process, "x=1; y=1 || a=y; b=x", "crash forbids a=1 x=0"},
        {"process-locked", process, "a=add x 1; b=add x 1 || c=xchg y 1", "crash forbids b=1 x=1"},
    };
}

} // namespace

const std::vector<litmus_test>& table() {
    static const std::vector<litmus_test> all = [] {
        std::vector<litmus_test> out;
        for (auto&& part : {volatile_order(), persist_order(), persist_between_threads(),
                            wide_stores(), nt_stores(), other_domains()})
            out.insert(out.end(), part.begin(), part.end());
        return out;
    }();
    return all;
}

} // namespace hf::check::litmus
