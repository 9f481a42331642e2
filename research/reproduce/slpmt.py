# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The figures of SLPMT (HPCA 2023), all simulated: research/slpmt/study/report.py has their numbers, and the paper's."""
import json

from figures import Claim, Drawn, Figure, Panel, module, percent_over

SIZES, LATENCIES = (16, 32, 64, 128, 256), (500, 600, 1000, 1500, 2300)
MODEL = "The model of core and memory is ours, not gem5."


def report_of(said):
    report = module("research/slpmt/study/report.py")
    return report, report.Study(json.dumps(said["slpmt"]["study"]))


def claims(said, *names):
    """Those of the report's bands that have a number of the paper."""
    report, study = report_of(said)
    return [Claim(what, abs(got), abs(float(paper))) for what, got, _, _, paper in report.bands(study) if paper and what in names]


def by_workload(said, figure, techniques, workloads, **also):
    _, study = report_of(said)
    groups = [*workloads, "mean"]
    return [Panel("speedup over FG", "times", groups, {t: [*(study.speedup(figure, w, t, **also) for w in workloads),
                                                           study.mean_speedup(figure, t, workloads=workloads, **also)] for t in techniques}),
            Panel("fewer lines written", "%", groups, {t: [*(-study.traffic(figure, w, t, **also) for w in workloads),
                                                           -study.mean_traffic(figure, t, workloads=workloads, **also)] for t in techniques})]


def along(said, figure, key, values, measure, title, unit):
    report, study = report_of(said)
    return Panel(title, unit, values, {w: [measure(study)(figure, w, "SLPMT", **{key: x}) for x in values] for w in report.KERNELS})


def fig_8(said):
    report, _ = report_of(said)
    return Drawn(by_workload(said, "8", ["FG+LG", "FG+LZ", "SLPMT", "ATOM", "EDE"], report.KERNELS), claims(
        said, "SLPMT/FG", "SLPMT's traffic, %", "SLPMT/ATOM", "SLPMT/EDE", "FG/ATOM", "FG/EDE", "hashtable, LZ", "hashtable, LG",
        "hashtable, both"))


def fig_9(said):
    report, study = report_of(said)
    return Drawn(by_workload(said, "9", ["SLPMT, lines", "FG, lines"], report.KERNELS), claims(said, "SLPMT, lines / FG") + [
        Claim("FG by lines writes more than FG by, %", study.mean_traffic("9", "FG, lines"), 15)])


def fig_10(said):
    return Drawn([along(said, "10", "value_bytes", SIZES, lambda study: study.speedup, "SLPMT over FG", "times, over bytes of a value")],
                 claims(said, "SLPMT/FG, 16 B values"))


def fig_11(said):
    return Drawn([along(said, "10", "value_bytes", SIZES, lambda study: lambda *a, **k: -study.traffic(*a, **k),
                        "fewer lines written", "%, over bytes of a value")])


def fig_12(said):
    def between(instructions):
        return lambda study: lambda *a, **k: study.speedup(*a, **k, instructions_between=instructions)

    return Drawn([along(said, "12", "write_ns", LATENCIES, between(instructions), f"SLPMT over FG, {what}", "times, over ns of a write")
                  for instructions, what in ((0, "insertions back to back"), (4000, "1 us between two insertions"), (8000, "2 us"))])


def fig_13(said):
    report, study = report_of(said)
    kinds = ("by hand", "by the compiler", "by freshness", "by injection")
    series = {kind: [study.cell("13", w, "FG")["simulated_ns"] / study.cell("13", w, "SLPMT", annotations=kind)["simulated_ns"]
                     for w in report.KERNELS] for kind in kinds}
    return Drawn([Panel("SLPMT over FG", "times", report.KERNELS, series)], [
        Claim("annotations by hand", said["slpmt"]["annotations_by_hand"], 26),
        Claim("of these found by the compiler", said["slpmt"]["annotations_by_compiler"], 16)])


def fig_13_right(said):
    seconds = {(each["structure"], each["build"]): each["seconds"] for each in said["bench-compile"]["compile"]}
    names = ["hashmap", "rbtree", "avl", "bptree"]
    more = [percent_over(seconds.get((name, "selective")), seconds.get((name, "none"))) for name in names]
    return Drawn([Panel("clang, one source", "s of processor", names,
                        {build: [seconds.get((name, build)) for name in names] for build in ("none", "selective")})],
                 [Claim("longer by, B-tree, %", more[-1], 23)])


def fig_14(said):
    report, study = report_of(said)
    panels = []
    for size in (256, 16):
        for panel in by_workload(said, "14", ["SLPMT", "ATOM", "EDE"], report.KV, value_bytes=size):
            panel.title += f", {size} B values"
            panels.append(panel)
    panels.append(Panel("speedup over FG with annotations that the compiler finds", "times", report.KV, {
        f"{size} B values": [report.by_compiler(study, w, size) for w in report.KV] for size in (256, 16)}))
    found = study.json["annotations_of_store"]

    def over(technique, size):
        return [study.speedup("14", w, "SLPMT", technique, value_bytes=size) for w in report.KV]

    return Drawn(panels, [
        Claim("SLPMT over EDE, 256 B", over("EDE", 256), 1.35, 1.87), Claim("SLPMT over ATOM, 256 B", over("ATOM", 256), 1.4, 2.0),
        Claim("fewer lines than FG, 256 B, %", [-study.traffic("14", w, "SLPMT", value_bytes=256) for w in report.KV], 32.6, 47.6),
        Claim("SLPMT over EDE, 16 B, mean", report.gmean(over("EDE", 16)), 1.35),
        Claim("SLPMT over ATOM, 16 B, mean", report.gmean(over("ATOM", 16)), 1.58),
        Claim("SLPMT over FG, 16 B, mean", report.gmean(over("FG", 16)), 1.262),
        Claim("annotations by hand that the compiler finds, % (the paper's: of the kernels)",
              100 * sum(one["by_compiler"] for one in found) / sum(one["by_hand"] for one in found), 100 * 16 / 26)])


def area(said):
    found = said["slpmt"]["study"]["area"]
    return Drawn(table=[["part", "bytes"], *([name.replace("_", " "), size] for name, size in found.items())],
                 claims=[Claim("all parts, KB", (found["cache_bytes_if_both_first_levels_have_the_fields"] + found["log_buffer_bytes"]
                                                 + found["signature_bytes"]) / 1000, 6.1)])


INTERNALS = "docs/internals/slpmt.md"
FIGURES = [
    Figure("Fig. 1", "Insertion into a doubly linked list", "diagram", "docs/guide/selective-logging.md"),
    Figure("Fig. 2", "storeT", "diagram", INTERNALS),
    Figure("Fig. 3", "The architecture", "diagram", INTERNALS),
    Figure("Table I", "storeT by its operands", "diagram", INTERNALS),
    Figure("Fig. 4", "The order in which data and logs persist", "diagram", INTERNALS),
    Figure("Fig. 5", "Formats of cache entries", "diagram", INTERNALS),
    Figure("Fig. 6", "The tiered log buffer", "diagram", INTERNALS),
    Figure("Storage", "The account of storage overhead", "counted",
           "The paper's 3.9 KB of caches come out only if the instruction cache has the fields, too.", ("slpmt",), area),
    Figure("Fig. 7", "Pattern 1 of the compiler", "diagram", "docs/guide/selective-logging.md"),
    Figure("Table II", "Workloads", "setup", "research/slpmt/README.md"),
    Figure("Table III", "The simulated machine", "setup", "research/sim/README.md"),
    Figure("Fig. 8", "Techniques: speed and lines written", "simulated",
           MODEL + " Laziness alone gains little on the hashtable: what is written later is waited for later (results of `make slpmt`).",
           ("slpmt",), fig_8),
    Figure("Fig. 9", "Logging by cache lines", "simulated", MODEL, ("slpmt",), fig_9),
    Figure("Fig. 10", "Speed by the size of values", "simulated", MODEL + " Which bank a line falls into matters, so steps are not even.",
           ("slpmt",), fig_10),
    Figure("Fig. 11", "Lines written by the size of values", "simulated", MODEL, ("slpmt",), fig_11),
    Figure("Fig. 12", "Speed by the latency of writes", "simulated",
           MODEL + " Back to back, all but a few percent of the time is proportional to the latency, for FG as for SLPMT, so their ratio cannot "
           "depend on it. With a caller that computes between two insertions, of which the paper says nothing, all curves rise. The paper's "
           "hashtable alone rises, through laziness; ours would gain a tenth at most if lazy lines were never written (results of `make slpmt`).", ("slpmt",), fig_12),
    Figure("Fig. 13", "Annotations that the compiler finds", "simulated",
           "The compiler here looks at the same insertions as plain code.", ("slpmt",), fig_13),
    Figure("Fig. 13 right", "Compile time with these annotations", "measured",
           "Engine selective on the structures of src/structures: the plugin analyses and instruments. The paper's compiler adds annotations alone.",
           ("bench-compile",), fig_13_right),
    Figure("Fig. 14", "The key-value store", "simulated", MODEL + " The stores are written anew, not PMDK's.", ("slpmt",), fig_14),
]
