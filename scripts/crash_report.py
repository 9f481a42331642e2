#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The account of the crash checker: `make crash-report`.

Runs the litmus tests, every crash program of the tree and the mutants; prints what was explored, how fast
and what was found, and writes the same as JSON. Exit status 1 if anything failed, or was not complete.
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys
import time

PROGRAMS = "crash_clobber,crash_undo,crash_ordered_clobber,crash_ordered_undo,crash_trees_clobber,crash_trees_undo,crash_redo,crash_ordered_redo,crash_trees_redo,crash_plain_redo,crash_selective,crash_ordered_selective,crash_trees_selective,crash_kernels,crash_sections,crash_migration,crash_mod_store,crash_mod_structures"
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


# Logs of hundreds of records, or as many lines: a second failure in a row would take hours.
ONE_FAILURE = ("section/long log", "section/brim", "kernels/hashtable resized")
# Millions of states with each pair: one failure and one preemption, but with --long.
HUGE = ("bptree/two threads",)
# With --brief, one failure in a row, or no preemption: they were half of all the time.
LONG = HUGE + ("bptree/split inner", "bptree/split root", "mod/queue/wide/adr", "mod/map/strings/adr",
               "mod/map/words/adr on return", "mod/set/strings/adr on return", "redo/many stores",
               "redo/no room for log", "left/replaced", "left/killed", "left/locked", "left/to others",
               "left/handed over", "left/thread ended")


def budgets(program, options):
    """(depth, preemptions) of each run of a program."""
    brief = options.brief and program["name"].startswith(LONG)
    if program["threads"] > 2:  # with preemptions, who goes on is not tried in every way: never complete
        return [(options.depth, 0)]
    if program["threads"] > 1:
        pairs = [tuple(map(int, pair.split(":"))) for pair in options.two_threads.split(",")]
        if brief:
            return [(depth, 0) for depth, _ in pairs]
        return [(1, 1)] if program["name"].startswith(HUGE) and not options.long else pairs
    return [(1 if brief or program["name"].startswith(ONE_FAILURE) else options.depth, 0)]


def explore(binary, program, depth, preemptions, options):
    found = run_json([binary, program["name"], "--json", "--depth", depth, "--preemptions", preemptions,
                      "--seconds", options.seconds, "--first", options.first])
    if found is None:
        found = {"name": program["name"], "passed": False, "complete": False, "states": 0, "seconds": 0,
                 "violations": [{"what": "the program died"}]}
    found.update(depth=depth, preemptions=preemptions, threads=program["threads"])
    return found


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
                for depth, preemptions in budgets(program, options):
                    runs.append(pool.submit(explore, binary, program, depth, preemptions, options))
        for run in runs:
            print(text_of(run.result()), flush=True)
    return [run.result() for run in runs]


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
                    "--work", str(options.build / "mutants"), "--json", str(account)], check=False)
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
    parser.add_argument("--brief", action="store_true", help="less of the few programs that take longest")
    parser.add_argument("--long", action="store_true", help="all of the few that take minutes to hours")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="programs side by side; default %(default)s")
    parser.add_argument("--seconds", type=float, default=3600, help="of each run; then it is not complete")
    parser.add_argument("--no-litmus", action="store_true")
    parser.add_argument("--no-mutants", action="store_true", help="they take long to build")
    options = parser.parse_args()
    options.json = options.json or options.build / "crash-report.json"
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
