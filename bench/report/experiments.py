# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What `make bench` measures: lists of cells, one run of `holdfast bench` each.

Like is compared with like: mode pmem survives power loss, as the peers' synced modes do; mode
process survives a killed process, as the peers' modes without syncing do.
"""
STRUCTURES = ["hashmap", "bptree", "skiplist", "rbtree", "avl"]
ORDERED = STRUCTURES[1:]
MIXES = ["ycsb-a", "ycsb-b", "ycsb-c", "ycsb-d", "ycsb-e", "ycsb-f"]
SYNCED = ["lmdb", "rocksdb", "sqlite", "bdb"]                   # survive power loss
UNSYNCED = ["lmdb-writemap-nosync", "rocksdb-nosync", "sqlite-normal", "bdb-nosync"]
HASHED = ["pmdk-outside", "pmdk-actions", "floor-1f", "floor-2f"]   # have a hash map only
LOCK_BASED = ["jd-queue", "jd-stack", "jd-priority", "jd-map", "jd-vector"]
CONTAINERS = ["map", "set", "stack", "queue", "vector", "vecswap"]
FILLED = ["clobber", "undo", "redo", "none", "pmdk"]
PARTS = ["none", "vlog-only", "clobberlog-only", "clobber", "undo"]


class Sizes:
    """ops: of the hash map; everything else is in proportion. `tree` gives the trees a number of their own."""

    def __init__(self, ops, tree=None):
        self.hashmap = ops
        self.tree = tree or max(1, ops // 5)
        self.stores = max(1, ops // 20)  # peers that are slower by an order of magnitude
        self.ycsb = max(1, ops // 20)
        self.latency = max(1, ops // 20)
        self.restart = ops
        self.vacation = max(1000, ops // 5)
        self.nodes, self.edges = max(1, ops * 82 // 100), max(1, ops * 984 // 100)     # of the Flickr graph at a million

    def of(self, structure):
        return self.hashmap if structure == "hashmap" else self.tree


def cell(name, engine, mode, ops, threads=1, **more):
    return {"name": name, "engine": engine, "mode": mode, "threads": threads, "ops": ops, **more}


def throughput(sizes):
    """Fig 6: filling each structure, over threads."""
    for structure in STRUCTURES:
        ops = sizes.of(structure)
        extra = HASHED if structure == "hashmap" else []
        for engine in [*FILLED, *extra, "volatile"]:
            yield cell(structure, engine, "pmem", ops)
        for threads in (2, 4):
            for engine in FILLED:
                yield cell(structure, engine, "pmem", ops, threads)
        for engine in ["clobber", "undo", "none", "pmdk", "lmdb-writemap-nosync", "volatile"]:
            yield cell(structure, engine, "process", ops)
        for engine in ["clobber", "none"]:
            yield cell(structure, engine, "process", ops, 2)
    for structure in ("hashmap", "bptree"):
        more = ["bdb-hash"] if structure == "hashmap" else []
        for engine in SYNCED + more:
            yield cell(structure, engine, "pmem", sizes.stores)
        for engine in UNSYNCED[1:] + [f"{each}-nosync" for each in more]:
            yield cell(structure, engine, "process", sizes.stores)


def parts(sizes):
    """Figs 7 and 13: the halves of the log, and the analysis without its refinement."""
    for structure in STRUCTURES:
        for engine in [*PARTS, "clobber-unrefined"]:
            yield cell(structure, engine, "pmem", sizes.of(structure))


def counts(sizes):
    """Figs 7 and 8: what libpmemobj and iDO log and flush; the speed of libpmemobj's runs counts for nothing."""
    for structure in STRUCTURES:
        yield cell(structure, "ido", "pmem", sizes.of(structure))
        for engine in ["pmdk"] + (["pmdk-outside", "pmdk-actions"] if structure == "hashmap" else []):
            yield cell(structure, engine, "pmem", sizes.of(structure), count_peers=True)


def ycsb(sizes):
    """YCSB's mixes over structures, engines, modes and threads."""
    def mixes(structure, engine, mode, threads=1, names=MIXES, distribution="zipfian"):
        for name in names:
            if name != "ycsb-e" or structure != "hashmap":
                yield cell(name, engine, mode, sizes.ycsb, threads, structure=structure,
                           records=sizes.ycsb, distribution=distribution)

    for structure in STRUCTURES:
        for engine in ["clobber", "undo", "pmdk"]:
            yield from mixes(structure, engine, "pmem")
    for structure in ("hashmap", "bptree"):
        for engine in ["clobber", "none", *UNSYNCED]:
            yield from mixes(structure, engine, "process")
        for engine in ["clobber", "pmdk"]:
            yield from mixes(structure, engine, "pmem", distribution="uniform")
            for threads in (2, 4):
                yield from mixes(structure, engine, "pmem", threads, ["ycsb-a", "ycsb-c"])
    for engine in SYNCED:
        yield from mixes("bptree", engine, "pmem")


def latency(sizes):
    """The same on memory that this machine does not have (bench/latency.hpp)."""
    for structure in STRUCTURES:
        for model in ("optane", "cxl", "cxl-far"):
            for engine in ["clobber", "undo", "pmdk"]:
                yield cell(structure, engine, "pmem", sizes.latency, latency=model)


def restart(sizes):
    """Fig 9: opening after SIGKILL."""
    for structure in STRUCTURES:
        for engine in ["clobber", "undo", "pmdk"]:
            yield {"name": "restart", "structure": structure, "engine": engine, "mode": "pmem",
                   "threads": 2, "items": sizes.restart if structure == "hashmap" else sizes.tree}


def justdo(sizes):
    """JUSTDO's Figs 8 to 11, and its other memories: structures with locks of their own."""
    def one(structure, engine, mode, threads, **more):
        if structure in ("jd-map", "jd-vector"):    # too large for the caches; the others fit into them
            more["records"] = sizes.hashmap
        return cell(structure, engine, mode, sizes.tree, threads, **more)

    for structure in LOCK_BASED:
        for engine in ("none", "undo", "justdo"):
            for threads in (1, 2, 4):
                yield one(structure, engine, "process", threads)
                yield one(structure, engine, "pmem", threads)
    for engine in ("none", "undo", "justdo"):
        for value_bytes in (1, 8, 64, 256, 1000):
            yield one("jd-map", engine, "process", 2, value_bytes=value_bytes)
        for structure in ("jd-map", "jd-vector"):
            for model in ("optane", "cxl", "cxl-far"):
                yield one(structure, engine, "pmem", 1, latency=model)


def mod(sizes):
    """MOD's Figs 2, 9 and 10: containers and applications, on libpmemobj with its flushes and without."""
    both = {"bfs": {"nodes": sizes.nodes, "edges": sizes.edges}, "vacation": {"ops": sizes.vacation, "relations": sizes.tree}}
    for name in CONTAINERS:
        for engine, mode in (("mod", "pmem"), ("pmdk", "pmem"), ("pmdk", "process"), ("volatile", "process")):
            yield cell(name, engine, mode, sizes.hashmap, records=sizes.hashmap)
        updates = {} if name in ("stack", "queue", "vecswap") else {"read_percent": 0}
        for engine in ("mod", "pmdk"):
            yield cell(name, engine, "pmem", sizes.latency, records=sizes.hashmap, count_peers=engine == "pmdk", **updates)
    for name, more in both.items():
        for engine, mode in (("mod", "pmem"), ("pmdk", "pmem"), ("pmdk", "process"), ("volatile", "process")):
            yield {"name": name, "engine": engine, "mode": mode} | more
        yield {"name": name, "engine": "pmdk", "mode": "pmem", "count_peers": True} | more


def growth(sizes):
    """MOD's Table 3: what containers take of a pool, and twice as many elements."""
    for name in CONTAINERS[:-1]:
        for records in (sizes.hashmap, 2 * sizes.hashmap):
            for engine in ("mod", "pmdk"):
                yield cell(name, engine, "pmem", 1, records=records, count_peers=engine == "pmdk")


# By the names that ONLY= takes. 'compile' is measured by compile_time.py.
EXPERIMENTS = {"throughput": throughput, "parts": parts, "counts": counts, "ycsb": ycsb,
               "latency": latency, "restart": restart, "justdo": justdo, "mod": mod, "growth": growth}
ONCE = {"counts", "growth"}           # says the same in every round


def arguments_of(one, round_number):
    """A cell as arguments of the holdfast command."""
    line = ["bench", one["name"], "--engine", one["engine"], "--mode", one["mode"], "--json"]
    for key in ("threads", "ops", "items", "structure", "records", "distribution", "latency", "value_bytes", "read_percent",
                "nodes", "edges", "relations"):
        if key in one:
            line += [f"--{key.replace('_', '-')}", str(one[key])]
    if one.get("count_peers"):
        line.append("--count-peers")
    if one["name"] == "restart":
        line += ["--kills", "1", "--seed", str(round_number + 1)]
    return line


def cells_of(names, sizes):
    """(cell, once) of the experiments, each cell once however many experiments want it."""
    seen = {}
    for name in names:
        for one in EXPERIMENTS[name](sizes):
            seen.setdefault(tuple(sorted(one.items())), (one, name in ONCE))
    return list(seen.values())
