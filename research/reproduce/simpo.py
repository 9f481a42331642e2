# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The figures of SIMPO (TACO 15(1), 2018): research/simpo_applications/report.py has their numbers."""
from figures import ROOT, Claim, Drawn, Figure, Panel, module, ratio

THREADS = (1, 2)
STRUCTURES = ["array", "queue", "heap", "stack", "tree", "graph"]
FEW = "The paper has 64 cores, and a second machine with 6; this one has 2."
SHORT = FEW + " A call takes 25 to 48 ns here and 2 us there, so native's lock is held for less."
# Table 3's word for each function that our table3.cpp has, in its order.
TABLE_3 = {"array": "increase_all deferrable, zero deferrable, print_all instant",
           "queue": "clear_queue deferrable, en_queue deferrable, de_queue instant, is_empty instant, is_full instant",
           "heap": "en_heap deferrable, de_heap instant, get_num_elements instant, print_all instant",
           "stack": "push deferrable, pop instant, peek instant, is_empty instant",
           "tree": "insert_element deferrable, balance deferrable, delete_element deferrable, search_element instant",
           "graph": "joinwt deferrable, removewt deferrable, adjacent instant"}


def results_of(said):
    report = module("research/simpo_applications/report.py")
    results = report.Results()
    for one in said["simpo"]["rounds"]:
        results.rounds.append({(run["figure"], run["series"], run["x"]): run["said"] for run in one})
    results.apps, results.recovery = said["simpo"]["applications"], said["simpo"]["applications_log_4096"]
    return report, results


def over_native(said, figure, engines):
    report, results = results_of(said)
    return {engine: [results.ratio((figure, engine, t), (figure, "none", t), report.throughput) for t in THREADS] for engine in engines}


def between(series, of, to):
    """The ratios of two series, thread by thread."""
    return [ratio(a, b) for a, b in zip(series[of], series[to])]


def allinc(said, machine):
    series = over_native(said, "10", ["ssd", "nvram", "cow", "hybrid", "simpo"])
    long_calls = over_native(said, "10 long", ["simpo"])
    paper = {"AMD": (4.4, 2.2, 1.51, 2.5), "Intel": (2.6, 2.1, 1.54, 1.84)}[machine]
    return Drawn([Panel("calls of 25 to 48 ns", "throughput over native, over threads", THREADS, series),
                  Panel("calls of 2 us, as the paper's", "throughput over native, over threads", THREADS, long_calls)], [
        Claim("nvram over ssd, at most", max(filter(None, between(series, "nvram", "ssd")), default=None), paper[0]),
        Claim("hybrid over nvram, at most", max(filter(None, between(series, "hybrid", "nvram")), default=None), paper[1]),
        Claim("hybrid over cow, at most", max(filter(None, between(series, "hybrid", "cow")), default=None), paper[2]),
        Claim("hybrid over native", series["hybrid"][0], 0.91), Claim("simpo over native, 2 threads", long_calls["simpo"][1], paper[3])])


def rowinc(said, machine):
    series = over_native(said, "12", ["fc", "m-server"])
    fc, servers = {"AMD": (1.47, 2.17), "Intel": (1.42, 1.76)}[machine]
    return Drawn([Panel("rowInc, two rows", "throughput over native, over threads", THREADS, series)], [
        Claim("fc over native, 2 threads", series["fc"][1], fc), Claim("m-server over native, 2 threads", series["m-server"][1], servers)])


def flushing(said, _):
    series = over_native(said, "14", ["simpo-no", "simpo-all", "simpo-group"])
    return Drawn([Panel("allInc", "throughput over native, over threads", THREADS, series)], [
        Claim("simpo-all takes of simpo-no's throughput, %", 100 * (1 - (between(series, "simpo-all", "simpo-no")[0] or 1)), 20),
        Claim("simpo-group over simpo-no, 1 thread", between(series, "simpo-group", "simpo-no")[0], 1.0)])


def fig_16(said):
    report, results = results_of(said)
    native = [results.middle(("16", "none", t), lambda run: 1000 * run["seconds"]) for t in THREADS]
    opened = [results.middle(("16", "simpo", t), lambda run: 1000 * report.opening(run)) for t in THREADS]
    killed = results.apps.get("recovery")
    panels = [Panel("640 000 calls, then a crash", "ms, over threads", THREADS, {"none": native, "simpo: opening": opened})]
    shares = {"rerun": [], "opening": [], "application": []}
    for kind, calls in (("short", "25 to 48 ns"), ("long", "2 us, as the paper's")) if killed else ():
        panels.append(Panel(f"killed: calls of {calls}", "ms, over threads", THREADS, {
            "native": [1000 * one["native_seconds"] for one in killed[kind]],
            **{what: [1000 * one[f"{what}_seconds"] for one in killed[kind]] for what in shares}}))
        if kind == "long":
            shares = {what: [100 * one[f"{what}_seconds"] / one["native_seconds"] for one in killed[kind]] for what in shares}
    return Drawn(panels, [
        Claim("opening of a native run, %", [100 * value if (value := ratio(a, b)) is not None else None for a, b in zip(opened, native)], 0.8, 3),
        Claim("killed, calls of 2 us: rerun of a native run, %", shares["rerun"], 90, 100),
        Claim("killed, calls of 2 us: opening of a native run, %", shares["opening"], 0.8, 3),
        Claim("killed, calls of 2 us: application of a native run, %", shares["application"], 4, 10)])


def fig_17(said):
    series = over_native(said, "17", ["nvramall", "nvram-disk", "nvram-disk, zstd 1"])
    return Drawn([Panel("4 MiB objects used by chance", "throughput over native, over threads", THREADS, series)], [
        Claim("nvramall over nvram-disk", between(series, "nvramall", "nvram-disk"), 4, 20),
        Claim("nvramall over native", series["nvramall"], 1.41, 1.73)])


def applications(said, names, what):
    _, results = results_of(said)
    found = {name: results.apps.get(name) for name in names}
    times = [ratio(one["persistent_seconds"], one["native_seconds"]) if one else None for one in found.values()]
    cpu = [1 + one["cpu_overhead_percent"] / 100 if one else None for one in found.values()]
    hybrid = {label: [one.get(key) if one else None for one in found.values()]
              for label, key in (("hybrid: time", "hybrid_over_native"), ("hybrid: processor time", "hybrid_cpu_over_native"))}
    return Panel(what, "native = 1", list(names), {"time": times, "processor time": cpu, **hybrid})


def structures(said):
    panel = applications(said, STRUCTURES, "random calls, one thread")
    return Drawn([panel], [Claim("tree over native", panel.series["processor time"][4], 1.0),
                           Claim("graph over native", panel.series["processor time"][5], 1.0)])


def programs(said):
    report, _ = results_of(said)
    panel = applications(said, report.APPLICATIONS, "applications, persistent")
    few = [cpu for name, cpu in zip(panel.groups, panel.series["processor time"]) if name in ("rbm", "linpack", "bzip2", "floyd")]
    return Drawn([panel], [Claim("RBM, Linpack, bzip2, Floyd over native", few, 1.0, 1.05)])


def fig_22(said):
    report, results = results_of(said)
    opened = {label: [one[name]["opening_percent_of_native"] if one.get(name) else None for name in report.APPLICATIONS]
              for label, one in (("log of 64 KiB", results.apps), ("log of 4 KiB", results.recovery))}
    return Drawn([Panel("opening halfway", "% of a native run", report.APPLICATIONS, opened)],
                 [Claim("opening of the whole, %", opened["log of 4 KiB"], 0, 3)])


def stock_level(said, machine):
    _, results = results_of(said)
    if not (found := results.apps.get("stock_level")):
        return Drawn()
    kinds = ("get", "put")
    rows = {"simpo over native": "simpo", "Berkeley DB with transactions over without": "bdb_ft_over_bdb",
            "simpo over Berkeley DB with transactions": "simpo_over_bdb_ft",
            "Berkeley DB with objects over without": "bdb_simpo_over_bdb"}
    get, put, transactions = {"AMD": (0.98, 1.33, 0.79), "Intel": (0.95, 1.73, 0.71)}[machine]
    return Drawn([Panel(label, "times", kinds, {"simpo": [found[kind][key] for kind in kinds]}) for label, key in rows.items()], [
        Claim("gets, Berkeley DB with objects over without", found["get"]["bdb_simpo_over_bdb"], get),
        Claim("puts, Berkeley DB with objects over without", found["put"]["bdb_simpo_over_bdb"], put),
        Claim("gets, Berkeley DB with transactions over without", found["get"]["bdb_ft_over_bdb"], transactions)])


def table_3(said):
    ours = {one["name"].split("::")[-1]: {function["name"]: function["type"] for function in one["functions"]}
            for one in said["classify"]["classes"]}
    rows = [["structure", "function", "paper", "holdfast classify"]]
    for structure, functions in TABLE_3.items():
        for name, paper in (each.split() for each in functions.split(", ")):
            rows.append([structure, name, paper, ours.get(structure, {}).get(name, "not there")])
    return Drawn(table=rows, claims=[Claim("functions with the paper's class", sum(row[2] == row[3] for row in rows[1:]), len(rows) - 1)])


def table_4(said):
    """The paper counts calls of its suite: 4 to 3 up to 5 to 1 of them are deferrable."""
    rows = [["library", "classes", "functions", "deferrable", "but for noexcept", "most frequent reasons"]]
    for library, its in said["survey"].items():
        reasons = ", ".join(f"{what} ({count})" for what, count in list(its["causes"].items())[:3])
        rows.append([library, ", ".join(its["classes"]), its["functions"], its["deferrable"], its["but_for_noexcept"], reasons])
    return Drawn(table=rows)


def table_1(_):
    """The models of bench/latency.hpp, whose text says what they are made of."""
    text = (ROOT / "bench/latency.hpp").read_text()
    lines = [line.split('"')[1] + line.split("latency_model{")[1].split(",")[0].join((" ", "")) for line in text.splitlines()
             if "latency_model{" in line]
    paper = {"pcm": "150-220", "stt-ram": "10-100"}
    return Drawn(table=[["model", "first line of a fence, ns", "paper: write, ns"],
                        *([name, ns, paper.get(name, "")] for name, ns in (line.split() for line in lines))])


LEARNT = " Machine learning needs python3-sklearn's digits, and is left out without them."
README, GUIDE = "src/simpo/README.md", "docs/guide/simpo.md"
LONE = ("The paper's structures run with 60 or 6 threads, ours with one. A call of the tree takes 9 us, so its record in the log does not show: 1.01 times "
        "native's processor time in mode process, 1.04 in mode pmem. A call of the graph sets or reads one word of a matrix, and the record is most of it.")
FIGURES = [
    Figure("Table 1", "Kinds of memory", "emulated", "The models lengthen fences only, as the paper lengthens writes only.", (), table_1),
    Figure("Fig. 1", "The architecture", "diagram", README),
    Figure("Table 2", "Beside earlier work", "diagram", "docs/papers.md"),
    Figure("Fig. 2", "Guarantees of persistence", "diagram", "docs/guide/when-is-it-durable.md"),
    Figure("Table 3", "Functions of six structures, deferrable or instant", "measured",
           "`holdfast classify` on the same structures, as tools/classify/test/table3.cpp has them.", ("classify",), table_3),
    Figure("Table 4", "Deferrable and instant functions of real programs", "measured",
           "The paper's suite, BigDataBench, is not here: `holdfast classify` on classes of Debian's libraries in its place. They were not "
           "written to be deferred: they lack the word noexcept, or return something, and most hold addresses.", ("survey",), table_4),
    Figure("Fig. 3", "The log array", "diagram", "docs/format/simpo.md"),
    Figure("Table 5", "The interface", "diagram", GUIDE),
    Figure("Fig. 4", "Execution of functions", "diagram", README),
    Figure("Fig. 5", "A program's execution", "diagram", README),
    Figure("Fig. 6", "Schemes of checkpoints", "diagram", README),
    Figure("Fig. 7", "Buffered dual copies", "diagram", README),
    Figure("Fig. 8", "Execution and recovery", "diagram", README),
    Figure("Fig. 9", "The table of objects", "diagram", README),
    Figure("Table 6", "The interface of the table", "diagram", GUIDE),
    Figure("Table 7", "Variants of the microbenchmark", "setup", "bench/README.md"),
    Figure("Table 8", "The machines", "setup", "research/README.md"),
    *(Figure(f"Fig. {number}", f"{what}, {machine}", "emulated", why, ("simpo",), lambda said, draw=draw, machine=machine: draw(said, machine))
      for first, what, why, draw in (
          (10, "allInc: checkpoints and execution", SHORT + " ssd is a file on this machine's disk, synced at each call.", allinc),
          (12, "rowInc: two rows", SHORT, rowinc), (14, "allInc: when logs are flushed", SHORT, flushing))
      for number, machine in ((first, "AMD"), (first + 1, "Intel"))),
    Figure("Fig. 16", "Recovery", "emulated",
           "A crash leaves at most a log of calls to make again. Then the program starts again and skips the calls that survived "
           "(application, opening included); it is killed by SIGKILL at nine tenths of its calls. " + FEW, ("simpo",), fig_16),
    Figure("Fig. 17", "The manager of objects", "emulated", "Room for 67 % of the objects; a miss writes 4 MiB, syncs and reads 4 MiB. The paper does not say why nvramall is faster than native. It "
           "combines the calls of many cores, which two processors do not have.",
           ("simpo",), fig_17),
    Figure("Fig. 18", "Data structures, AMD", "emulated", LONE, ("simpo",), structures),
    Figure("Fig. 19", "Data structures, Intel", "emulated", LONE, ("simpo",), structures),
    Figure("Fig. 20", "Applications, AMD", "emulated", FEW + LEARNT, ("simpo",), programs),
    Figure("Fig. 21", "Applications, Intel", "emulated", FEW + LEARNT, ("simpo",), programs),
    Figure("Fig. 22", "Recovery of applications", "emulated",
           "Each is killed by SIGKILL behind half of its steps. An open makes up to half a log of calls again, however long they take; "
           "Berkeley DB is not among them.", ("simpo",), fig_22),
    *(Figure(f"Fig. {number}", f"Berkeley DB's StockLevel, {machine}", "emulated",
             "In the last group an object stands behind Berkeley DB's table, as in the paper, whose puts many cores combine; ours are of one "
             "thread. In the others native is an array under a lock, and the object stands in its place.", ("simpo",), lambda said, machine=machine: stock_level(said, machine))
      for number, machine in ((23, "AMD"), (24, "Intel"))),
]
