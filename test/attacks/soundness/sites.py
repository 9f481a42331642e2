#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the analysis decided about the writes of each structure, with and without refinement.

Compiles the golden tests of engine clobber again, by the build's own commands, with -holdfast-account, and
adds up the structure's functions.
"""
import argparse
import collections
import json
import pathlib
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "scripts"))
import compile_command  # noqa: E402

TEST = re.compile(r"/(\w+)_golden_test_clobber\.dir/")
LINE = re.compile(r"^holdfast-account \S+ (.*)$", re.M)


def account(command, directory):
    words = compile_command.plain(command)
    words[words.index("-o") + 1] = "/dev/null"
    done = subprocess.run([*words, "-mllvm", "-holdfast-account"], cwd=directory, capture_output=True, text=True, check=True)
    total = collections.Counter()
    for line in LINE.findall(done.stderr):
        counts = line.split()
        total.update(dict(zip(counts[::2], map(int, counts[1::2]))))
        total["functions"] += 1
    return total


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", required=True, type=pathlib.Path)
    options = parser.parse_args()
    columns = ["functions", "writes", "fresh", "candidates", "shadowed", "unexposed", "logged"]
    print("| structure | " + " | ".join(columns) + " |\n|---" * 1 + "|---" * len(columns) + "|")
    for entry in json.loads((options.build / "compile_commands.json").read_text()):
        if found := TEST.search(entry.get("output", entry["command"])):
            total = account(entry["command"], entry["directory"])
            print(f"| {found[1]} | " + " | ".join(str(total[c]) for c in columns) + " |")


if __name__ == "__main__":
    main()
