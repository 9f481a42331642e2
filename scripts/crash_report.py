#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The account of the crash checker: `make crash-report`.

Runs the litmus tests, every crash program of the tree and the mutants; prints what was explored, how fast
and what was found, and writes the same as JSON. Exit status 1 if anything failed, or was not complete.
"""
import argparse
import concurrent.futures
import heapq
import json
import math
import os
import pathlib
import subprocess
import sys
import time

ENGINES = ("clobber", "undo", "redo", "selective")
PROGRAMS = ",".join([
    *(f"crash_{part}{engine}" for part in ("", "ordered_", "trees_") for engine in ENGINES),
    *(f"crash_{part}_{engine}" for part in ("plain", "containers") for engine in ENGINES[:3]),
    *(f"crash_{part}_{engine}" for part in ("compiled", "locked") for engine in ("justdo", "ido")),
    "crash_locked_undo", "crash_plain_justdo", "crash_kernels", "crash_sections", "crash_migration", "crash_justdo",
    "crash_routines", "crash_mod_store", "crash_mod_structures", "crash_simpo", "crash_trimmed", "crash_salvage"])
# For programs with several threads: failures in a row, preemptions of a schedule. A program with
# locks is explored with each pair.
TWO_THREADS = "1:2,2:1"


def run_json(command, timeout=None):
    """The last line of standard output as JSON; None without one."""
    ran = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, text=True,
                         timeout=timeout, check=False)
    lines = ran.stdout.strip().splitlines()
    try:
        return json.loads(lines[-1]) if lines else None
    except json.JSONDecodeError:
        return None


# A second failure in a row, and threads that are preempted, multiply the states: in 'make verify' only programs with at
# most so many without have them. 'make crash-report' has short ones first, until its time is over.
STATES_BRIEF = 1_000


def budgets(program, options):
    """(depth, preemptions) of each run of a program behind its first, which is (1, 0)."""
    if program["threads"] > 2:  # with preemptions the order of threads is not tried in every way: never complete
        wanted = [(options.depth, 0)]
    elif program["threads"] > 1:
        wanted = [tuple(map(int, pair.split(":"))) for pair in options.two_threads.split(",")]
        if any(preemptions > 0 for _, preemptions in wanted):
            wanted = [(1, 1), *(budget for budget in wanted if budget != (1, 1))]
    else:
        wanted = [(options.depth, 0)]
    return [budget for budget in wanted if budget != (1, 0)]


def explore(binary, program, budget, options):
    depth, preemptions = budget
    seconds = min(options.seconds, max(options.deadline - time.monotonic(), 1))
    found = run_json([binary, program["name"], "--json", "--depth", depth, "--preemptions", preemptions,
                      "--seconds", seconds, "--first", options.first,
                      "--mode", options.mode])
    if found is None:
        found = {"name": program["name"], "passed": False, "complete": False, "states": 0, "seconds": 0,
                 "violations": [{"what": "the program died"}]}
    found.update(depth=depth, preemptions=preemptions, threads=program["threads"], left_out=[],
                 cut_short=not found["complete"] and time.monotonic() >= options.deadline)
    return found


class Exploration:
    """A program's runs: one failure and no preemption, which says whether there are more; (1, 1) before longer ones."""

    def __init__(self, binary, program, options):
        self.binary, self.program, self.options = binary, program, options
        self.waiting = [(1, 0), *budgets(program, options)]
        self.runs = {}

    def next(self):
        """(seconds that it may take, budget); None after the last run."""
        if not self.waiting:
            return None
        budget = self.waiting[0]
        if budget == (1, 0):
            return 0, budget
        first = self.runs[(1, 0)]
        if not all(run["passed"] and run["complete"] for run in self.runs.values()) or \
                first["states"] > self.options.states:
            return None
        nearest = self.runs.get((1, 1), first)  # one more of either multiplies by about as much as this
        return nearest["seconds"] * nearest["states"], budget

    def run(self):
        budget = self.waiting.pop(0)
        run = self.runs[budget] = explore(self.binary, self.program, budget, self.options)
        return text_of(run)

    def ended(self):
        """Its runs, without those that a longer one contains; the last says what is left out, or cut short."""
        def contained(budget):
            return any(run["complete"] and longer != budget and longer[0] >= budget[0] and longer[1] >= budget[1]
                       for longer, run in self.runs.items())
        runs = [run for budget, run in self.runs.items() if not contained(budget)]
        runs[-1]["left_out"] = [budget for budget, run in self.runs.items() if run["cut_short"]] + self.waiting
        return runs


def text_of_budget(run, depth, preemptions):
    return f"depth {depth}" + (f", {preemptions} preemptions" if run["threads"] > 1 else "")


def text_of(run):
    how = text_of_budget(run, run["depth"], run["preemptions"])
    ended = "" if run["complete"] else ", cut short" if run["cut_short"] else ", NOT COMPLETE"
    verdict = ("no violation" if run["passed"] else "VIOLATION") + ended
    speed = run["states"] / run["seconds"] if run["seconds"] else 0
    lines = [f"  {run['name']:<28} {how:<26} {run['states']:>10} states {run['seconds']:>8.2f} s "
             f"{speed:>9.0f}/s  {verdict}"]
    lines += [f"    {violation['what']}" for violation in run["violations"]]
    return "\n".join(lines)


def text_of_left_out(run):
    left_out = "; ".join(text_of_budget(run, *budget) for budget in run["left_out"])
    return f"  {run['name']:<28} left out: {left_out}\n"


def listed(binary):
    """The executable's programs, with their threads."""
    said = subprocess.run([binary, "--list", "--json"], stdout=subprocess.PIPE, text=True, check=True)
    return [json.loads(line) for line in said.stdout.splitlines()]


def explorations(options):
    names = options.programs.split(",")
    for name in [n for n in names if n.startswith("crash_plain_") and not (options.build / "bin" / n).exists()]:
        print(f"{name} is not in this build: a package of bench/plain was missing", flush=True)
        names.remove(name)
    return [Exploration(options.build / "bin" / name, program, options)
            for name in names for program in listed(options.build / "bin" / name)]


def explore_all(programs, options, first):
    """Their first runs, or all others: those that promise to be short before others, until the time is over."""
    waiting = [(*further, index) for index, program in enumerate(programs) if (further := program.next())]
    heapq.heapify(waiting)
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        running = {}
        while running or waiting:
            while waiting and len(running) < options.jobs and (first or time.monotonic() < options.deadline):
                *_, index = heapq.heappop(waiting)
                running[pool.submit(programs[index].run)] = index
            if not running:
                break
            ended, _ = concurrent.futures.wait(running, return_when=concurrent.futures.FIRST_COMPLETED)
            for future in ended:
                index = running.pop(future)
                print(future.result(), flush=True)
                further = None if first else programs[index].next()
                if further:
                    heapq.heappush(waiting, (*further, index))


def run_litmus(options):
    if options.no_litmus:
        return {"tests": 0, "differences": 0, "unmet": 0}
    found = run_json([options.build / "bin/check_litmus"]) or {"tests": 0, "differences": 1, "unmet": 0}
    print(f"litmus tests: {found['tests']}, {found['differences']} differences between the model and the "
          f"enumerator, {found['unmet']} sentences of the literature not met", flush=True)
    return found


def run_mutants(options):
    """The account that test/attacks/mutants/mutants.py writes; None if they were not run."""
    root = pathlib.Path(__file__).resolve().parent.parent
    script = root / "test/attacks/mutants/mutants.py"
    if options.no_mutants or not script.exists():
        return None
    account = options.json.with_suffix(".mutants.json")
    account.unlink(missing_ok=True)
    subprocess.run([sys.executable, str(script), "--source", str(root), "--build", str(options.build),
                    "--work", str(options.build / "mutants"), "--json", str(account),
                    "--one-in", "1" if options.long else "4"], check=False)
    return json.loads(account.read_text()) if account.exists() else {"mutants": 0, "rejected": 0, "false_alarms": 1}


def speed(runs):
    """States a second of one core: a run uses one."""
    seconds = sum(run["seconds"] for run in runs)
    return round(sum(run["states"] for run in runs) / seconds) if seconds else 0


def account_of(litmus, runs, mutants, seconds):
    maps = [run for run in runs if run["name"].startswith("map/")]
    return {
        "litmus": litmus["tests"],
        "litmus_differences": litmus["differences"] + litmus["unmet"],
        "states": sum(run["states"] for run in runs),
        "states_per_second": speed(maps),           # of the hash map, a core
        "states_per_second_all": speed(runs),
        "images": sum(run.get("images", 0) for run in runs),
        "violations": sum(len(run["violations"]) for run in runs),
        "mutants": mutants and mutants["mutants"],
        "mutants_rejected": mutants and mutants["rejected"],
        "mutants_account": mutants,
        "complete": all(run["complete"] or run["cut_short"] for run in runs),
        "left_out": sum(len(run["left_out"]) for run in runs),
        "seconds": round(seconds, 1),
        "programs": runs,
    }


def text_of_account(account):
    mutants = account["mutants_account"]
    told = "mutants: not run" if mutants is None else \
        f"mutants: {mutants['mutants']}, {mutants['rejected']} rejected, {mutants['false_alarms']} false alarms; " \
        f"median {mutants.get('median_seconds', 0):.2f} s, worst {mutants.get('worst_seconds', 0):.2f} s"
    return (f"states: {account['states']}, which stand for {account['images']:.2g} memory images; "
            f"{account['violations']} violations"
            f"{'' if account['complete'] else ', NOT COMPLETE'}; a second and core: "
            f"{account['states_per_second']} of the hash map, {account['states_per_second_all']} of all\n"
            f"left out, as they have too many states or there was no time: {account['left_out']} runs\n{told}")


def options_given():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path("build/release"))
    parser.add_argument("--json", type=pathlib.Path, help="default: BUILD/crash-report.json")
    parser.add_argument("--programs", default=PROGRAMS, help="executables; default %(default)s")
    parser.add_argument("--depth", type=int, default=2, help="failures in a row, one thread")
    parser.add_argument("--two-threads", default=TWO_THREADS,
                        help="DEPTH:PREEMPTIONS, … of programs with two threads; default %(default)s")
    parser.add_argument("--mode", default="its-own", help="of every program's pool: its-own, process, pmem; default %(default)s")
    parser.add_argument("--first", default="any", help="failure of two in a row: any, power, kill; default %(default)s")
    parser.add_argument("--brief", action="store_true",
                        help="more than one failure and no preemption for small programs alone, those to the end")
    parser.add_argument("--minutes", type=float, default=15,
                        help="of the report, in which short runs come first; default %(default)s")
    parser.add_argument("--long", action="store_true",
                        help="all runs to the end, of which some take hours; and every mutant")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="programs side by side; default %(default)s")
    parser.add_argument("--seconds", type=float, default=3600, help="of each run; then it is not complete")
    parser.add_argument("--no-litmus", action="store_true")
    parser.add_argument("--no-mutants", action="store_true", help="they take long to build")
    options = parser.parse_args()
    options.json = options.json or options.build / "crash-report.json"
    options.states = STATES_BRIEF if options.brief else math.inf
    options.deadline = math.inf if options.brief or options.long else time.monotonic() + 60 * options.minutes
    return options


def main():
    options = options_given()
    start = time.monotonic()
    litmus = run_litmus(options)
    programs = explorations(options)
    explore_all(programs, options, first=True)
    mutants = run_mutants(options)
    explore_all(programs, options, first=False)
    runs = [run for program in programs for run in program.ended()]
    print(*(text_of_left_out(run) for run in runs if run["left_out"]), sep="", end="", flush=True)
    account = account_of(litmus, runs, mutants, time.monotonic() - start)
    options.json.write_text(json.dumps(account, indent=1) + "\n")
    print(text_of_account(account))
    print(f"{options.json}: {account['seconds']} s in all")
    missed = mutants and (mutants["mutants"] != mutants["rejected"] or mutants["false_alarms"])
    failed = account["litmus_differences"] or account["violations"] or not account["complete"] or missed
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
