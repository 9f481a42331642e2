#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""SIMPO's figures 10 to 24 in one run: results/simpo.{json,md} and plots.

Rounds are interleaved, so that drift of the machine meets all cells alike; every other round goes through them backwards.
Ratios are of one round, and medians of those are shown. Each figure says whether it is measured, emulated, or not
reproduced and why.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys

GRAINS = [1, 10, 100, 1000]
STRUCTURES = ["array", "queue", "heap", "stack", "tree", "graph"]
APPLICATIONS = ["rbm", "autoencoder", "logistic", "linpack", "bzip2", "floyd"]
RECOVERY_OPS = 640_000
ROOM_PERCENT = 67  # of its objects, as the paper's 8 GiB of more than 12


def cells(ssd_folder, micro_ops, quick):
    """Every measurement by its key: (figure, series, x)."""
    def cell(name, engine, threads=1, ops=micro_ops, **more):
        return {"name": name, "engine": engine, "threads": threads, "ops": ops, "mode": "pmem"} | more

    recovery_ops = micro_ops if quick else RECOVERY_OPS
    out = {}
    for threads in (1, 2):
        for engine in ("none", "nvram", "cow", "hybrid"):
            out["10", engine, threads] = cell("allinc", engine, threads)
        out["10", "ssd", threads] = cell("allinc", "ssd", threads, ops=30 if quick else 300, dir=ssd_folder)
        out["10", "simpo", threads] = cell("allinc", "simpo", threads)
        for engine in ("none", "simpo"):
            out["10 long", engine, threads] = cell("allinc", engine, threads, ops=micro_ops // 10, long_calls=True)
        out["12", "none", threads] = cell("rowinc", "none", threads)
        out["12", "fc", threads] = cell("rowinc", "simpo", threads, calls_a_sync=1000)
        out["12", "m-server", threads] = cell("rowinc", "simpo-hints", threads, calls_a_sync=1000)
        out["14", "none", threads] = cell("allinc", "none", threads)
        out["14", "simpo-no", threads] = cell("allinc", "simpo", threads, calls_a_sync=1000)
        out["14", "simpo-all", threads] = cell("allinc", "simpo-all", threads, calls_a_sync=1000)
        out["14", "simpo-group", threads] = cell("allinc", "simpo", threads)
        out["16", "none", threads] = cell("allinc", "none", threads, ops=recovery_ops)
        out["16", "simpo", threads] = cell("allinc", "simpo", threads, ops=recovery_ops, crash=True)
    for latency in ("", "pcm"):
        for grain in GRAINS:
            for engine in ("hybrid", "double", "kamino", "cow"):
                out[f"6{latency}", engine, grain] = cell("allinc", engine, ops=micro_ops // (10 if grain == 1 else 2),
                                                         calls_a_checkpoint=grain,
                                                         **({"latency": latency} if latency else {}))
    many = {"name": "many", "ops": 60 if quick else 600, "objects": 6 if quick else 24, "swap_dir": ssd_folder}
    for threads in (1, 2):
        one = many | {"threads": threads, "mode": "pmem"}
        out["17", "none", threads] = one | {"engine": "none"}
        out["17", "nvramall", threads] = one | {"engine": "simpo"}
        out["17", "nvram-disk", threads] = one | {"engine": "simpo", "room_percent": ROOM_PERCENT}
        out["17", "nvram-disk, zstd 1", threads] = one | {"engine": "simpo", "room_percent": ROOM_PERCENT, "zstd": 1}
    out["log", "simpo", 1] = cell("allinc", "simpo", ops=recovery_ops * 3 // 4, crash=True, log_bytes=64 << 20)
    return out


def run_json(line):
    done = subprocess.run(list(map(str, line)), capture_output=True, text=True, check=False)
    if done.returncode != 0:
        print(f"\nfailed: {' '.join(map(str, line))}\n{done.stderr}", file=sys.stderr)
        return None
    return json.loads(done.stdout)


def run_cell(program, one):
    line = [program, "bench", one["name"], "--json"]
    for key, value in one.items():
        if key != "name":
            line += [f"--{key.replace('_', '-')}"] + ([] if value is True else [value])
    return run_json(line)


class Results:
    def __init__(self):
        self.rounds = []  # of key to what a run said
        self.apps = {}    # name to what it said; None: it could not run
        self.recovery = {}

    def ratio(self, of, to, value):
        """Median over the rounds of value(of) / value(to); None if one is missing."""
        found = [value(r[of]) / value(r[to]) for r in self.rounds if r.get(of) and r.get(to)]
        return statistics.median(found) if found else None

    def middle(self, of, value):
        found = [value(r[of]) for r in self.rounds if r.get(of)]
        return statistics.median(found) if found else None


def throughput(said):
    return said["ops_per_second"]


def cpu(said):
    return said["cpu_ns_per_op"]


def opening(said):
    return said["recovery"]["seconds"]


def text(value, form="{:.2f}"):
    return "-" if value is None else form.format(value)


def table(head, rows):
    return ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)] + [
        "| " + " | ".join(map(str, row)) + " |" for row in rows]


def throughputs(results, figure, engines):
    """Throughput over native of the same round, and processor ns a call."""
    rows = []
    for engine in engines:
        row = [engine]
        for threads in (1, 2):
            key = figure, engine, threads
            row += [text(results.ratio(key, (figure, "none", threads), throughput)), text(results.middle(key, cpu), "{:.0f}")]
        rows.append(row)
    return table(["", "1 thread, over native", "ns of processor", "2 threads, over native", "ns of processor"], rows)


def figure_10(results):
    yield "## Figs. 10, 11: allInc over checkpointing and execution (ssd: in a file; the others emulated)"
    yield ""
    yield from throughputs(results, "10", ["none", "ssd", "nvram", "cow", "hybrid", "simpo"])
    yield ""
    yield "The same with calls of 2 us, as the paper's take by its figure 16:"
    yield ""
    yield from throughputs(results, "10 long", ["none", "simpo"])
    yield ""
    yield "Checkpoints by how many calls one comes after, one thread: throughput of hybrid over the comparator, and of its processor time."
    for latency, what in (("", "this machine's fences"), ("pcm", "fences as on PCM, 220 ns and 18 % of that a further line, Table 1")):
        figure = f"6{latency}"
        yield ""
        yield f"Emulated, {what}:"
        yield ""
        rows = []
        for engine in ("double", "kamino", "cow"):
            rows.append([engine] + [
                f"{text(results.ratio((figure, 'hybrid', g), (figure, engine, g), throughput))} "
                f"({text(results.ratio((figure, engine, g), (figure, 'hybrid', g), cpu))})" for g in GRAINS])
        yield from table(["hybrid over", *(f"every {g}" for g in GRAINS)], rows)


def figure_12(results):
    yield "## Figs. 12, 13: rowInc, two rows (emulated)"
    yield ""
    yield from throughputs(results, "12", ["none", "fc", "m-server"])


def figure_14(results):
    yield "## Figs. 14, 15: when logs are flushed (emulated)"
    yield ""
    yield from throughputs(results, "14", ["none", "simpo-no", "simpo-all", "simpo-group"])


def figure_16(results):
    yield f"## Fig. 16: opening after {RECOVERY_OPS} calls (emulated)"
    yield ""
    rows = []
    for threads in (1, 2):
        found = [100 * opening(r["16", "simpo", threads]) / r["16", "none", threads]["seconds"] for r in results.rounds
                 if r.get(("16", "simpo", threads)) and r.get(("16", "none", threads))]
        rows.append([threads, text(results.middle(("16", "simpo", threads), lambda s: 1000 * opening(s))),
                     text(statistics.median(found) if found else None)])
    yield from table(["threads", "ms", "% of the native run"], rows)
    yield ""
    each = results.middle(("log", "simpo", 1), lambda s: 1000 * opening(s) * 1e6 / s["ops"])
    yield (f"A log of which nothing is resilient: {text(each, '{:.0f}')} ms a million calls, read, checked and made again. Resilient logs are "
           "truncated: an open checks none (the paper: 7.5 ms a million).")
    yield ""
    yield from figure_16_killed(results)


def figure_16_killed(results):
    """A program that is killed, beside one that starts again without persistence."""
    yield "Killed when nine tenths of the calls were made (emulated); % of the native run:"
    yield ""
    if not (a := results.apps.get("recovery")):
        yield "not measured: see standard error"
        return
    rows = [[calls, one["threads"], text(1000 * one["native_seconds"], "{:.1f}"),
             *(text(100 * one[f"{what}_seconds"] / one["native_seconds"], "{:.1f}") for what in ("rerun", "opening", "application"))]
            for kind, calls in (("short", "25 ns"), ("long", "2 us")) for one in a[kind]]
    yield from table(["calls of", "threads", "native, ms", "rerun", "opening", "application, opening included"], rows)


def figure_17(results):
    yield f"## Fig. 17: 4 MiB objects, used by chance, room for {ROOM_PERCENT} % of them (pool emulated, files on a disk)"
    yield ""
    yield from throughputs(results, "17", ["none", "nvramall", "nvram-disk", "nvram-disk, zstd 1"])
    slower = [text(results.ratio(("17", "nvramall", t), ("17", "nvram-disk", t), throughput), "{:.1f}") for t in (1, 2)]
    yield ""
    yield (f"nvram-disk is {slower[0]} and {slower[1]} times slower than nvramall (the paper: 4 to 20 times, and nvramall 1.41 to 1.73 of "
           "native on many cores). What the objects hold is one number a million times, which zstd packs away: its line bounds what it can gain.")


def figure_18(results):
    yield "## Figs. 18, 19: structures, one thread, over native (emulated)"
    yield ""
    rows = [[n, text(a["persistent_seconds"] / a["native_seconds"]), text(1 + a["cpu_overhead_percent"] / 100),
             text(a["hybrid_over_native"]), text(a["hybrid_cpu_over_native"]), text(1e9 * (a["persistent_seconds"] - a["native_seconds"]) / a["steps"], "{:.0f}")]
            for n in STRUCTURES if (a := results.apps.get(n))]
    yield from table(["", "time", "processor time", "hybrid: time", "processor time", "ns more a call"], rows)


def figure_20(results):
    yield "## Figs. 20, 21: applications, over native (emulated)"
    yield ""
    rows = [[n, text(a["native_seconds"], "{:.3f}"), text(a["overhead_percent"], "{:+.1f} %"),
             text(a["cpu_overhead_percent"], "{:+.1f} %"), text(100 * (a["hybrid_cpu_over_native"] - 1), "{:+.1f} %"),
             f"{a['overhead_percent_least']:+.1f} to {a['overhead_percent_most']:+.1f} %"] if (a := results.apps.get(n))
            else [n, "not measured: see standard error", "", "", "", ""] for n in APPLICATIONS]
    yield from table(["", "native, s", "time", "processor time", "hybrid: processor time", "rounds"], rows)


def figure_22(results):
    yield "## Fig. 22: opening halfway, of the native run (emulated)"
    yield ""
    rows = [[n, text(a["opening_percent_of_native"], "{:.2f} %"), text(b["opening_percent_of_native"], "{:.2f} %"),
             text(b["cpu_overhead_percent"], "{:+.1f} %")]
            for n in APPLICATIONS if (a := results.apps.get(n)) and (b := results.recovery.get(n))]
    yield from table(["", "log 64 KiB", "log 4 KiB", "its overhead, processor time"], rows)
    yield ""
    yield "An open makes up to half a log of calls again, 512 or 32 here, however long they take."


def figure_23(results):
    yield "## Figs. 23, 24: TPC-C's StockLevel, all gets or all puts (emulated)"
    yield ""
    if not (a := results.apps.get("stock_level")):
        yield "not measured: it needs Berkeley DB (libdb-dev)"
        return
    rows = [[kind, text(a[kind]["native_us_a_transaction"]), text(a[kind]["simpo"]), text(a[kind]["bdb_ft_over_bdb"]),
             text(a[kind]["simpo_over_bdb_ft"]), text(a[kind]["bdb_simpo_over_bdb"])] for kind in ("get", "put")]
    yield from table(["", "native, us a transaction", "simpo over native", "Berkeley DB with transactions over without",
                      "simpo over the former", "Berkeley DB with objects over without"], rows)
    yield ""
    yield ("Native is an array under a lock, and simpo the object in its place. The last column is the paper's: Berkeley DB's tables in "
           "memory, and an object behind them. One thread, processor time.")


def goals(results):
    """(what, found, wanted, met)"""
    for name in ("rbm", "linpack", "bzip2", "floyd"):
        if a := results.apps.get(name):
            yield f"overhead of {name}, processor time", a["cpu_overhead_percent"], "at most 5 %", a["cpu_overhead_percent"] <= 5
    for figure, calls in (("10", "25 ns"), ("10 long", "2 us")):
        ratio = results.ratio((figure, "simpo", 2), (figure, "none", 2), throughput)
        if ratio is not None:
            yield f"allInc over native, 2 threads, calls of {calls}", ratio, "at least 2", ratio >= 2
    for grain in GRAINS:
        ratio = results.ratio(("6", "cow", grain), ("6", "hybrid", grain), cpu)
        if ratio is not None:
            yield f"hybrid over cow, every {grain}, processor time", ratio, "at least 1.5", ratio >= 1.5
    found = [100 * opening(r["16", "simpo", 1]) / r["16", "none", 1]["seconds"] for r in results.rounds
             if r.get(("16", "simpo", 1)) and r.get(("16", "none", 1))]
    if found:
        yield f"opening after {RECOVERY_OPS} calls, % of native", statistics.median(found), "at most 3", statistics.median(found) <= 3


def render(results):
    lines = ["# SIMPO's figures", "",
             f"{len(results.rounds)} interleaved rounds, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} at the end. *Emulated*: flushes "
             "and fences are executed on tmpfs, no medium is behind them. The paper's 64 and 6 cores are not there: 1 and 2 threads.", "",
             "## Goals", ""]
    lines += table(["", "found", "wanted", "met"], [[what, text(value), wanted, "yes" if met else "**no**"]
                                                    for what, value, wanted, met in goals(results)])
    for figure in (figure_10, figure_12, figure_14, figure_16, figure_17, figure_18, figure_20, figure_22, figure_23):
        lines += ["", *figure(results)]
    return "\n".join(lines) + "\n"


def draw(results, out):
    try:
        import matplotlib  # noqa: PLC0415
    except ImportError:
        print("plots are left out: they need python3-matplotlib", file=sys.stderr)
        return
    matplotlib.use("Agg")
    from matplotlib import pyplot as plt  # noqa: PLC0415
    for figure, title, engines in (("10", "Figs. 10, 11: allInc", ["nvram", "cow", "hybrid", "simpo"]),
                                   ("12", "Figs. 12, 13: rowInc", ["fc", "m-server"]),
                                   ("14", "Figs. 14, 15: flushing logs", ["simpo-no", "simpo-all", "simpo-group"])):
        drawn, axes = plt.subplots(figsize=(6, 4))
        for i, engine in enumerate(engines):
            heights = [results.ratio((figure, engine, t), (figure, "none", t), throughput) or 0 for t in (1, 2)]
            axes.bar([t + (i - (len(engines) - 1) / 2) * 0.8 / len(engines) for t in (1, 2)], heights, 0.8 / len(engines),
                     label=engine)
        axes.axhline(1, color="grey", linewidth=0.8)
        axes.set_xticks([1, 2], ["1 thread", "2 threads"])
        axes.set_ylabel("throughput over native")
        axes.set_title(f"{title} (emulated)")
        axes.legend(fontsize="small", frameon=False)
        drawn.tight_layout()
        drawn.savefig(out / f"simpo-fig{figure}.svg")
        plt.close(drawn)


def measure(arguments, results):
    wanted = cells(arguments.ssd_dir, 2000 if arguments.quick else arguments.calls, arguments.quick)
    for number in range(arguments.rounds):
        order = list(wanted) if number % 2 == 0 else list(reversed(wanted))
        results.rounds.append({key: run_cell(arguments.bin / "holdfast", wanted[key]) for key in order})
        print(f"round {number + 1} of {arguments.rounds}", file=sys.stderr)
    program = arguments.bin / "simpo_applications"
    for name in ["stock_level", "recovery", *APPLICATIONS, *STRUCTURES]:
        size = {"stock_level": 200, "recovery": 20_000, "array": 2000, "queue": 2000, "heap": 2000, "stack": 2000, "tree": 2000, "graph": 2000}.get(name, 1)
        line = [program, name, "--rounds", 1 if arguments.quick else max(arguments.rounds, 3), "--size", size if arguments.quick else 0]
        results.apps[name] = run_json(line)
        if name in APPLICATIONS:
            results.recovery[name] = run_json([*line, "--log-bytes", 4096])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bin", type=pathlib.Path, required=True, help="where holdfast and simpo_applications are")
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--calls", type=int, default=200_000, help="of a run of the microbenchmark")
    parser.add_argument("--ssd-dir", default=".", help="a folder on a disk, for variant ssd")
    parser.add_argument("--quick", action="store_true", help="that it runs: few calls, no plots")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    results = Results()
    measure(arguments, results)
    (arguments.out / "simpo.json").write_text(json.dumps(
        {"rounds": [[{"figure": k[0], "series": k[1], "x": k[2], "said": said} for k, said in r.items()] for r in results.rounds],
         "applications": results.apps, "applications_log_4096": results.recovery}, indent=1))
    said = render(results)
    (arguments.out / "simpo.md").write_text(said)
    print(said, end="")
    if any(said is None for r in results.rounds for said in r.values()):
        sys.exit("some measurements failed")
    if not arguments.quick:
        draw(results, arguments.out)


if __name__ == "__main__":
    main()
