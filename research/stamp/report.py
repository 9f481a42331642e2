#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Clobber's figures of STAMP's applications in one run: 11 (vacation), 12 (yada), and both applications' part of 13 and 14.
Writes OUT/stamp.{json,md}, the paper's values beside ours.

Rounds are interleaved, so that drift of the machine meets all cells alike; every other round goes through them backwards.
Times are the processor's, because other programs disturb those less. Ratios are of one round, and medians of those are shown.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bench" / "report"))
import compile_time  # noqa: E402

ENGINES = ["vlog_only", "undo", "clobber", "clobber_unrefined", "redo", "auto", "justdo", "ido"]
MODES = {"process": "mode `process`: survives a killed process",
         "pmem": "mode `pmem`: survives power loss; emulated, no medium is behind the flushes"}
TREES = {"rb": "red-black", "avl": "AVL"}
# Overheads over No-log in percent, as the paper's text has them.
PAPER_YADA = {"undo": 42, "clobber": 27}
PAPER_VACATION = {"undo": 74, "clobber": 68}   # at six queries
PAPER_AVL = {"none": 17, "undo": 9, "clobber": 7}
NOTES = {"none": "No-log", "vlog_only": "Clobber-NVM-vlog", "undo": "PMDK in the paper", "clobber": "Clobber-NVM",
         "pmdk": "libpmemobj, hash maps"}


class Sizes:
    def __init__(self, quick):
        self.points = 500 if quick else 9998
        self.angles = [15, 30] if quick else [15, 20, 25, 30]
        self.relations = 500 if quick else 100_000
        self.requests = 2000 if quick else 200_000
        self.queries = [2, 6] if quick else [2, 4, 6]


def cells(sizes, figures):
    """Every run by its key (application, engine, mode, kind, x), as arguments."""
    out = {}
    for mode in MODES:
        for engine in ["none", *ENGINES]:
            if figures & {11, 13}:
                for tree in TREES:
                    for queries in sizes.queries:
                        out["vacation", engine, mode, tree, queries] = vacation(sizes, engine, mode, queries) + ["--tree", tree]
            if figures & {12, 13}:
                for angle in sizes.angles:
                    out["yada", engine, mode, "", angle] = ["--engine", engine, "--mode", mode, "--angle", angle, "--points",
                                                            sizes.points, "--prefault"]
        if 11 in figures:
            for queries in sizes.queries:
                out["vacation", "pmdk", mode, "", queries] = vacation(sizes, "pmdk", mode, queries)
    return out


def vacation(sizes, engine, mode, queries):
    return ["--engine", engine, "--mode", mode, "--queries", queries, "--relations", sizes.relations, "--requests",
            sizes.requests, "--user-percent", 99, "--query-percent", 90, "--prefault"]


def run(programs, key, arguments):
    """What the program said; it has checked the mesh or the books before."""
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        line = [programs / f"holdfast-{key[0]}", pathlib.Path(folder) / "pool", *arguments]
        done = subprocess.run(list(map(str, line)), capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"failed: {' '.join(map(str, line))}\n{done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])


class Results:
    def __init__(self):
        self.rounds = []
        self.compiled = {}      # (application, engine) to seconds of its rounds

    def over(self, of, to, value="cpu_seconds"):
        """Median over the rounds of value(of) / value(to); None if one is missing."""
        found = [r[of][value] / r[to][value] for r in self.rounds if of in r and to in r and r[to][value] > 0]
        return statistics.median(found) if found else None

    def middle(self, of, value):
        found = [r[of][value] for r in self.rounds if of in r]
        return statistics.median(found) if found else None

    def agree(self):
        """Whatever the engine, the same work has the same result."""
        digests = {}
        for one in self.rounds:
            for (application, _, _, _, x), said in one.items():
                digests.setdefault((application, x), set()).add(said["digest"] if application == "vacation" else said["after"]["digest"])
        return all(len(each) == 1 for each in digests.values())


def percent(ratio):
    return "-" if ratio is None else f"{100 * (ratio - 1):+.0f} %"


def number(value, form="{:.1f}"):
    return "-" if value is None else form.format(value)


def table(head, rows):
    return ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)] + [
        "| " + " | ".join(map(str, row)) + " |" for row in rows] + [""]


def named(engine):
    return f"`{engine}`" + (f" ({NOTES[engine]})" if engine in NOTES else "")


def log_of(results, key):
    return [number(results.middle(key, "log_entries_per_step")), number(results.middle(key, "log_bytes_per_step"), "{:.0f}"),
            number(results.middle(key, "ordering_points_per_step"))]


def figure_11(results, sizes):
    yield "## Fig. 11: vacation, time over No-log by queries per task"
    yield ""
    yield f"{sizes.relations} records in each of four tables, {sizes.requests} tasks, 99 % reserve. The paper has no table of values; its text gives six queries."
    yield ""
    last = sizes.queries[-1]
    for mode, caption in MODES.items():
        for tree, name in TREES.items():
            yield f"### {name} trees, {caption}"
            yield ""
            rows = []
            for engine in ["none", *ENGINES]:
                key = ("vacation", engine, mode, tree)
                us = number(1e6 * results.middle((*key, last), "cpu_seconds") / sizes.requests, "{:.2f}")
                rows.append([named(engine), *(percent(results.over((*key, q), ("vacation", "none", mode, tree, q))) for q in sizes.queries),
                             f"+{PAPER_VACATION[engine]} %" if engine in PAPER_VACATION else "", us, *log_of(results, (*key, last))])
            key = ("vacation", "pmdk", mode, "")
            rows.append([named("pmdk"), *(percent(results.over((*key, q), ("vacation", "none", mode, tree, q))) for q in sizes.queries), "",
                         number(1e6 * results.middle((*key, last), "cpu_seconds") / sizes.requests, "{:.2f}"), "", "", ""])
            yield from table(["", *(f"{q} queries" for q in sizes.queries), f"paper, 6", f"us a task, {last}", "log entries", "log bytes",
                              "ordering points"], rows)
        yield f"### AVL over red-black throughput, {last} queries, {caption}"
        yield ""
        yield from table(["", "ours", "paper"], [
            [named(engine), percent(results.over(("vacation", engine, mode, "rb", last), ("vacation", engine, mode, "avl", last))),
             f"+{PAPER_AVL[engine]} %" if engine in PAPER_AVL else ""] for engine in ["none", *ENGINES]])


def figure_12(results, sizes):
    yield "## Fig. 12: yada, time over No-log by the smallest angle"
    yield ""
    first = results.rounds[0]["yada", "none", "process", "", sizes.angles[0]]
    yield f"The input has {first['before']['elements']} elements, {first['before']['bad']} of them bad at {sizes.angles[0]} degrees (paper: 19998, 2931 at 15)."
    yield ""
    yield from table(["angle", "processed", "elements in the end", "smallest angle"], [
        [angle, said["after"]["processed"], said["after"]["elements"], number(said["after"]["smallest_degrees"], "{:.3f}")]
        for angle in sizes.angles for said in [results.rounds[0]["yada", "none", "process", "", angle]]] + [
        ["15, paper", 5062, 30158, ""]])
    for mode, caption in MODES.items():
        yield f"### {caption}"
        yield ""
        rows = []
        for engine in ["none", *ENGINES]:
            keys = [("yada", engine, mode, "", angle) for angle in sizes.angles]
            us = 1e6 * results.middle(keys[0], "cpu_seconds") / results.middle(keys[0], "steps")
            rows.append([named(engine), *(percent(results.over(key, ("yada", "none", mode, "", key[-1]))) for key in keys),
                         f"+{PAPER_YADA[engine]} %" if engine in PAPER_YADA else "", number(us, "{:.2f}"), *log_of(results, keys[0])])
        yield from table(["", *(f"{angle} degrees" for angle in sizes.angles), "paper, about", f"us a step, {sizes.angles[0]}",
                          "log entries", "log bytes", "ordering points"], rows)


def figure_13(results, sizes):
    yield "## Fig. 13: what clobber's refinement saves, mode `pmem`"
    yield ""
    rows = []
    for name, key, paper in (("yada", ("", sizes.angles[0]), "2.4 %, 36 % of the entries"),
                             ("vacation, red-black", ("rb", sizes.queries[-1]), "less than yada"),
                             ("vacation, AVL", ("avl", sizes.queries[-1]), "less than yada")):
        application = name.split(",")[0]
        with_it, without = ((application, engine, "pmem", *key) for engine in ("clobber", "clobber_unrefined"))
        rows.append([name, percent(results.over(without, with_it)), number(results.middle(without, "log_entries_per_step")),
                     number(results.middle(with_it, "log_entries_per_step")), paper])
    yield from table(["", "faster by", "entries without", "entries with", "paper"], rows)


def figure_14(results, _):
    yield "## Fig. 14: compile time over plain clang, of the source with the sections"
    yield ""
    rows = []
    for application, paper in (("vacation", "+29 to +55 %, STAMP's are higher than the structures'"), ("yada", "as above")):
        plain = results.compiled[application, "none"]
        rows.append([application, f"{statistics.median(plain):.1f} s",
                     *(percent(statistics.median(a / b for a, b in zip(results.compiled[application, engine], plain))) for engine in ENGINES),
                     paper])
    yield from table(["", "plain clang", *ENGINES, "paper, clobber"], rows)


FIGURES = {11: figure_11, 12: figure_12, 13: figure_13, 14: figure_14}


def render(results, sizes, figures):
    lines = ["# STAMP's applications, as in Clobber-NVM", "",
             f"Measured: {len(results.rounds)} interleaved rounds, one thread, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} at the end. Processor "
             "time, medians. Engine `none` allocates outside of sections: each block costs it two ordering points in mode `pmem`, so "
             "`vlog_only` is the fairer No-log there.", "",
             f"Every engine's result is the same for the same work: {'yes' if results.agree() else '**no**'}.", ""]
    for number_of, draw in FIGURES.items():
        if number_of in figures:
            lines += draw(results, sizes)
    return "\n".join(lines).rstrip() + "\n"


def measure(given, sizes, results):
    wanted = cells(sizes, set(given.figures))
    for number_of in range(given.rounds):
        order = list(wanted) if number_of % 2 == 0 else list(reversed(wanted))
        results.rounds.append({key: run(given.build / "bin", key, wanted[key]) for key in order})
        print(f"round {number_of + 1} of {given.rounds}", file=sys.stderr)
    if 14 in given.figures:
        sources = {"vacation": "tree_tables", "yada": "sections"}
        results.compiled = compile_time.rounds_of(given.build, {
            (name, engine): f"{name}_{engine}.dir/{source}.cpp.o" for name, source in sources.items() for engine in ["none", *ENGINES]},
            given.rounds)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=pathlib.Path, required=True, help="the build's folder")
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--figures", type=int, nargs="+", choices=FIGURES, default=list(FIGURES))
    parser.add_argument("--quick", action="store_true", help="that it runs: small inputs")
    given = parser.parse_args()
    sizes, results = Sizes(given.quick), Results()
    measure(given, sizes, results)
    given.out.mkdir(parents=True, exist_ok=True)
    (given.out / "stamp.json").write_text(json.dumps({
        "sizes": vars(sizes),
        "paper": {"11": {"overhead_percent_at_6_queries": PAPER_VACATION, "avl_faster_by_percent": PAPER_AVL},
                  "12": {"overhead_percent": PAPER_YADA}},
        "rounds": [[dict(zip(("application", "engine", "mode", "tree", "x"), key)) | {"said": said} for key, said in one.items()]
                   for one in results.rounds],
        "compiled": [{"application": name, "engine": engine, "seconds": seconds}
                     for (name, engine), seconds in results.compiled.items()]}, indent=1))
    said = render(results, sizes, set(given.figures))
    (given.out / "stamp.md").write_text(said)
    print(said, end="")
    if not results.agree():
        sys.exit("engines disagree about the same work")


if __name__ == "__main__":
    main()
