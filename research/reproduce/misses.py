#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""MOD's Fig. 11, and JUSTDO's §7.2: misses of a first-level data cache of 32 KB and of a last-level cache of 1 MB, simulated by
cachegrind, as JSON.

usage: misses.py BUILD OPERATIONS

A run with operations and one without have the same start, so the difference is theirs. The program is stripped before:
cachegrind does not read this compiler's debug information.
"""
import concurrent.futures
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bench" / "report"))
import experiments  # noqa: E402

# Structures much larger than the last-level cache, whose operations go anywhere in them (bench/lock_based), by engine.
LARGE, LARGE_ENGINES, LARGE_RECORDS = ("jd-map", "jd-vector"), ("none", "undo", "justdo"), 100_000
# What the benchmark would set and start itself anew with, which cachegrind refuses.
PMDK = {"PMEM_IS_PMEM_FORCE": "1", "PMEM_NO_FLUSH": "1"}


def run(program, name, engine, ops, records):
    """(accesses, misses, misses of the last level) of the whole run."""
    done = subprocess.run(["valgrind", "--tool=cachegrind", "--cache-sim=yes", "--D1=32768,8,64", "--LL=1048576,16,64", "--cachegrind-out-file=/dev/null",
                           program, "bench", name, "--engine", engine, "--records", str(records), "--ops", str(ops),
                           "--mode", "process", "--no-prefault", "--json"],
                          capture_output=True, text=True, check=True, env=os.environ | PMDK)
    return [int(re.search(rf"{what}: +([\d,]+)", done.stderr)[1].replace(",", "")) for what in ("D +refs", "D1 +misses", "LLd misses")]


def main():
    build, operations = pathlib.Path(sys.argv[1]), int(sys.argv[2])
    wanted = [(name, engine, operations) for name in experiments.CONTAINERS for engine in ("mod", "pmdk")]
    wanted += [(name, engine, min(LARGE_RECORDS, 20 * operations)) for name in LARGE for engine in LARGE_ENGINES]
    cells = [(name, engine, ops, records) for name, engine, records in wanted for ops in (1, operations)]
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as several:
        program = pathlib.Path(folder) / "holdfast"
        subprocess.run(["strip", "-g", "-o", program, build / "bin/holdfast"], check=True)
        said = dict(zip(cells, several.map(lambda cell: run(program, *cell), cells)))
    found = {"operations": operations}
    for name, engine, records in wanted:
        found.setdefault(name, {})[engine] = dict(zip(("accesses", "misses", "last_level_misses"), (
            max(0, many - few) for many, few in zip(said[name, engine, operations, records], said[name, engine, 1, records]))))
    json.dump(found, sys.stdout, indent=1)


if __name__ == "__main__":
    main()
