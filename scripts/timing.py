#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Where a build's and a test run's time went: `make timing`.

Prints the ten dearest build steps and tests, and what each module took of both.

usage: timing.py [--build build/release]
"""
import argparse
import collections
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[1]
# A module below this is not worth a word.
SECONDS_MIN = 10


def steps(build):
    """(seconds, output) of each step of the last build of every output."""
    last = {}
    for line in (build / ".ninja_log").read_text().splitlines()[1:]:
        begin, end, _, output, command = line.split("\t")
        if not output.startswith("/"):  # a by-product, named once more
            last[begin, end, command] = (int(end) - int(begin)) / 1000, output
    return list(last.values())


def tests(build):
    """(seconds, name) of each test of the last run."""
    log = build / "Testing/Temporary/LastTest.log"
    if not log.exists():
        return []
    found = re.findall(r"^\d+/\d+ Testing: (.*?)$.*?^Test time = +([0-9.]+) sec", log.read_text(errors="replace"),
                       re.MULTILINE | re.DOTALL)
    return [(float(seconds), name) for name, seconds in found]


def folder_of_tests(build):
    """The folder, from the build's top, of each test."""
    where = {}
    for file in build.rglob("*.cmake"):
        if file.name == "CTestTestfile.cmake" or file.name.endswith("_tests.cmake"):
            for name in re.findall(r"^ *add_test\(\s*\[=*\[(.*?)\]=*\]", file.read_text(), re.MULTILINE):
                where[name] = str(file.parent.relative_to(build))
    return where


def module_of(path):
    """src/NAME, test/NAME, and the first folder of everything else."""
    parts = pathlib.PurePath(path).parts
    if parts[0] in ("src", "test") and len(parts) > 1:
        return "/".join(parts[:2])
    return "linking" if parts[0] in ("bin", "lib") else parts[0]


def table(title, spent):
    print(f"\n{title}: {sum(spent.values()):.0f} s")
    for module, seconds in spent.most_common():
        if seconds >= SECONDS_MIN:
            print(f"  {module:<24} {seconds:8.1f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/release")
    options = parser.parse_args()
    took_building, took_testing = steps(options.build), tests(options.build)
    for title, rows in (("steps", took_building), ("tests", took_testing)):
        print(f"the dearest {title}:")
        for seconds, name in sorted(rows, reverse=True)[:10]:
            print(f"  {seconds:8.1f}  {name}")
    where, spent_building, spent_testing = folder_of_tests(options.build), collections.Counter(), collections.Counter()
    for seconds, output in took_building:
        spent_building[module_of(output)] += seconds
    for seconds, name in took_testing:
        spent_testing[module_of(where.get(name, "unknown"))] += seconds
    table("build", spent_building)
    table("tests", spent_testing)


if __name__ == "__main__":
    main()
