#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Broken twins of mode power's log: power_test must reject every one.

usage: mutants.py --source DIRECTORY --work DIRECTORY [--compiler PROGRAM] [--only TEXT]

A mutant (src/power/mutants_log.json) replaces one place of a file; a place that is not found exactly once is an error. The
log's sources and its tests are compiled once, the changed file for each. The true code comes first: it must pass. A
mutant that has not ended in ten times as long, and two minutes, hangs, and is rejected.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import time

SOURCES = ["src/power/batch.cpp", "src/power/found_log.cpp", "src/power/home.cpp", "src/power/log.cpp",
           "src/persist/persist.cpp", "src/persist/line_log.cpp", "src/trace/trace.cpp", "src/base/assert.cpp",
           "src/base/log.cpp", "src/base/result.cpp", "src/power/batch_test.cpp", "src/power/crash_test.cpp", "src/power/log_test.cpp",
           "src/power/sections_test.cpp"]
FLAGS = ["-std=c++20", "-O1", "-g0", "-DHF_SLOW_ASSERTIONS"]
LIBRARIES = ["-lgtest", "-lgtest_main", "-lfmt", "-lpthread"]
SECONDS_MIN = 120  # before anything is said to hang


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--source", type=pathlib.Path, required=True)
    options.add_argument("--work", type=pathlib.Path, required=True)
    options.add_argument("--compiler", default="clang++-19")
    options.add_argument("--only", default="")
    given = options.parse_args()
    given.work.mkdir(parents=True, exist_ok=True)

    def compiled(text, name):
        made = given.work / (name.replace("/", "_") + ".o")
        subprocess.run([given.compiler, *FLAGS, f"-I{given.source}/include", f"-I{given.source}/src",
                        f"-I{given.source}/src/power", "-x", "c++", "-c", "-", "-o", made],
                       input=text, text=True, check=True)
        return made

    def verdict(objects, seconds):
        program = given.work / "power_test"
        subprocess.run([given.compiler, *objects, "-o", program, *LIBRARIES], check=True)
        try:
            done = subprocess.run([program, "--gtest_fail_fast", "--gtest_brief"], capture_output=True,
                                  timeout=seconds)
        except subprocess.TimeoutExpired:
            return "hangs"
        return "passes" if done.returncode == 0 else "fails"

    objects = {name: compiled((given.source / name).read_text(), name) for name in SOURCES}
    begin = time.monotonic()
    if (true := verdict(objects.values(), 10 * SECONDS_MIN)) != "passes":
        sys.exit(f"power mutants: the true code {true}")
    seconds = max(SECONDS_MIN, 10 * (time.monotonic() - begin))
    survivors = 0
    mutants = json.loads((given.source / "src/power/mutants_log.json").read_text())
    for mutant in mutants:
        text = (given.source / mutant["file"]).read_text()
        if text.count(mutant["old"]) != 1:
            sys.exit(f"{mutant['name']}: its place is there {text.count(mutant['old'])} times")
        if given.only not in mutant["name"]:
            continue
        changed = compiled(text.replace(mutant["old"], mutant["new"]), "mutant")
        found = verdict([changed if name == mutant["file"] else made for name, made in objects.items()], seconds)
        survivors += found == "passes"
        print({"passes": "SURVIVES", "fails": "rejected", "hangs": "rejected, hangs"}[found] + f": {mutant['name']}", flush=True)
    sys.exit(survivors != 0)


if __name__ == "__main__":
    main()
