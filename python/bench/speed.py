#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How long a Map takes beside a dict: a put and a get, of values of several kinds.

usage: speed.py [--folder FOLDER] [--rounds N] [--calls N] [--json]

It needs the package 'holdfast', and compares with lmdb and pickle where lmdb is installed. Each round measures dict, Map and lmdb in turn,
so that whatever else the machine does meets all of them. A row has the least processor time of a call over the rounds, with the loop's own
time, and the median of the rounds' ratios. FOLDER is on tmpfs, where no disk is in the way: /dev/shm.
"""
import argparse
import json
import pathlib
import pickle
import statistics
import tempfile
import time

import holdfast

TEXT = "x" * 79
DICT = {"name": "tea", "price": 2.5, "count": 3, "tags": ["a", "b"], "note": None}


def puts_of_new(to, calls):
    """What a program does that fills a dict: it makes the keys and values."""
    for i in range(calls):
        to["key %d" % i] = "value %d" % i


def puts_of(value):
    def loop(to, calls):
        for _ in range(calls):
            to["a"] = value
    return loop


def gets(of, calls):
    for _ in range(calls):
        of["a"]


def puts_of_ints(to, calls):
    for i in range(calls):
        to[i] = i


# name, what the loop needs under "a", the loop
ROWS = [
    ("put: new keys and values, str, made in the loop", None, puts_of_new),
    ("put: int keys and values", None, puts_of_ints),
    ("put: str of 79, same key", None, puts_of(TEXT)),
    ("get: str of 79", TEXT, gets),
    ("put: dict of 5, same key", None, puts_of(DICT)),
    ("get: dict of 5", DICT, gets),
]


class Lmdb:
    """As a program uses lmdb for such values: a transaction for each call, and pickle."""

    def __init__(self, folder):
        import lmdb
        self.of = lmdb.open(str(folder / "peer.lmdb"), map_size=1 << 30, sync=False, writemap=True)

    def __setitem__(self, key, value):
        with self.of.begin(write=True) as now:
            now.put(str(key).encode(), pickle.dumps(value))

    def __getitem__(self, key):
        with self.of.begin() as now:
            return pickle.loads(now.get(str(key).encode()))


def measured(folder, rounds, calls):
    kinds = {"dict": {}, "Map": holdfast.Map(folder / "speed.hf", max_bytes=1 << 30)}
    try:
        kinds["lmdb"] = Lmdb(folder)
    except ImportError:
        pass
    for name, needed, loop in ROWS:
        times = {kind: [] for kind in kinds}
        for _ in range(rounds):
            for kind, of in kinds.items():
                if needed is not None:
                    of["a"] = needed
                of_it = calls if kind != "lmdb" else max(1, calls // 10)
                began = time.thread_time_ns()
                loop(of, of_it)
                times[kind].append((time.thread_time_ns() - began) / of_it)
        yield name, times


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", default="/dev/shm")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--calls", type=int, default=10_000)
    parser.add_argument("--json", action="store_true", help="for scripts/number_tables.py")
    options = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory(dir=options.folder, prefix="holdfast-speed-") as folder:
        for name, times in measured(pathlib.Path(folder), options.rounds, options.calls):
            ratio = statistics.median(d / m for d, m in zip(times["dict"], times["Map"]))
            lmdb = f"{min(times['lmdb']):.0f}" if "lmdb" in times else "–"
            rows.append([name, f"{min(times['dict']):.0f}", f"{min(times['Map']):.0f}", f"{ratio:.2f}", lmdb])
            if not options.json:
                print("{:52} {:>6} {:>6} {:>9} {:>6}".format(*rows[-1]) if len(rows) > 1 else
                      "{:52}   dict    Map  dict/Map   lmdb\n{:52} {:>6} {:>6} {:>9} {:>6}".format("processor ns a call", *rows[-1]), flush=True)
    if options.json:
        print(json.dumps({"name": "python", "rows": rows}))


if __name__ == "__main__":
    main()
