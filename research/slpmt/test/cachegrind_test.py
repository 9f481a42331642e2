#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The simulator's caches miss as often as valgrind's cachegrind says, on the same accesses, within 1 %.

Cachegrind runs code that makes the accesses and nothing else. It attributes them to code of no
known file. Loader and libraries are attributed to it as well: a run that prepares everything and
makes no access shows how much that is. The second level gets the misses of the first one, as in
cachegrind itself: here as a first level of the second one's shape.
"""
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

STREAMS = ["hashtable", "kv-btree", "random:24", "random:48", "random:400"]
SHAPES = {"1": "32768,8,64", "2": "262144,4,64"}


def misses(program, what, stream, level, folder):
    """Data misses of code without a name."""
    out = pathlib.Path(folder) / "out"
    subprocess.run(["valgrind", "-q", "--tool=cachegrind", "--cache-sim=yes", f"--D1={SHAPES[level]}",
                    "--I1=32768,8,64", "--LL=33554432,16,64", f"--cachegrind-out-file={out}",
                    program, what, stream, level], check=True, stderr=subprocess.DEVNULL)
    events, found, unnamed = [], 0, False
    for line in out.read_text().splitlines():
        if line.startswith("events:"):
            events = line.split()[1:]
        elif line.startswith("fn="):
            unnamed = line == "fn=???"
        elif unnamed and re.match(r"[0-9]+ ", line):
            numbers = dict(zip(events, map(int, line.split()[1:])))
            found += numbers["D1mr"] + numbers["D1mw"]
    return found


def main():
    if shutil.which("valgrind") is None:
        sys.exit("valgrind is not installed (packages.txt)")
    program, worst = sys.argv[1], 0.0
    with tempfile.TemporaryDirectory() as folder:
        for stream in STREAMS:
            said = dict(part.split("=") for part in subprocess.run(
                [program, "count", stream, "1"], check=True, capture_output=True, text=True).stdout.split())
            for level, name in (("1", "first_misses"), ("2", "second_misses")):
                ours = int(said[name])
                with_it, without = (misses(program, what, stream, level, folder) for what in ("run", "prepare"))
                theirs = with_it - without
                assert ours > 100, f"{stream}: {ours} {name} show nothing"
                apart = abs(ours - theirs) / theirs
                worst = max(worst, apart)
                print(f"{stream}, {said['accesses']} accesses: {name}: {ours}, cachegrind {theirs}: "
                      f"{100 * apart:.2f} % apart", flush=True)
    assert worst <= 0.01, f"{100 * worst:.2f} % apart"


if __name__ == "__main__":
    main()
