#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What relocatable code costs: cost.py BUILD/bin [ROUNDS [KEYS]]

Runs the plain build, the relocatable build at the canonical address, and the relocatable build with
the pool elsewhere, in turns, every other round backwards. Prints medians of the processor time per
operation, and of the ratio to the plain build within a round.
"""
import statistics
import subprocess
import sys
import tempfile

CASES = {"plain": ("plain", "canonical"),
         "relocatable": ("relocatable", "canonical"),
         "elsewhere": ("relocatable", "elsewhere")}


def measure(programs, pool, case, keys):
    build, where = CASES[case]
    command = [f"{programs}/relocation_cost_{build}", pool, where, str(keys)]
    out = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return {name: float(ns) for name, ns in (line.split() for line in out.splitlines())}


def main():
    programs = sys.argv[1]
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 7
    keys = int(sys.argv[3]) if len(sys.argv) > 3 else 100_000
    seen = []
    with tempfile.TemporaryDirectory(dir="/dev/shm") as directory:
        for number in range(rounds):
            order = list(CASES) if number % 2 == 0 else list(reversed(CASES))
            seen.append({case: measure(programs, directory + "/cost.hf", case, keys)
                         for case in order})
    print(f"{rounds} rounds, {keys} keys; ns of processor time per operation, ratio to plain\n")
    print(f"{'':20}{'plain':>10}{'relocatable':>20}{'elsewhere':>20}")
    for name in seen[0]["plain"]:
        row = f"{name:20}{statistics.median(r['plain'][name] for r in seen):10.1f}"
        for case in ("relocatable", "elsewhere"):
            ns = statistics.median(r[case][name] for r in seen)
            ratio = statistics.median(r[case][name] / r["plain"][name] for r in seen)
            row += f"{ns:12.1f} {ratio:6.2f}x"
        print(row)


main()
