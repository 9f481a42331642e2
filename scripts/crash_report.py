#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The account of the crash checker: `make crash-report`.

Runs the litmus tests, every crash program of the tree and the mutants; prints what was explored, how fast
and what was found, and writes the same as JSON. Exit status 1 if anything failed, or was not complete.
"""
import argparse
import concurrent.futures
import itertools
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
    "crash_routines", "crash_mod_store", "crash_mod_structures", "crash_simpo", "crash_trimmed"])
# Of programs with several threads: failures in a row, preemptions of a schedule. One that locks is
# explored with each pair.
TWO_THREADS = "1:2,2:1"


def run_json(command, timeout=None):
    """The last line of standard output as JSON; None where there is none."""
    ran = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, text=True,
                         timeout=timeout, check=False)
    lines = ran.stdout.strip().splitlines()
    try:
        return json.loads(lines[-1]) if lines else None
    except json.JSONDecodeError:
        return None


# A second failure in a row, and threads that are preempted, multiply the states: only programs with at most so many
# without have them. Of 'make test', and of 'make crash-report'; with --long all have them.
STATES_BRIEF, STATES = 1_000, 5_000


def budgets(program, options):
    """(depth, preemptions) of each run of a program."""
    if program["threads"] > 2:  # with preemptions, who goes on is not tried in every way: never complete
        return [(options.depth, 0)]
    if program["threads"] > 1:
        return [tuple(map(int, pair.split(":"))) for pair in options.two_threads.split(",")]
    return [(options.depth, 0)]


def explore(binary, program, depth, preemptions, options):
    found = run_json([binary, program["name"], "--json", "--depth", depth, "--preemptions", preemptions,
                      "--seconds", options.seconds, "--first", options.first])
    if found is None:
        found = {"name": program["name"], "passed": False, "complete": False, "states": 0, "seconds": 0,
                 "violations": [{"what": "the program died"}]}
    found.update(depth=depth, preemptions=preemptions, threads=program["threads"])
    return found


def explore_program(binary, program, options):
    """Its runs: as the options say, or one failure alone where that has many states."""
    alone = explore(binary, program, 1, 0, options)
    wanted = [budget for budget in budgets(program, options) if budget != (1, 0)]
    fits = alone["passed"] and alone["complete"] and alone["states"] <= options.states
    if not wanted or not fits:
        return [alone]
    return [explore(binary, program, depth, preemptions, options) for depth, preemptions in wanted]


def text_of(run):
    how = f"depth {run['depth']}" + (f", {run['preemptions']} preemptions" if run["threads"] > 1 else "")
    verdict = ("no violation" if run["passed"] else "VIOLATION") + ("" if run["complete"] else ", NOT COMPLETE")
    speed = run["states"] / run["seconds"] if run["seconds"] else 0
    lines = [f"  {run['name']:<28} {how:<26} {run['states']:>10} states {run['seconds']:>8.2f} s "
             f"{speed:>9.0f}/s  {verdict}"]
    lines += [f"    {violation['what']}" for violation in run["violations"]]
    return "\n".join(lines)


def listed(binary):
    """The executable's programs, with their threads."""
    said = subprocess.run([binary, "--list", "--json"], stdout=subprocess.PIPE, text=True, check=True)
    return [json.loads(line) for line in said.stdout.splitlines()]


def explore_all(options):
    runs = []
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for name in options.programs.split(","):
            binary = options.build / "bin" / name
            for program in listed(binary):
                runs.append(pool.submit(explore_program, binary, program, options))
        for run in itertools.chain.from_iterable(each.result() for each in runs):
            print(text_of(run), flush=True)
    return [run for each in runs for run in each.result()]


def run_litmus(options):
    if options.no_litmus:
        return {"tests": 0, "differences": 0, "unmet": 0}
    found = run_json([options.build / "bin/check_litmus"]) or {"tests": 0, "differences": 1, "unmet": 0}
    print(f"litmus tests: {found['tests']}, {found['differences']} differences between the model and the "
          f"enumerator, {found['unmet']} sentences of the literature not met", flush=True)
    return found


def run_mutants(options):
    """The account that test/mutants/mutants.py writes; None where they were not run."""
    root = pathlib.Path(__file__).resolve().parent.parent
    script = root / "test/mutants/mutants.py"
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
        "complete": all(run["complete"] for run in runs),
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
            f"{account['states_per_second']} of the hash map, {account['states_per_second_all']} of all\n{told}")


def options_given():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path("build/release"))
    parser.add_argument("--json", type=pathlib.Path, help="default: BUILD/crash-report.json")
    parser.add_argument("--programs", default=PROGRAMS, help="executables; default %(default)s")
    parser.add_argument("--depth", type=int, default=2, help="failures in a row, one thread")
    parser.add_argument("--two-threads", default=TWO_THREADS,
                        help="DEPTH:PREEMPTIONS, … of programs with two threads; default %(default)s")
    parser.add_argument("--first", default="any", help="failure of two in a row: any, power, kill; default %(default)s")
    parser.add_argument("--brief", dest="states", action="store_const", const=STATES_BRIEF, default=STATES,
                        help="a second failure in a row for small programs alone")
    parser.add_argument("--long", action="store_true", help="for all, of which some take hours; and every mutant")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="programs side by side; default %(default)s")
    parser.add_argument("--seconds", type=float, default=3600, help="of each run; then it is not complete")
    parser.add_argument("--no-litmus", action="store_true")
    parser.add_argument("--no-mutants", action="store_true", help="they take long to build")
    options = parser.parse_args()
    options.json = options.json or options.build / "crash-report.json"
    if options.long:
        options.states = math.inf
    return options


def main():
    options = options_given()
    start = time.monotonic()
    litmus = run_litmus(options)
    runs = explore_all(options)
    mutants = run_mutants(options)
    account = account_of(litmus, runs, mutants, time.monotonic() - start)
    options.json.write_text(json.dumps(account, indent=1) + "\n")
    print(text_of_account(account))
    print(f"{options.json}: {account['seconds']} s in all")
    missed = mutants and (mutants["mutants"] != mutants["rejected"] or mutants["false_alarms"])
    failed = account["litmus_differences"] or account["violations"] or not account["complete"] or missed
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
