# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The figures of Clobber-NVM (ASPLOS 2021)."""
import statistics

from figures import Claim, Drawn, Figure, Panel, mean, module, percent_over, ratio

import experiments
import tables

STRUCTURES = experiments.STRUCTURES
OF_PAPER = [name for name in STRUCTURES if name != "avl"]
MEMORY = "The paper has Optane and 48 cores, this machine 2 and tmpfs: its fences are short, and threads beyond 2 wait for a processor."


def of(results, structure, threads=1, **more):
    """A function of (engine, field) for the fillings of a structure in mode pmem."""
    runs = tables.fill(results, structure, "pmem", threads, **more)
    return lambda engine, field="ops_per_second": runs.get(engine, {}).get(field)


def fig_6(said):
    results = said["bench-throughput"]
    panels, gains = [], {}
    for structure in STRUCTURES:
        of_threads = [of(results, structure, threads) for threads in (1, 2, 4)]
        panels.append(Panel(structure, "inserts/s over threads", [1, 2, 4],
                            {engine: [get(engine) for get in of_threads] for engine in ("none", "clobber", "undo", "redo", "pmdk")}))
        gains[structure] = [ratio(get("clobber"), get("pmdk")) for get in of_threads]
    return Drawn(panels, [
        Claim("clobber over PMDK, 1 thread, mean", mean(gains[each][0] for each in OF_PAPER), 1.82),
        Claim("clobber over PMDK, 1 thread, hashmap", gains["hashmap"][0], 2.0),
        Claim("clobber over PMDK, 1 thread, skiplist", gains["skiplist"][0], 2.0),
        Claim("clobber over PMDK, most threads (24; 4), mean", mean(gains[each][2] for each in OF_PAPER), 1.9)])


def fig_7(said):
    results = said["bench-parts"]
    alone = {each: of(results, each) for each in STRUCTURES}
    peer = {each: of(results, each, count_peers=True) for each in STRUCTURES}
    split = {each: tables.log_split(results, each) for each in STRUCTURES}

    def share(part, field, where=OF_PAPER):
        return [ratio(peer[each]("pmdk", field), alone[each](part, field)) for each in where]

    def entries(part):
        return [100 / value if value else None for value in share(part, "log_entries_per_op")]

    def logged(field, index):
        return {"v_log": [split[each] and split[each][0][index] for each in STRUCTURES],
                "clobber_log": [split[each] and split[each][1][index] for each in STRUCTURES],
                "undo": [alone[each]("undo", field) for each in STRUCTURES],
                "pmdk": [peer[each]("pmdk", field) for each in STRUCTURES]}

    return Drawn([
        Panel("speed of the parts", "inserts/s", STRUCTURES,
              {part: [alone[each](part) for each in STRUCTURES] for part in experiments.PARTS}),
        Panel("log entries per insert", "entries", STRUCTURES, logged("log_entries_per_op", 0)),
        Panel("log bytes per insert", "bytes", STRUCTURES, logged("log_bytes_per_op", 1))], [
            Claim("entries, clobber of PMDK's, %", entries("clobber"), 21.5, 42.3),
            Claim("entries, clobber of our undo's, %", [100 * value for each in OF_PAPER if (value := ratio(
                alone[each]("clobber", "log_entries_per_op"), alone[each]("undo", "log_entries_per_op"))) is not None], 21.5, 42.3),
            Claim("entries, clobber_log alone of PMDK's, %", entries("clobberlog-only"), 15.8, 39.5),
            Claim("bytes, PMDK over clobber", share("clobber", "log_bytes_per_op"), 1.1, 42.6),
            Claim("bytes, PMDK over v_log alone", share("vlog-only", "log_bytes_per_op"), 1.2, 58),
            Claim("bytes, PMDK over clobber_log alone", share("clobberlog-only", "log_bytes_per_op"), 16.7, 154.5)])


def fig_8(said):
    results = said["bench-parts"]
    get = {each: of(results, each) for each in STRUCTURES}
    fields = ("log_entries_per_op", "log_bytes_per_op")
    more = {field: {each: ratio(get[each]("ido", field), get[each]("clobber", field)) for each in STRUCTURES} for field in fields}
    return Drawn([Panel(field.replace("_per_op", " per insert").replace("_", " "), "", STRUCTURES,
                        {engine: [get[each](engine, field) for each in STRUCTURES] for engine in ("clobber", "ido")})
                  for field in fields], [
        Claim("entries, iDO over clobber", [more[fields[0]][each] for each in OF_PAPER], 1, 23),
        Claim("bytes, iDO over clobber, mean", mean(more[fields[1]][each] for each in OF_PAPER), 4.2),
        Claim("bytes, iDO over clobber, skiplist", more[fields[1]]["skiplist"], 7.2)])


def fig_9(said):
    runs = {(run["structure"], run["engine"]): run for run in tables.runs_of(said["bench-restart"], name="restart")}
    engines = ("clobber", "undo", "pmdk")
    parts = {name: [(runs.get((each, "clobber"), {}).get("open_parts_ms") or {}).get(key) for each in STRUCTURES] for name, key in (
        ("the file mapped", "map"), ("logs read", "check"), ("inputs put back", "restore"), ("executed again", "re_execute"))}
    return Drawn([
        Panel("clobber's opening, its parts", "ms", STRUCTURES, parts, log=True),
        Panel("opening after SIGKILL", "ms", STRUCTURES,
              {engine: [runs.get((each, engine), {}).get("open_ms") for each in STRUCTURES] for engine in engines}),
        Panel("acknowledged insertions that were lost", "", STRUCTURES,
              {engine: [runs.get((each, engine), {}).get("lost") for each in STRUCTURES] for engine in engines})])


CACHES = ("none", "undo", "clobber", "redo", "pmdk")
LOCKS = {"spin": "spin lock", "rw": "reader-writer lock"}


def mixes(said):
    """The cache under one lock: panels and claims."""
    runs = {(run["engine"], run["lock"], run["threads"], run["sets_percent"]): run for run in said["server-mixes"]["runs"]}
    threads, shares = (sorted({key[at] for key in runs}) for at in (2, 3))

    def speed(engine, lock, count, sets):
        return statistics.median(runs[engine, lock, count, sets]["ops_per_second"])

    def faster(lock, sets):
        pmdk, clobber = (statistics.median(runs[engine, lock, 1, sets]["cpu_ns_per_op"]) for engine in ("pmdk", "clobber"))
        return ratio(pmdk, clobber)

    panels = [Panel(f"{sets} % sets, {name}", "requests/s over threads", threads,
                    {engine: [speed(engine, lock, count, sets) for count in threads] for engine in CACHES})
              for sets in reversed(shares) for lock, name in LOCKS.items()]
    panels += [Panel(f"spin lock over reader-writer lock, {count} threads", "times, over sets, %", shares,
                     {engine: [ratio(speed(engine, "spin", count, sets), speed(engine, "rw", count, sets)) for sets in shares]
                      for engine in CACHES}) for count in threads[1:]]
    panels.append(Panel("log entries per request", "entries, over sets, %", shares,
                        {engine: [runs[engine, "spin", 1, sets]["log_entries_per_op"] for sets in shares]
                         for engine in ("undo", "clobber", "redo")}))
    return panels, [Claim(f"clobber over PMDK, 1 thread, {name}, by processor time, the most of all mixes",
                          max(faster(lock, sets) for sets in shares), 1.8) for lock, name in LOCKS.items()]


def fig_10(said):
    runs = {(run["client"], run["sets"]): run for run in said["server"]["results"]}
    shares = sorted({sets for _, sets in runs}, reverse=True)
    panels, claims = mixes(said)
    return Drawn([*panels, *(
        Panel(f"{client} client", "requests/s over sets, %", [f"{100 * sets:.0f}" for sets in shares],
              {name: [runs[client, sets]["ops_per_second"].get(name) for sets in shares]
               for name in runs[client, shares[0]]["ops_per_second"]})
        for client in dict.fromkeys(client for client, _ in runs))], claims)


def stamp(said):
    """The report's Results, from its JSON, and its module."""
    report = module("research/stamp/report.py")
    results = report.Results()
    for one in said["stamp"]["rounds"]:
        results.rounds.append({tuple(run[part] for part in ("application", "engine", "mode", "tree", "x")): run["said"] for run in one})
    results.compiled = {(each["application"], each["engine"]): each["seconds"] for each in said["stamp"]["compiled"]}
    return report, results, said["stamp"]["sizes"]


def overhead(results, application, engine, mode, tree, x):
    over = results.over((application, engine, mode, tree, x), (application, "none", mode, tree, x))
    return None if over is None else 100 * (over - 1)


SHOWN = ("vlog_only", "undo", "clobber", "redo", "auto", "justdo", "ido")


def fig_11(said):
    report, results, sizes = stamp(said)
    last = sizes["queries"][-1]
    panels = [Panel(f"{name} trees, mode {mode}", "time over No-log, %, over queries", sizes["queries"],
                    {engine: [overhead(results, "vacation", engine, mode, tree, x) for x in sizes["queries"]] for engine in SHOWN})
              for mode in report.MODES for tree, name in report.TREES.items()]
    claims = [Claim(f"{engine}, six queries, red-black, over No-log, %", overhead(results, "vacation", engine, "pmem", "rb", last), paper)
              for engine, paper in report.PAPER_VACATION.items()]
    faster = {engine: results.over(("vacation", engine, "pmem", "rb", last), ("vacation", engine, "pmem", "avl", last))
              for engine in report.PAPER_AVL}
    return Drawn(panels, claims + [Claim(f"{engine}, AVL faster than red-black by, %", percent_over(faster[engine], 1), paper)
                                   for engine, paper in report.PAPER_AVL.items()])


def fig_12(said):
    report, results, sizes = stamp(said)
    angles = sizes["angles"]
    panels = [Panel(f"mode {mode}", "time over No-log, %, over angles", angles,
                    {engine: [overhead(results, "yada", engine, mode, "", x) for x in angles] for engine in SHOWN}) for mode in report.MODES]
    mesh = results.rounds[0]["yada", "none", "process", "", angles[0]]
    inputs = [Claim("elements before", mesh["before"]["elements"], 19_998), Claim("bad elements before", mesh["before"]["bad"], 2931),
              Claim("elements processed", mesh["after"]["processed"], 5062), Claim("elements in the end", mesh["after"]["elements"], 30_158)]
    return Drawn(panels, [Claim(f"{engine} over No-log, %", [overhead(results, "yada", engine, "pmem", "", x) for x in angles], paper)
                          for engine, paper in report.PAPER_YADA.items()] + (inputs if sizes["points"] > 5000 else []))


def fig_13(said):
    parts = said["bench-parts"]
    _, results, sizes = stamp(said)
    get = {each: of(parts, each) for each in STRUCTURES}
    where = {each: (get[each]("clobber"), get[each]("clobber-unrefined"), get[each]("clobber", "log_entries_per_op"),
                    get[each]("clobber-unrefined", "log_entries_per_op")) for each in STRUCTURES}
    for name, key in (("yada", ("yada", "", sizes["angles"][0])), ("vacation", ("vacation", "rb", sizes["queries"][-1]))):
        both = [(key[0], engine, "pmem", key[1], key[2]) for engine in ("clobber", "clobber_unrefined")]
        where[name] = (results.over(both[1], both[0]), 1.0, *(results.middle(one, "log_entries_per_step") for one in both))
    both = [{one["sets_percent"]: one for one in said[f"server-{build}"]["shares"]} for build in ("clobber", "clobber_unrefined")]
    for share in both[0]:
        where[f"server, {share} % sets"] = (both[1][share]["cpu_ns_per_op"], both[0][share]["cpu_ns_per_op"],
                                            *(build[share]["log_entries_per_op"] for build in both))
    faster = {name: percent_over(with_it, without) for name, (with_it, without, _, _) in where.items()}
    fewer = {name: None if not without else 100 * (1 - with_it / without) for name, (_, _, with_it, without) in where.items()}
    return Drawn([Panel("refined clobber faster than unrefined by", "%", list(where), {"clobber": list(faster.values())}),
                  Panel("fewer log entries by", "%", list(where), {"clobber": list(fewer.values())})], [
        Claim("skiplist faster by, %", faster["skiplist"], 15), Claim("yada faster by, %", faster["yada"], 2.4),
        Claim("yada, fewer entries by, %", fewer["yada"], 36), Claim("server, 95 % sets, faster by, %", faster["server, 95 % sets"], 15),
        Claim("server, 95 % sets, fewer entries by, %", fewer["server, 95 % sets"], 0, 24)])


def fig_14(said):
    seconds = {(each["structure"], each["build"]): each["seconds"] for each in said["bench-compile"]["compile"]}
    _, results, _ = stamp(said)
    for application in ("vacation", "yada"):
        for build in ("none", "clobber"):
            seconds[application, build] = mean(results.compiled.get((application, build), []))
    names = [*STRUCTURES, "server", "vacation", "yada"]
    more = {name: percent_over(seconds.get((name, "clobber")), seconds.get((name, "none"))) for name in names}
    return Drawn([Panel("clang, one source", "s of processor", names,
                        {build: [seconds.get((name, build)) for name in names] for build in ("none", "clobber")})], [
        Claim("longer by, four structures, mean, %", percent_over(mean(1 + (more[each] or 0) / 100 for each in OF_PAPER), 1), 29),
        Claim("longer by, server, %", more["server"], 55), Claim("longer by, vacation and yada, %", [more["vacation"], more["yada"]], 29, 55)])


FIGURES = [
    Figure("Fig. 1", "System overview", "diagram", "ARCHITECTURE.md"),
    Figure("Fig. 2", "List insertion with PMDK and Clobber-NVM", "diagram", "docs/guide/writing-a-failure-atomic-function.md"),
    Figure("Fig. 3", "Recovery of one transaction", "diagram", "src/clobber/README.md"),
    Figure("Fig. 4", "Candidate clobber writes", "diagram", "docs/internals/soundness.md"),
    Figure("Fig. 5", "False candidates removed", "diagram", "docs/internals/soundness.md"),
    Figure("Fig. 6", "Throughput of the structures over threads", "emulated", MEMORY + " What libpmemobj computes counts for more then: engine none, which "
           "logs nothing, fills a structure of a million entries in 0.27 to 0.55 of its processor time, and clobber in 0.38 to 0.69. Atlas and Mnemosyne are not beside it (docs/guide/reproducing-the-papers.md says why).",
           ("bench-throughput",), fig_6),
    Figure("Fig. 7", "Parts of the log: speed, entries, bytes", "emulated",
           "The paper's main result is reversed here. Entries and bytes are counted. Fresh memory costs neither undo nor libpmemobj's "
           "structures an entry, and clobber records values as inputs. Allocations and preserved values are entries of our v_log, and the "
           "paper counts one for all; clobberlog-only still has them.", ("bench-parts",), fig_7),
    Figure("Fig. 8", "Log entries and bytes beside iDO's", "counted",
           "Our iDO logs what a step has changed in its frame, and the paper's a snapshot of registers. Our clobber logs more than the "
           "paper's, so the ratio is smaller.", ("bench-parts",), fig_8),
    Figure("Fig. 9", "Opening after a crash", "emulated",
           "A crash is a SIGKILL while two threads insert. The paper finds clobber and PMDK alike, since most is the work of opening the "
           "pool; PMDK's takes longer to open than ours. "
           "Of ours, too, putting inputs back and executing again are the smallest parts.",
           ("bench-restart",), fig_9),
    Figure("Fig. 10", "The server by mixes of sets and gets", "emulated",
           "First a cache without a network, one hash table under one lock as the paper's memcached has it, on each engine and on libpmemobj. "
           "It has no client, whose time is the same for both, so clobber's lead over PMDK is a little more than the paper's; it shrinks alike "
           "with the share of sets. The paper's spin lock wins for sets, on idle processors. This machine has 2, and 4 threads are too many for it: one that "
           "holds the lock may lose its processor, and others that spin keep it from having one. With other programs beside it (load 27) the "
           "spin lock lost from 2 threads on, in most mixes. "
           "Then the server behind its network, beside memcached, which loses all; holdfast-kv runs engine auto, and holdfast-kv-mod durable maps. "
           "Mnemosyne (2.5 times slower than clobber in the paper) is not here.", ("server-mixes", "server"), fig_10),
    Figure("Fig. 11", "vacation by queries per task", "emulated",
           "The paper flushes to Optane, and we to tmpfs. In mode pmem engine none pays two ordering points for each block, so vlog_only is "
           "the fairer No-log. Mnemosyne is not beside it.", ("stamp",), fig_11),
    Figure("Fig. 12", "yada by the smallest angle", "emulated",
           "A generator makes the input, since STAMP's file is not here; a quick run has a twentieth of it.", ("stamp",), fig_12),
    Figure("Fig. 13", "What the refinement of the analysis saves", "emulated",
           "The structures search first and write then, so the refinement finds little to remove in them. Of the 26 stores of yada that are logged it "
           "removes 3, and a run has as many entries as before. The server is its store without the network. The paper's "
           "memcached logs up to 32 % more entries without the refinement.", ("bench-parts", "stamp", "server-clobber", "server-clobber_unrefined"), fig_13),
    Figure("Fig. 14", "Compile time", "measured",
           "One source with the sections each, of the server the three files that change its pool, on clang 19; the paper compiled whole programs with clang 7.",
           ("bench-compile", "stamp"), fig_14),
]
