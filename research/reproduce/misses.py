#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""MOD's Fig. 11: misses of a first-level data cache of 32 KB, simulated by cachegrind, as JSON.

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

# What the benchmark would set and start itself anew with, which cachegrind refuses.
PMDK = {"PMEM_IS_PMEM_FORCE": "1", "PMEM_NO_FLUSH": "1"}


def run(program, name, engine, ops, records):
    """(accesses, misses) of the whole run."""
    done = subprocess.run(["valgrind", "--tool=cachegrind", "--cache-sim=yes", "--D1=32768,8,64", "--cachegrind-out-file=/dev/null",
                           program, "bench", name, "--engine", engine, "--records", str(records), "--ops", str(ops),
                           "--mode", "process", "--no-prefault", "--json"],
                          capture_output=True, text=True, check=True, env=os.environ | PMDK)
    return [int(re.search(rf"{what}: +([\d,]+)", done.stderr)[1].replace(",", "")) for what in ("D +refs", "D1 +misses")]


def main():
    build, operations = pathlib.Path(sys.argv[1]), int(sys.argv[2])
    cells = [(name, engine, ops) for name in experiments.CONTAINERS for engine in ("mod", "pmdk") for ops in (1, operations)]
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as several:
        program = pathlib.Path(folder) / "holdfast"
        subprocess.run(["strip", "-g", "-o", program, build / "bin/holdfast"], check=True)
        said = dict(zip(cells, several.map(lambda cell: run(program, *cell, operations), cells)))
    json.dump({name: {engine: dict(zip(("accesses", "misses"), (max(0, many - few) for many, few in zip(
        said[name, engine, operations], said[name, engine, 1])))) for engine in ("mod", "pmdk")} for name in experiments.CONTAINERS},
        sys.stdout, indent=1)


if __name__ == "__main__":
    main()
