#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The crash programs of several threads, by schedules drawn from a seed, for a given time.

`make crash-report` tries every schedule of few preemptions. Here threads change turns anywhere, as often
as it comes, and power fails (or the process is killed) at every event of each run, so that every two
lanes are torn at every two places that come up: first at depth 1, then at depth 2. Prints each program's
seed and states; exit status 1 at a violation.
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys
import time

from crash_report import PROGRAMS, listed

SCHEDULES = 1_000_000_000  # more than there is time for


def programs_of_several_threads(binaries):
    for name in PROGRAMS.split(","):
        for program in listed(binaries / name):
            if program["threads"] > 1:
                yield binaries / name, program["name"]


def explore(binary, name, depth, seed, seconds):
    """Its states, and the report; a violation's report is not empty."""
    command = [str(binary), name, "--depth", str(depth), "--preemptions", "0", "--schedules", str(SCHEDULES),
               "--seed", str(seed), "--seconds", str(seconds)]
    ran = subprocess.run([*command, "--json"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                         check=False)
    if ran.returncode not in (0, 3):  # 3: time was up
        again = subprocess.run(command, capture_output=True, text=True, check=False)
        return 0, 0, ran.stdout + again.stdout  # the second is for people, and may find nothing
    found = json.loads(ran.stdout.strip().splitlines()[-1])
    return found["states"], found["schedules"], ""


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("bin", type=pathlib.Path)
    parser.add_argument("seconds", type=float)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="programs side by side; default %(default)s")
    options = parser.parse_args()
    jobs = options.jobs
    all_of_them = [(*program, depth) for depth in (1, 2) for program in programs_of_several_threads(options.bin)]
    seconds = max(1.0, options.seconds * jobs / len(all_of_them))
    states = schedules = 0
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        runs = {pool.submit(explore, binary, name, depth, options.seed + i, seconds): (name, depth, options.seed + i)
                for i, (binary, name, depth) in enumerate(all_of_them)}
        for run in concurrent.futures.as_completed(runs):
            name, depth, seed = runs[run]
            more_states, more_schedules, report = run.result()
            states += more_states
            schedules += more_schedules
            print(f"{name}, depth {depth}, seed {seed}: {more_states} states of {more_schedules} schedules", flush=True)
            if report:
                print(report)
                pool.shutdown(cancel_futures=True)
                return 1
    print(f"{states} states of {schedules} schedules of {len(all_of_them) // 2} programs: no violation")
    return 0


if __name__ == "__main__":
    sys.exit(main())
