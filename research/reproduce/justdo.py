# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The figures of JUSTDO logging (HPE-2016-09; ASPLOS 2016)."""
from figures import Claim, Drawn, Figure, Panel, ratio

import experiments
import tables

STRUCTURES = experiments.LOCK_BASED
ENGINES = ("none", "justdo", "undo")
MODELS = ("optane", "cxl", "cxl-far")
ATLAS = "Engine undo stands where the paper has Atlas, which also tracks dependencies between sections: 3 to 100 times slower than JUSTDO."


def speed(results, structure, engine, mode, threads, **more):
    more = {"latency": None, "value_bytes": 8} | more
    runs = tables.runs_of(results, name=structure, engine=engine, mode=mode, threads=threads, **more)
    return runs[0]["ops_per_second"] if runs else None


def over_threads(said, mode):
    results = said["bench-justdo"]
    panels = [Panel(structure, f"operations/s, mode {mode}, over threads", [1, 2, 4],
                    {engine: [speed(results, structure, engine, mode, threads) for threads in (1, 2, 4)] for engine in ENGINES}, log=mode == "process")
              for structure in STRUCTURES]
    of_none = [100 * value for panel in panels for a, b in zip(panel.series["justdo"], panel.series["none"])
               if (value := ratio(a, b)) is not None]
    return panels, of_none


def fig_8(said):
    panels, of_none = over_threads(said, "process")
    return Drawn(panels, [Claim("JUSTDO of the transient version, %", of_none, 33, 75)])


def fig_9(said):
    """Four threads: this machine's counterpart of many."""
    results = said["bench-justdo"]
    most = {engine: [speed(results, each, engine, "process", 4) for each in STRUCTURES] for engine in ENGINES}
    return Drawn([Panel("four threads on this machine", "operations/s", STRUCTURES, most, log=True)], [
        Claim("JUSTDO of the transient version, %", [100 * a / b for a, b in zip(most["justdo"], most["none"]) if a and b], 33, 75)])


def fig_10(said):
    panels, _ = over_threads(said, "pmem")
    faster = [ratio(b, a) for panel in panels for a, b in zip(panel.series["justdo"], panel.series["undo"])]
    return Drawn(panels, [Claim("Atlas (here: undo) over JUSTDO", faster, 2, 3)])


def memory_speed(said):
    results = said["bench-justdo"]
    where = ("jd-map", "jd-vector")
    panels = [Panel(each, "operations/s, mode pmem, over models of memory", MODELS,
                    {engine: [speed(results, each, engine, "pmem", 1, latency=model) for model in MODELS] for engine in ENGINES})
              for each in where]
    # In mode process nothing waits for memory but the caches: the paper's case, at this machine's speed.
    slower = [ratio(speed(results, each, "none", "process", 1), speed(results, each, "justdo", "process", 1)) for each in where]
    found = said["misses"]
    misses = {engine: [found[each][engine]["last_level_misses"] / found["operations"] for each in where] for engine in ENGINES}
    # An operation's time where each miss takes so many ns more than on this machine.
    later = (0, 100, 200, 400)
    ns = {engine: [None if not (ops := speed(results, each, engine, "process", 1)) else 1e9 / ops for each in where] for engine in ENGINES}
    model = {each: [None if ns["none"][i] is None or ns["justdo"][i] is None else
                    (ns["justdo"][i] + misses["justdo"][i] * more) / (ns["none"][i] + misses["none"][i] * more) for more in later]
             for i, each in enumerate(where)}
    panels += [Panel("persistent caches: misses of the last-level cache", "an operation, simulated", where, misses),
               Panel("persistent caches: transient over JUSTDO", "times, over ns that a miss takes longer (model)", later, model)]
    return Drawn(panels, [Claim("transient over JUSTDO, persistent caches", slower, 1.93, 2.0),
                          Claim("misses, JUSTDO over transient", [ratio(a, b) for a, b in zip(misses["justdo"], misses["none"])], 1.0)])


def fig_11(said):
    results = said["bench-justdo"]
    sizes = (1, 8, 64, 256, 1000)
    series = {engine: [speed(results, "jd-map", engine, "process", 2, value_bytes=size) for size in sizes] for engine in ENGINES}
    return Drawn([Panel("jd-map, two threads", "operations/s over bytes of a value", sizes, series)], [
        Claim("JUSTDO of the transient version at 1 KB, %", 100 * (ratio(series["justdo"][-1], series["none"][-1]) or 0), 100)])


def recovery(said):
    found = said["justdo-recovery"]
    parts = ("map", "root", "check", "resume", "open")
    return Drawn([Panel(f"{found['resumed']} sections, a pool of {found['mib']} MiB", "ms", parts,
                        {"median": [found[f"{part}_ms"] for part in parts], "slowest": [found[f"{part}_ms_max"] for part in parts]})], [
        Claim("map, ms", found["map_ms"], 2.0), Claim("root, us", 1000 * found["root_ms"], 1.0),
        Claim("check, us", 1000 * found["check_ms"], 64), Claim("resume, ms", found["resume_ms"], 2.7),
        Claim("all, ms", found["open_ms"], 0, 5)])


CODE = "docs/guide/justdo.md"
FIGURES = [
    Figure("Fig. 1", "Nested and hand-over-hand sections", "diagram", CODE),
    Figure("Fig. 2", "Volatile registers over persistent caches", "diagram", "docs/guide/durability-modes.md"),
    Figure("Fig. 3", "The log", "diagram", "docs/format/justdo.md"),
    Figure("Fig. 4", "Globals of the library interface", "diagram", CODE),
    Figure("Fig. 5", "A routine of the library interface", "diagram", CODE),
    Figure("Fig. 6", "A program of the library interface", "diagram", CODE),
    Figure("Fig. 7", "The same routine without logging", "diagram", CODE),
    Figure("Fig. 8", "Throughput on a workstation, persistent caches", "measured",
           ATLAS + " The paper's workstation has 8 hardware threads, this machine 2.", ("bench-justdo",), fig_8),
    Figure("Fig. 9", "Throughput on a server, persistent caches", "measured",
           "The paper's server has 60 hardware threads; here 4 threads share 2 processors, so a lock's holder may be waiting for one. " + ATLAS,
           ("bench-justdo",), fig_9),
    Figure("Section 7.2", "Memory speed", "emulated",
           "The paper clocks its DRAM at 800 to 2400 MHz. Here mode pmem waits at each fence as long as a model of other memory has it. "
           "Where caches are lost, JUSTDO waits at every store, so the ratio grows with the latency. Where caches persist, slower memory changes "
           "what a miss takes; JUSTDO's log and frames stay in the cache, so it misses as often as the transient version (cachegrind, 1 MB).",
           ("bench-justdo", "misses"), memory_speed),
    Figure("Fig. 10", "Throughput with flushes", "emulated",
           "CLWB keeps the line in the cache, where the paper's CLFLUSH throws it out. " + ATLAS, ("bench-justdo",), fig_10),
    Figure("Section 7.3", "Recovery, its parts", "measured",
           "The paper's pool has 128 GB and 24 sections open; a whole run here has 10 GB. Threads that resume share two processors. Before they do, our "
           "check reads the lanes of 64 threads, settles the allocator and marks the pool open. That took 0.18 ms with one section and 0.25 ms "
           "with 24 in a pool of 100 MiB, no more in one of 1 GiB, and 0.24 and 0.39 ms in one of 10 GiB.",
           ("justdo-recovery",), recovery),
    Figure("Fig. 11", "Throughput by the size of values", "measured",
           "Values are copied into the frame and from there to their place, where the paper links a value that was made before.",
           ("bench-justdo",), fig_11),
]
