#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Measures everything in one run: rounds of all cells, each in a fresh process on a fresh file.

Rounds are interleaved, so that drift of the machine meets all cells alike; every other round goes
through them backwards. After each round the results so far are written: JSON, tables, plots.
"""
import argparse
import json
import os
import pathlib
import platform
import statistics
import subprocess
import sys
import time

import compile_time
import experiments
import render

PER_OP = ["fences_per_op", "flushes_per_op", "ordering_points_per_op", "log_entries_per_op",
          "log_bytes_per_op", "pm_bytes_per_op"]


def run_cell(program, one, round_number):
    line = [program, *experiments.arguments_of(one, round_number)]
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        print(f"\nfailed: {' '.join(map(str, line))}\n{done.stderr}", file=sys.stderr)
        return None
    return json.loads(done.stdout)


def peers_left_out(program):
    """The peers that this build was made without, because their packages were missing."""
    def refused(peer):
        return "no such engine" in subprocess.run([program, "bench", "hashmap", "--engine", peer, "--ops", "10"],
                                                  capture_output=True, text=True, check=False).stderr
    return [peer for peer in experiments.SYNCED if refused(peer)]


class Measured:
    """A cell and what its rounds have said."""

    def __init__(self, one, once):
        self.one = one
        self.once = once
        self.said = []
        self.failed = False     # then no later round tries again

    def median_of(self, key):
        values = [each[key] for each in self.said if each.get(key) is not None]
        return statistics.median(values) if values else None

    def as_json(self):
        main = "open_ms" if self.one["name"] == "restart" else "ops_per_second"
        values = [each[main] for each in self.said]
        middle = statistics.median(values)
        out = dict(self.said[-1]) | self.one
        out[main] = middle
        out[f"{main}_of_rounds"] = values
        out["spread"] = (max(values) - min(values)) / middle if middle else 0
        for key in [*PER_OP, "cpu_ns_per_op"]:
            if key in out:
                out[key] = self.median_of(key)
        if main == "open_ms":
            out["lost"] = sum(each["lost"] for each in self.said)
            out["open_ms_max"] = max(values)
            if out.get("open_parts_ms"):
                out["open_parts_ms"] = {part: statistics.median(each["open_parts_ms"][part] for each in self.said) for part in out["open_parts_ms"]}
        return out


def commit_of(folder):
    done = subprocess.run(["git", "-C", folder, "rev-parse", "--short", "HEAD"], text=True,
                          capture_output=True, check=False)
    return done.stdout.strip() or "unknown"


def write(out, facts, measured, compiled):
    done = [each.as_json() for each in measured if each.said]
    results = facts | {"runs": done, "compile": compiled}
    render.write_tables(results, out)
    return results


def measure(options, names):
    sizes = experiments.Sizes(options.ops, options.tree_ops)
    program = options.build / "bin" / "holdfast"
    left_out = peers_left_out(program) if names else []
    if left_out:
        print(f"not in this build, and not measured: {' '.join(left_out)}", file=sys.stderr)
    measured = [Measured(*each) for each in experiments.cells_of(names, sizes)
                if each[0]["engine"].split("-")[0] not in left_out]
    facts = {"commit": commit_of(pathlib.Path(__file__).parent), "cores": os.cpu_count(),
             "kernel": platform.release(), "rounds": options.rounds, "ops": options.ops}
    compiled = []
    if "compile" in options.only:
        compiled = compile_time.measure(options.build, options.rounds)
    start = time.monotonic()
    results = facts | {"runs": [], "compile": compiled}
    for number in range(options.rounds):
        todo = [each for each in measured if number == 0 or not (each.once or each.failed)]
        for done, each in enumerate(todo if number % 2 == 0 else reversed(todo)):
            one = each.one
            print(f"\r{time.monotonic() - start:5.0f} s  round {number + 1}/{options.rounds}  "
                  f"{done + 1}/{len(todo)}  {one['name']} {one.get('structure', '')} "
                  f"{one['engine']} {one['mode']:<30}", end="", file=sys.stderr, flush=True)
            said = run_cell(program, one, number)
            each.failed = said is None
            each.said += [said] if said else []
        facts["rounds_done"] = number + 1
        facts["failed"] = [each.one for each in measured if each.failed]
        facts["seconds"] = round(time.monotonic() - start)
        results = write(options.out, facts, measured, compiled)
    print(file=sys.stderr)
    return results if measured else write(options.out, facts, [], compiled)


def main():
    known = [*experiments.EXPERIMENTS, "compile"]
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=pathlib.Path, required=True, help="build/release")
    parser.add_argument("--out", type=pathlib.Path, required=True, help="folder of the results")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--ops", type=int, default=1_000_000, help="of the hash map")
    parser.add_argument("--tree-ops", type=int, help="of the trees and the list; without it, a fifth of --ops")
    parser.add_argument("--only", type=lambda text: text.replace(",", " ").split(), default=known,
                        help=f"of: {' '.join(known)}")
    parser.add_argument("--no-plots", action="store_true")
    options = parser.parse_args()
    options.only = options.only or known
    if unknown := set(options.only) - set(known):
        parser.error(f"no experiment '{' '.join(sorted(unknown))}'; there are: {' '.join(known)}")
    names = [name for name in experiments.EXPERIMENTS if name in options.only]
    results = measure(options, names)
    if not options.no_plots:
        render.draw(results, options.out)
    print((options.out / "bench.md").read_text())
    if failed := results.get("failed"):
        sys.exit(f"{len(failed)} cells failed: {failed}")


if __name__ == "__main__":
    main()
