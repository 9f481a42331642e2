# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The figures of MOD (ASPLOS 2020)."""
from figures import Claim, Drawn, Figure, Panel, mean, ratio

import experiments
import tables

CONTAINERS = experiments.CONTAINERS
WORKLOADS = [*CONTAINERS, "bfs", "vacation"]
POINTERS = ["map", "set", "stack", "queue"]
# Table 3's row of each engine.
GROWTH = {"mod": {"map": 1.87, "set": 2.08, "stack": 2.25, "queue": 1.67, "vector": 131},
          "pmdk": {"map": 1.78, "set": 1.75, "stack": 1.50, "queue": 1.50, "vector": 2}}


def value(results, name, engine, mode, field, **more):
    more = {"count_peers": None} | more
    if name in CONTAINERS and "read_percent" not in more:
        more["read_percent"] = 50 if name in ("map", "set") else 0
    runs = [run for run in tables.runs_of(results, name=name, engine=engine, mode=mode) if
            all((run.get(key) or None) == (wanted or None) for key, wanted in more.items())]
    return runs[0].get(field) if runs else None


def fig_2(said):
    results = said["bench-mod"]
    flushing, logging = [], []
    for name in WORKLOADS:
        whole, unflushed = (value(results, name, "pmdk", mode, "cpu_ns_per_op") for mode in ("pmem", "process"))
        plain = value(results, name, "volatile", "process", "cpu_ns_per_op")
        flushing.append(None if not whole else 100 * (whole - unflushed) / whole)
        logging.append(None if not whole or plain is None else 100 * max(0, unflushed - plain) / whole)
    return Drawn([Panel("libpmemobj's time", "%", WORKLOADS, {"flushes and fences": flushing, "transactions without them": logging})], [
        Claim("flushing, mean, %", sum(filter(None, flushing)) / len(WORKLOADS), 64),
        Claim("logging, mean, %", sum(filter(None, logging)) / len(WORKLOADS), 9)])


def fig_9(said):
    results = said["bench-mod"]
    took = {engine: [value(results, name, engine, "pmem", "cpu_ns_per_op") for name in WORKLOADS] for engine in ("mod", "pmdk")}
    normal = [ratio(a, b) for a, b in zip(took["mod"], took["pmdk"])]
    faster = {name: 1 / each if each else None for name, each in zip(WORKLOADS, normal)}
    clients = {one["client"]: one for one in said["server-512"]["results"]}
    servers = list(next(iter(clients.values()))["server_us_per_op"])
    return Drawn([Panel("execution time, libpmemobj = 1", "", WORKLOADS, {"mod": normal, "pmdk": [1.0 if each else None for each in took["pmdk"]]}),
                  Panel("execution time", "ns of processor an operation", WORKLOADS, took),
                  Panel("memcached's work: 512-byte values, 95 % sets", "us of the server's processor a request", list(clients),
                        {name: [one["server_us_per_op"][name] for one in clients.values()] for name in servers})], [
        Claim("PMDK over MOD, map, set, stack, queue, mean", mean(faster[each] for each in POINTERS), 1.43),
        Claim("PMDK over MOD, applications, mean", mean(faster[each] for each in ("bfs", "vacation")), 1.36),
        Claim("PMDK over MOD, vacation", faster["vacation"], 1.13)])


def fig_10(said):
    results = said["bench-mod"]

    def counted(field):
        found = {"mod": [], "pmdk": []}
        for name in WORKLOADS:
            updates = {"read_percent": 0} if name in CONTAINERS else {}
            found["mod"].append(value(results, name, "mod", "pmem", field, **updates))
            found["pmdk"].append(value(results, name, "pmdk", "pmem", field, count_peers=True, **updates))
        return found

    fences, flushes, stores = (counted(f"{each}_per_op") for each in ("fences", "flushes", "nt_stores"))
    lines = {engine: [None if a is None else a + (b or 0) for a, b in zip(flushes[engine], stores[engine])] for engine in flushes}
    return Drawn([Panel("fences", "an update", WORKLOADS, fences),
                  Panel("flushes, and stores past the caches", "an update", WORKLOADS, lines)], [
        Claim("fences, MOD", fences["mod"][:len(CONTAINERS)], 1), Claim("fences, PMDK", fences["pmdk"][:len(CONTAINERS)], 5, 11),
        Claim("flushes, PMDK", lines["pmdk"][:len(CONTAINERS)], 4, 23)])


def fig_4(said):
    found = said["flushes"]
    ns, at_once, serial = found["ns_a_line"], found["at_once"], found["serial_percent"] / 100
    amdahl = {"fitted to this machine": (ns[0], serial), "the paper's fit": (353, 0.18)}
    series = {"this machine": ns} | {label: [first * (share + (1 - share) / n) for n in at_once] for label, (first, share) in amdahl.items()}
    return Drawn([Panel(f"{found['instruction']}, 320 lines", "ns a line, over flushes under way", at_once, series)], [
        Claim("one flush and its fence, ns", ns[0], 353), Claim("16 at once shorter by, %", 100 * (1 - ns[at_once.index(16)] / ns[0]), 75),
        Claim("parallel share, %", 100 * (1 - serial), 82)])


def fig_11(said):
    found = said["misses"]
    percent = {engine: [100 * (ratio(found[name][engine]["misses"], found[name][engine]["accesses"]) or 0) for name in CONTAINERS]
               for engine in ("mod", "pmdk")}
    more = {name: ratio(found[name]["mod"]["misses"], found[name]["pmdk"]["misses"]) for name in CONTAINERS}
    share = dict(zip(CONTAINERS, map(ratio, percent["mod"], percent["pmdk"])))
    large = ("map", "set", "vector")
    return Drawn([Panel("misses of a cache of 32 KB", "% of accesses", CONTAINERS, percent)], [
        Claim("misses, MOD over PMDK: map, set, vector", [more[name] for name in large], 2.8, 4.6),
        Claim("misses as a part of accesses, which the figure draws: the same", [share[name] for name in large], 2.8, 4.6)])


def table_3(said):
    names = CONTAINERS[:-1]
    grown = {}
    for engine in GROWTH:
        for name in names:
            runs = sorted(tables.runs_of(said["bench-growth"], name=name, engine=engine), key=lambda run: run["records"])
            taken = [run["elements"] * run["bytes_per_element"] for run in runs if run.get("bytes_per_element")]
            grown.setdefault(engine, []).append(ratio(taken[1], taken[0]) if len(taken) == 2 else None)
    return Drawn([Panel("memory with twice as many elements", "times", names, grown)],
                 [Claim(f"{engine}, {name}", ours, GROWTH[engine][name]) for engine in GROWTH for name, ours in zip(names, grown[engine])])


def one_update(said):
    found = said["shadows"]["containers"]
    parts = {name: one["part"] for name, one in found.items()}
    return Drawn([Panel(f"an update of one of {said['shadows']['elements']} elements", "bytes beyond the version before", list(found),
                        {"mod": [one["bytes_of_an_update"] for one in found.values()]}),
                  Panel("the same, as a part", "of the version before", list(found), {"mod": list(parts.values())}, log=True)], [
        Claim("100 000ths of the version before, map, set, vector", [1e5 * parts[name] for name in ("map", "set", "vector")], 2, 4),
        Claim("the same, stack, queue", [1e5 * parts[name] for name in ("stack", "queue")], 2, 4)])


GUIDE = "docs/guide/mod.md"
FIGURES = [
    Figure("Fig. 1", "Pure functions and functional structures", "diagram", GUIDE),
    Figure("Fig. 2", "What flushing and logging cost PMDK's programs", "emulated",
           "Flushing is what mode process, which leaves flushes and fences out, takes less. Logging is what is left of that above the "
           "volatile structure, allocation included. Flushes to tmpfs take a fraction of Optane's.", ("bench-mod",), fig_2),
    Figure("Fig. 3", "Flushes at the same time", "diagram", "src/persist/README.md"),
    Figure("Fig. 4", "Latency of a flush by how many are under way", "emulated",
           "Lines of tmpfs are written back to DRAM, which takes half as long as to Optane, and nearly all of it in parallel.",
           ("flushes",), fig_4),
    Figure("Fig. 5", "Shadows of a structure", "diagram", GUIDE),
    Figure("Fig. 6", "The recipe", "diagram", "docs/guide/mod-recipe.md"),
    Figure("Fig. 7", "Uses of the interfaces", "diagram", GUIDE),
    Figure("Fig. 8", "Implementation of commits", "diagram", "src/mod/README.md"),
    Figure("Table 1", "The machine", "setup", "bench/README.md"),
    Figure("Table 2", "The benchmarks", "setup", "bench/README.md"),
    Figure("Fig. 9", "Execution time beside PMDK", "emulated",
           "Flushes take half as long as on Optane (Fig. 4), so libpmemobj's own work (Fig. 2), which MOD does not have, counts for more. "
           "The bfs graph is made with Flickr's numbers of nodes and edges. memcached's work runs on holdfast-kv-mod, whose items are in durable maps, beside "
           "the server on sections and memcached itself; PMDK's memcached is not beside it.", ("bench-mod", "server-512"), fig_9),
    Figure("Fig. 10", "Fences and flushes of an update", "counted",
           "libpmemobj is 1.12 here, whose transactions fence less; a store past the caches counts as a flushed line.", ("bench-mod",), fig_10),
    Figure("Section 6.5", "Memory of one update beyond the version before", "counted",
           "A thousand updates, each made of the same version of a million elements (a whole run), and all kept while nodes are counted. Nodes of stack "
           "and queue have one line, and small elements share their nodes.", ("shadows",), one_update),
    Figure("Table 3", "Memory of twice as many elements", "counted",
           "Bytes in nodes that are reachable, after reclaiming. The paper's MOD vector kept what it had retired (131 times). Ours "
           "doubles. So do lists and libpmemobj's structures: an element takes as many bytes in two million as in one. A trie's bytes for an "
           "element rise and fall with its size, once in 32 times: a set grows 2.7 times from 250 000 elements and 1.6 times from a million.",
           ("bench-growth",), table_3),
    Figure("Fig. 11", "Misses of the first-level cache", "simulated",
           "cachegrind simulates the cache, since this virtual machine hides its counters. The applications are not among them. The paper's map on "
           "PMDK has arrays; ours is the chained table of libpmemobj's examples, with 145 bytes an element where mod has 51. So searches of 20 000 elements miss "
           "more on it: 5.0 times each, and 3.8 times on mod. An update misses 7.2 and 7.6 times, but libpmemobj's has three times the accesses.",
           ("misses",), fig_11),
]
