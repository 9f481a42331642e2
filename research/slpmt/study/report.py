#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""SLPMT's study, simulated: runs it, prints the tables, writes slpmt.md, slpmt.figures.json, plots, and slpmt.json.

All of them except slpmt.json follow from the seed: the same seed, the same bytes. slpmt.json, which
scripts look at, begins with a summary and has two lines more than slpmt.figures.json: how long this
run took, and how fast it was. If a number is outside of its band, the experiment that explains it
is printed beside it.
"""
import argparse
import json
import math
import pathlib
import subprocess
import sys
import tempfile

KERNELS = ["hashtable", "rbtree", "heap", "avl"]
KV = ["kv-btree", "kv-ctree", "kv-rtree"]


def gmean(values):
    return math.exp(sum(map(math.log, values)) / len(values))


class Study:
    def __init__(self, text):
        self.json = json.loads(text)
        self.cells = self.json["cells"]

    def cell(self, figure, workload, technique, **also):
        found = [c for c in self.cells if c["figure"] == figure and c["workload"] == workload
                 and c["technique"] == technique and all(c[k] == v for k, v in also.items())]
        assert len(found) == 1, (figure, workload, technique, also, len(found))
        return found[0]

    def speedup(self, figure, workload, technique, over="FG", **also):
        return (self.cell(figure, workload, over, **also)["simulated_ns"]
                / self.cell(figure, workload, technique, **also)["simulated_ns"])

    def traffic(self, figure, workload, technique, over="FG", **also):
        """Change of the lines written to persistent memory, in percent."""
        return 100 * (self.cell(figure, workload, technique, **also)["pm_lines"]
                      / self.cell(figure, workload, over, **also)["pm_lines"] - 1)

    def mean_speedup(self, figure, technique, over="FG", workloads=KERNELS, **also):
        return gmean([self.speedup(figure, w, technique, over, **also) for w in workloads])

    def mean_traffic(self, figure, technique, over="FG", workloads=KERNELS, **also):
        return 100 * (gmean([1 + self.traffic(figure, w, technique, over, **also) / 100 for w in workloads]) - 1)


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return lines + ["| " + " | ".join(map(str, row)) + " |" for row in rows]


def by_workload(study, figure, techniques, workloads, **also):
    """Speedup over FG and traffic, a row per workload and one for the geometric mean."""
    def text(speedup, traffic):
        return f"{speedup:.2f} ({traffic:+.0f} %)"
    rows = [[w, *(text(study.speedup(figure, w, t, **also), study.traffic(figure, w, t, **also))
                  for t in techniques)] for w in workloads]
    rows.append(["geometric mean", *(text(study.mean_speedup(figure, t, workloads=workloads, **also),
                                          study.mean_traffic(figure, t, workloads=workloads, **also))
                                     for t in techniques)])
    return table(["speedup over FG (lines written)", *techniques], rows)


LATENCIES = (500, 600, 1000, 1500, 2300)
CALLERS = (0, 2000, 4000, 8000)     # instructions between two insertions; two a cycle, two cycles a ns


def near(paper, to=None):
    """The paper's number, or its range, and a tenth beside it, as on the page of all figures."""
    low, high = sorted((paper, paper if to is None else to))
    return low - abs(low) / 10, high + abs(high) / 10


def growth(study, workload, between):
    """SLPMT's gain with writes of 2300 ns over that with 500 ns (Fig. 12)."""
    gain = {ns: study.speedup("12", workload, "SLPMT", write_ns=ns, instructions_between=between) for ns in LATENCIES}
    return gain[2300] / gain[500]


def growth_over_others(study, between):
    return growth(study, "hashtable", between) / gmean([growth(study, w, between) for w in KERNELS if w != "hashtable"])


def bands(study):
    """(what, measured, low, high, the paper's number or '')."""
    mean, one = study.mean_speedup, study.speedup
    for what, got, paper in (
            ("SLPMT/FG", mean("8", "SLPMT"), 1.57), ("SLPMT's traffic, %", study.mean_traffic("8", "SLPMT"), -35),
            ("SLPMT/ATOM", mean("8", "SLPMT", "ATOM"), 1.65), ("SLPMT/EDE", mean("8", "SLPMT", "EDE"), 1.78),
            ("FG/ATOM", mean("8", "FG", "ATOM"), 1.05), ("FG/EDE", mean("8", "FG", "EDE"), 1.13),
            ("SLPMT, lines / FG", mean("9", "SLPMT, lines"), 1.27),
            ("hashtable, LZ", one("8", "hashtable", "FG+LZ"), 1.17), ("hashtable, LG", one("8", "hashtable", "FG+LG"), 1.24),
            ("hashtable, both", one("8", "hashtable", "SLPMT"), 1.52),
            ("SLPMT/FG, 16 B values", mean("10", "SLPMT", value_bytes=16), 1.22),
            *((f"kv, SLPMT/{over}, 16 B values", mean("14", "SLPMT", over, workloads=KV, value_bytes=16), paper)
              for over, paper in (("FG", 1.262), ("EDE", 1.35), ("ATOM", 1.58)))):
        yield what, got, *near(paper), f"{paper:g}"
    for w in KV:
        for over, low, high in (("EDE", 1.35, 1.87), ("ATOM", 1.4, 2.0)):
            yield f"{w}, SLPMT/{over}", one("14", w, "SLPMT", over, value_bytes=256), *near(low, high), f"{low:g} to {high:g}"
        yield f"{w}'s traffic, %", study.traffic("14", w, "SLPMT", value_bytes=256), *near(-47.6, -32.6), "-32.6 to -47.6"
    yield "hashtable's growth with the latency over the others'", growth_over_others(study, 0), 1.02, 9, "more"
    for w in KERNELS:
        gains = [one("10", w, "SLPMT", value_bytes=b) for b in (16, 32, 64, 128, 256)]
        yield f"{w}: least step of the gain with value size", min(b / a for a, b in zip(gains, gains[1:])), 1.0, 9, ""


def of_latency(study, workload, technique, between):
    """(the part of the time at 500 ns that grows with the latency of a write, the largest error of that line)."""
    time = {ns: study.cell("12", workload, technique, write_ns=ns, instructions_between=between)["simulated_ns"] for ns in LATENCIES}
    slope = (time[2300] - time[500]) / 1800
    return 500 * slope / time[500], max(abs(time[500] + slope * (ns - 500) - at) / at for ns, at in time.items())


def why_flat(study):
    """Fig. 12's experiments, as a text."""
    parts = [of_latency(study, w, t, 0) for w in KERNELS for t in ("FG", "SLPMT")]
    gains = {between: [study.speedup("12", w, "SLPMT", write_ns=ns, instructions_between=between) for w in KERNELS for ns in (500, 2300)]
             for between in CALLERS}
    lazy = [[study.speedup("12", "hashtable", t, write_ns=ns, instructions_between=b) for b in CALLERS for ns in LATENCIES]
            for t in ("FG+LZ", "FG+LZ, unwritten")]
    return (
        f"of the time at 500 ns {100 * min(p for p, _ in parts):.0f} % and more is proportional to the latency of a write (a straight line, off by "
        f"{100 * max(e for _, e in parts):.1f} % at most), for FG as for SLPMT: insertions follow each other, and the core waits for the write queue. "
        "A ratio of two such times cannot depend on the latency. With a caller that computes between two insertions every curve rises: "
        + "; ".join(f"{between / 4000:g} us, " + ", ".join(f"{w} {a:.2f} to {b:.2f}" for w, a, b in zip(KERNELS, gains[between][::2], gains[between][1::2]))
                    + f" (hashtable over the others {growth_over_others(study, between):.2f})" for between in CALLERS[1:])
        + f". The paper does not say what its caller does. Laziness is not what makes the hashtable's rise: alone it gains {min(lazy[0]):.2f} to "
        f"{max(lazy[0]):.2f} over all callers and latencies, and {max(lazy[1]):.2f} at most if lazy lines were never written.")


def explanations(study):
    """Explanations of a missed band: (part of the band's name, text)."""
    one = study.speedup
    lazy = [study.cell("8", "hashtable", t) for t in ("FG", "FG+LZ")]
    resized = [(c["queue_lines"], c["banks"], c["interleave_bytes"],
                study.cell("memory", "hashtable", "FG", **{k: c[k] for k in ("queue_lines", "banks", "interleave_bytes")})
                ["simulated_ns"] / c["simulated_ns"])
               for c in study.cells if c["figure"] == "memory" and c["technique"] == "FG+LZ" and c["workload"] == "hashtable"]
    best = max(resized, key=lambda c: c[3])
    yield "hashtable, LZ", (
        f"deferring does not avoid, and there is little to defer: {lazy[1]['lazy_lines']} of FG+LZ's {lazy[1]['pm_lines']} "
        f"lines are lazy, two thirds of them the table's own line, again at each insertion, and FG writes "
        f"{lazy[0]['pm_lines']}. Only {lazy[1]['records_discarded']} of {lazy[1]['records']} records are discarded at a "
        f"commit: most are of values. If lazy lines were never written, the gain would be "
        f"{one('12', 'hashtable', 'FG+LZ, unwritten', write_ns=500, instructions_between=0):.2f}. "
        f"Over 24 memories it is {min(c[3] for c in resized):.2f} to {best[3]:.2f} (best: queue of {best[0]}, {best[1]} banks, {best[2]} B); "
        f"with interleaving of 64 B {one('8, 64 B', 'hashtable', 'FG+LZ'):.2f}.")
    yield "hashtable, LG", (
        f"{lazy[0]['log_lines']} of FG's {lazy[0]['pm_lines']} lines are log, {study.cell('8', 'hashtable', 'FG+LG')['log_lines']} of FG+LG's, and time follows lines: "
        f"{study.traffic('8', 'hashtable', 'FG+LG'):+.0f} %. Laziness adds next to nothing to it here, so both together are as in the paper. "
        f"With interleaving of 64 B, which spreads a value over banks, {one('8, 64 B', 'hashtable', 'FG+LG'):.2f}; "
        f"with a caller of 0.5 us {one('8, with a caller', 'hashtable', 'FG+LG'):.2f}, of 2 us "
        f"{one('12', 'hashtable', 'FG+LG', write_ns=500, instructions_between=8000):.2f}.")
    for what, technique, over in (("SLPMT/ATOM", "SLPMT", "ATOM"), ("SLPMT/EDE", "SLPMT", "EDE"), ("FG/ATOM", "FG", "ATOM"), ("FG/EDE", "FG", "EDE")):
        yield what, (
            f"{over} writes {study.mean_traffic('8', over):+.0f} % lines of FG's, and insertions that follow each other make the core wait for the write queue, so "
            f"time follows lines. With a caller of 0.5 us {study.mean_speedup('8, with a caller', technique, over):.2f}; "
            f"with interleaving of 64 B {study.mean_speedup('8, 64 B', technique, over):.2f}.")
    yield "kv, SLPMT/EDE", (f"EDE writes {study.mean_traffic('14', 'EDE', workloads=KV, value_bytes=16):+.0f} % lines of FG's, and most of the mean is "
                            f"kv-rtree's {one('14', 'kv-rtree', 'SLPMT', 'EDE', value_bytes=16):.2f}.")
    for w in KV:
        yield f"{w}, SLPMT/EDE", (
            f"EDE keeps 16 bytes for every store, a second store to a word included, and writes {study.traffic('14', w, 'EDE', value_bytes=256):+.0f} % "
            f"lines of FG's, SLPMT {study.traffic('14', w, 'SLPMT', value_bytes=256):+.0f} %. The stores are written anew, not PMDK's.")
    yield "hashtable's growth", why_flat(study)
    for w in KERNELS:
        gains = [one("10", w, "SLPMT", value_bytes=b) for b in (16, 32, 64, 128, 256)]
        fine = [one("10, 64 B", w, "SLPMT", value_bytes=b) for b in (16, 32, 64, 128, 256)]
        cut = [study.traffic("10", w, "SLPMT", value_bytes=b) for b in (16, 32, 64, 128, 256)]
        yield f"{w}: least step", (
            "the reduction of traffic is what grows: " + ", ".join(f"{c:.0f} %" for c in cut)
            + "; the speedups " + ", ".join(f"{g:.2f}" for g in gains)
            + " also have which bank a line falls into: with 64 B interleaving "
            + ", ".join(f"{g:.2f}" for g in fine) + ". The paper, too, finds 16 and 32 B alike.")


def render_bands(study):
    """The table, and by name a line for each band that was missed."""
    rows, missed = [], {}
    why = dict(explanations(study))
    for what, got, low, high, paper in bands(study):
        good = low <= round(got, 2) <= high
        span = f"{low:.2f} to {high:.2f}" if high != 9 else f"at least {low:g}"
        rows.append([what, f"{got:.2f}", span, paper, "yes" if good else "**no**"])
        if not good:
            reason = next((text for name, text in why.items() if what.startswith(name)), "not explained")
            missed[what] = f"- {what}: {got:.2f}, band {span}: {reason}"
    return table(["what", "simulated", "band", "paper", "in band"], rows), missed


def by_compiler(study, workload, value_bytes):
    """SLPMT over FG with the annotations that the compiler finds in the key-value store."""
    return (study.cell("14", workload, "FG", value_bytes=value_bytes)["simulated_ns"]
            / study.cell("14, annotated by the compiler", workload, "SLPMT", value_bytes=value_bytes)["simulated_ns"])


def figure_lines(study):
    yield "## Fig. 8: techniques, 256 B values"
    yield from by_workload(study, "8", ["FG+LG", "FG+LZ", "SLPMT", "ATOM", "EDE"], KERNELS)
    yield ""
    yield "The same with banks interleaved by 64 B:"
    yield ""
    yield from by_workload(study, "8, 64 B", ["FG+LG", "FG+LZ", "SLPMT", "ATOM", "EDE"], KERNELS)
    yield "## Fig. 9: logging by cache lines"
    yield from by_workload(study, "9", ["SLPMT, lines", "FG, lines"], KERNELS)
    yield "## Figs. 10 and 11: value size, SLPMT"
    sizes = (16, 32, 64, 128, 256)
    yield from table(["speedup over FG (lines written)", *(f"{b} B" for b in sizes)],
                     [[w, *(f"{study.speedup('10', w, 'SLPMT', value_bytes=b):.2f} "
                            f"({study.traffic('10', w, 'SLPMT', value_bytes=b):+.0f} %)" for b in sizes)] for w in KERNELS])
    yield "## Fig. 12: write latency, SLPMT"
    for between in CALLERS:
        yield ""
        yield f"A caller that computes {between / 4000:g} us between two insertions:" if between else "Insertions that follow each other:"
        yield ""
        yield from table(["speedup over FG", *(f"{ns} ns" for ns in LATENCIES)], [
            [w, *(f"{study.speedup('12', w, 'SLPMT', write_ns=ns, instructions_between=between):.2f}" for ns in LATENCIES)] for w in KERNELS])
    yield "## Fig. 13: annotations that nobody wrote"
    yield ("By the compiler: what it finds in the same insertions as plain code (src/selective/kernels.hpp): what the section has "
           "allocated, and the red-black tree's parents, which it only suggests. By freshness: stores that always go to "
           "memory that the transaction has made (pattern 1, seen at run time, so what a compiler could find at most). By injection: of the others, each that no crash refutes; a proof of "
           "the runs made, not of all. Compile time: `make bench`, `compile`.")
    yield ""
    kinds = ["by hand", "by the compiler", "by freshness", "by injection"]
    rows = []
    for w in KERNELS:
        base = study.cell("13", w, "FG")["simulated_ns"]
        account = next(a for a in study.json["annotations"] if a["workload"] == w)
        rows.append([w, *(f"{base / study.cell('13', w, 'SLPMT', annotations=k)['simulated_ns']:.2f}" for k in kinds),
                     account["by_hand"], account["by_compiler"], account["by_freshness"], account["by_injection"],
                     ", ".join(account["beyond_hand"]) or "none", account["crashes"]])
    total = [sum(a[k] for a in study.json["annotations"]) for k in ("by_hand", "by_compiler", "by_freshness", "by_injection")]
    rows.append(["sum", "", "", "", "", *total, "", ""])
    yield from table(["speedup over FG", *kinds, "sites by hand", "by the compiler", "fresh", "injected", "beyond hand", "crashes"], rows)
    for size in (256, 16):
        yield f"## Fig. 14: key-value store, {size} B values"
        yield from by_workload(study, "14", ["SLPMT", "ATOM", "EDE"], KV, value_bytes=size)
    yield ""
    yield "With the annotations that the compiler finds in the same insertions as plain code (src/selective/kv_kernels.hpp), SLPMT over FG:"
    yield ""
    yield from table(["", "annotations by hand", "found", "256 B values", "16 B values"], [
        [a["workload"], a["by_hand"], a["by_compiler"], *(f"{by_compiler(study, a['workload'], size):.2f}" for size in (256, 16))]
        for a in study.json["annotations_of_store"]])
    yield ""
    yield "SLPMT, 16 B values, banks interleaved by 64 B: " + ", ".join(
        f"{w} {study.speedup('14, 64 B', w, 'SLPMT'):.2f}" for w in KV)


def beyond_lines(study):
    yield "## Beyond the paper: redo, and EDE that logs a word once"
    yield from by_workload(study, "redo", ["SLPMT", "FG, redo", "SLPMT, redo", "EDE", "EDE, once per word"], KERNELS)
    yield "## Beyond: the memory (speedup of SLPMT over FG)"
    for w in ("hashtable", "rbtree"):
        places = [(b, i) for i in (64, 256) for b in (8, 16, 32)]
        yield from table([f"{w}: queue, lines", *(f"{b} banks, {i} B" for b, i in places)],
                         [[q, *(f"{study.speedup('memory', w, 'SLPMT', queue_lines=q, banks=b, interleave_bytes=i):.2f}"
                                for b, i in places)] for q in (8, 16, 32, 64)])
        yield ""
    yield "## Beyond: what a crash would lose of committed lazy lines, and wear"
    yield from table(["SLPMT", "lazy lines, mean", "lazy lines, most", "writes of the line written most, of SLPMT", "of FG"],
                     [[w, f"{study.cell('8', w, 'SLPMT')['lazy_at_risk_mean']:.2f}",
                       study.cell("8", w, "SLPMT")["lazy_at_risk_max"], study.cell("8", w, "SLPMT")["wear_max"],
                       study.cell("8", w, "FG")["wear_max"]] for w in KERNELS])


def far_beyond_lines(study):
    yield "## Beyond: slow memory of several shapes (speedup of SLPMT over FG)"
    shapes = [(q, b) for q in (8, 32) for b in (8, 16, 32)]
    for w in ("hashtable", "rbtree"):
        yield from table([f"{w}: write latency, ns", *(f"queue {q}, {b} banks" for q, b in shapes)],
                         [[ns, *(f"{study.speedup('latency', w, 'SLPMT', write_ns=ns, queue_lines=q, banks=b):.2f}"
                                 for q, b in shapes)] for ns in (600, 1000, 1500, 2300)])
        yield ""
    yield "## Beyond: caches that persist (eADR), and several cores with a structure each"
    rows = []
    for w in KERNELS:
        fg, slpmt = (study.cell("eADR", w, t) for t in ("FG", "SLPMT"))
        adr = study.cell("8", w, "SLPMT")
        rows.append([w, f"{study.speedup('eADR', w, 'SLPMT'):.2f}", f"{adr['simulated_ns'] / slpmt['simulated_ns']:.2f}",
                     fg["log_lines"], slpmt["log_lines"], slpmt["records_discarded"],
                     *(f"{study.speedup('cores', w, 'SLPMT', cores=n):.2f}" for n in (1, 2, 4))])
    yield from table(["", "eADR: SLPMT over FG", "SLPMT, eADR over ADR", "log lines, FG", "log lines, SLPMT", "records never written",
                      *(f"ADR, {n} cores: SLPMT over FG" for n in (1, 2, 4))], rows)
    yield ""
    yield ("With eADR a commit writes nothing. What is left to log is what the buffer's four tiers have no room for: "
           "log-free stores keep it free on the hashtable, whose resizes store most.")


def mutant_lines(study):
    all_of = study.json["mutants"]
    yield "## Mutants"
    yield f"{len(all_of)} machines and annotations with one fault each, {sum(m['rejected'] for m in all_of)} rejected."
    for m in all_of:
        if not m["rejected"]:
            yield f"- SURVIVED: {m['name']}"


def proof_lines(study):
    yield "## Crash proof: every acceptance of the write queue"
    proofs = study.json["proofs"]
    rows = []
    for technique in dict.fromkeys(p["technique"] for p in proofs):
        of = [p for p in proofs if p["technique"] == technique]
        rows.append([technique, len(of), *(sum(p[k] for p in of) for k in
                                           ("crashes", "recoveries_cut_short", "second_crashes", "violations"))])
    yield from table(["technique", "runs", "crashes", "recoveries cut short", "second crashes", "violations"], rows)
    for p in proofs:
        if p["violations"]:
            yield f"- VIOLATION {p['first']}"


def area_lines(study):
    a = study.json["area"]
    yield "## Area"
    yield (f"First level {a['first_level_bytes']} B, second {a['second_level_bytes']} B. The paper's 3.9 KB are "
           f"{a['cache_bytes_if_both_first_levels_have_the_fields']} B, and come out only if the instruction cache has the "
           f"fields, too. Log buffer {a['log_buffer_bytes']} B, signatures {a['signature_bytes']} B.")


def render(study):
    out = [f"# SLPMT: *simulated*, seed {study.json['seed']}", ""]
    out += ["No such hardware exists: every time here is a model's, every line and crash is exact in that model.", "", "## Bands", ""]
    rows, missed = render_bands(study)
    out += rows + ["", "## What did not reproduce", ""] + (list(missed.values()) or ["Nothing: every number is in its band."]) + [""]
    for part in (figure_lines, beyond_lines, far_beyond_lines, proof_lines, mutant_lines, area_lines):
        for line in part(study):
            if line.startswith("## "):
                out += ["", line, ""]
            else:
                out.append(line)
    return "\n".join(out) + "\n"


def summary(study, timing):
    """Geometric means at 256-byte values, what was measured of the run, and what was proved."""
    j = study.json
    return {"slpmt_over_fg": study.mean_speedup("8", "SLPMT"), "traffic_reduction": -study.mean_traffic("8", "SLPMT"),
            "over_atom": study.mean_speedup("8", "SLPMT", "ATOM"), "over_ede": study.mean_speedup("8", "SLPMT", "EDE"),
            "line_granularity": study.mean_speedup("9", "SLPMT, lines"), **timing,
            "crash_points": sum(p["crashes"] + p["recoveries_cut_short"] + p["second_crashes"] for p in j["proofs"]),
            "violations": sum(p["violations"] for p in j["proofs"]), "mutants": len(j["mutants"]),
            "mutants_rejected": sum(m["rejected"] for m in j["mutants"]),
            "annotations_by_hand": sum(a["by_hand"] for a in j["annotations"]),
            "annotations_by_compiler": sum(a["by_compiler"] for a in j["annotations"]),
            "annotations_found": sum(a["by_injection"] for a in j["annotations"])}


def write_json(out, study, timing):
    """The results that follow from the seed; and for scripts the same, with the duration of this
    run, in a line for each key."""
    for name, measured in (("slpmt.figures.json", {}), ("slpmt.json", timing)):
        told = {**summary(study, measured), "study": study.json}
        (out / name).write_text(json.dumps(told, indent=1, ensure_ascii=False) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--study", type=pathlib.Path, required=True, help="the program slpmt_study")
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        cells, timing = (pathlib.Path(folder) / name for name in ("cells.json", "timing.json"))
        done = subprocess.run([arguments.study, "--seed", str(arguments.seed), "--out", cells, "--timing", timing], check=False)
        if done.returncode not in (0, 1):
            sys.exit(f"{arguments.study} ended with {done.returncode}")
        study = Study(cells.read_text())
        write_json(arguments.out, study, json.loads(timing.read_text()))
    text = render(study)
    (arguments.out / "slpmt.md").write_text(text)
    print(text, end="")
    try:
        import plots  # noqa: PLC0415
        plots.draw(study, arguments.out)
    except ImportError:
        print("plots are left out: they need python3-matplotlib", file=sys.stderr)
    sys.exit(done.returncode)


if __name__ == "__main__":
    main()
