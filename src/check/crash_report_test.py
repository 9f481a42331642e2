#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which runs scripts/crash_report.py makes of a program, which it leaves out, what it says of that, and how it ends.

Judged by executables that say how many states each run has, and keep an account of those they were asked for.
"""
import json
import pathlib
import subprocess
import sys
import tempfile

REPORT = pathlib.Path(__file__).resolve().parents[2] / "scripts/crash_report.py"
PROGRAM = """#!{python}
import json, pathlib, sys, time
given = sys.argv[1:]
if "--list" in given:
    print(json.dumps({{"name": "it", "threads": {threads}}}))
    sys.exit()
budget = given[given.index("--depth") + 1] + ":" + given[given.index("--preemptions") + 1]
with open(__file__ + ".runs", "a") as runs:
    print(budget, file=runs)
passed, complete = budget != {violation!r}, budget != {incomplete!r}
seconds = float(given[given.index("--seconds") + 1])
if not complete and seconds < 60: time.sleep(seconds)
print(json.dumps({{"name": "it", "passed": passed, "complete": complete, "seconds": 1, "images": 1,
                  "states": {states}.get(budget, 1), "violations": [] if passed else [{{"what": "torn"}}]}}))
"""


def report(*options, threads=2, states=None, violation="", incomplete=""):
    """(runs that were made, exit status, what was said, the account)"""
    with tempfile.TemporaryDirectory() as folder:
        build = pathlib.Path(folder)
        program = build / "bin/crash_it"
        program.parent.mkdir()
        program.write_text(PROGRAM.format(python=sys.executable, threads=threads, states=states or {},
                                          violation=violation, incomplete=incomplete))
        program.chmod(0o755)
        done = subprocess.run([sys.executable, REPORT, "--build", build, "--programs", "crash_it", "--no-litmus",
                               "--no-mutants", *options], capture_output=True, text=True, check=False)
        assert not done.stderr, done.stderr
        runs = pathlib.Path(f"{program}.runs").read_text().split()
        return runs, done.returncode, done.stdout, json.loads((build / "crash-report.json").read_text())


def expect(ran, status, left_out, told):
    """left_out: as the account has it; the output says the same, and how many there are."""
    runs, got, said, account = told
    assert (runs, got) == (ran, status), (runs, got, said)
    assert [tuple(each) for run in account["programs"] for each in run["left_out"]] == left_out, account
    assert account["left_out"] == len(left_out)
    lines = [line.split(maxsplit=1)[1] for line in said.splitlines() if line.startswith("  it ") and "left out: " in line]
    words = "; ".join(f"depth {depth}" + (f", {preemptions} preemptions" if told_threads(account) > 1 else "")
                      for depth, preemptions in left_out)
    assert lines == ([f"left out: {words}"] if left_out else []), said
    assert f"left out, as they have too many states or there was no time: {len(left_out)} runs" in said, said


def told_threads(account):
    return account["programs"][0]["threads"]


def main():
    both = [(1, 2), (2, 1)]
    everything = ["1:0", "1:1", "1:2", "2:1"]
    # Short ones come first. One failure and one preemption are in what is longer, and counted once.
    told = report(states={"1:0": 7, "1:1": 100, "1:2": 1000, "2:1": 10**9})
    expect(everything, 0, [], told)
    assert told[3]["states"] == 1000 + 10**9 and len(told[3]["programs"]) == 2, told[3]
    expect(everything, 0, [], report("--long", states={"1:0": 10**9, "1:1": 10**9}))
    # Without time for more; and with a run that the end of the time cuts short, which is no failure.
    expect(["1:0"], 0, [(1, 1), *both], report("--minutes", "0"))
    expect(["1:0"], 0, [(1, 0), (1, 1), *both], report("--minutes", "0", incomplete="1:0"))
    expect(["1:0"], 1, [(1, 1), *both], report("--minutes", "0", violation="1:0"))
    expect(everything, 0, [(2, 1)], report("--minutes", "0.05", incomplete="2:1"))
    expect(everything, 1, [], report(incomplete="2:1"))
    # As 'make test' asks for: that one is what is wanted, and is made once.
    brief = ["--brief", "--two-threads", "1:1"]
    expect(["1:0", "1:1"], 0, [], report(*brief, states={"1:1": 10**9}))
    expect(["1:0"], 0, [(1, 1)], report(*brief, states={"1:0": 1_001}))
    expect(["1:0", "1:1", "2:1"], 0, [], report("--two-threads", "1:1,2:1"))
    # Nothing is preempted.
    expect(["1:0", "2:0"], 0, [], report("--brief", threads=1, states={"1:0": 1_000}))
    expect(["1:0"], 0, [(2, 0)], report("--brief", threads=1, states={"1:0": 1_001}))
    expect(["1:0", "2:0"], 0, [], report(threads=3))
    expect(["1:0"], 0, [], report("--depth", "1", threads=1, states={"1:0": 10**9}))
    # A fault that a short run finds, or a short run that does not end, is a failure, however much
    # it leaves out.
    expect(["1:0", "1:1"], 1, both, report(violation="1:1"))
    expect(["1:0", "1:1"], 1, both, report("--long", incomplete="1:1"))
    expect(["1:0"], 1, [(1, 1), *both], report(violation="1:0"))
    expect(everything, 1, [], report(violation="2:1"))
    expect(["1:0", "1:1", "1:2"], 1, [(2, 1)], report("--long", incomplete="1:2"))
    print("crash_report: runs, what is left out and the exit status are as they should be")


if __name__ == "__main__":
    main()
