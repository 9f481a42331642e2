#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Goal: no bytes that a client may send crash the server, confuse it or make it grow.

usage: fuzz.py [--seed N] [--found FOLDER] PROGRAM RUNS [PROGRAM RUNS...]

Runs each fuzzer for that many inputs, from the corpus and the dictionary in fuzz/, and prints how fast
it was, the coverage, and the memory it held after a tenth of the inputs and at the end. Fails when an
input fails, which is then left in FOLDER, and when the memory has grown by more than 64 MiB between the
two. Without --seed the seed is the clock's; it is printed.
"""

import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
GROWTH_MB_MAX = 64  # the fuzzer's own collection of inputs, above all
INPUT_BYTES_MAX = 300  # in a session, two of them can stand for many


def command(program, runs, seed, corpus, found):
    return [program, f"-runs={runs}", f"-seed={seed}", f"-max_len={INPUT_BYTES_MAX}", "-timeout=20", "-rss_limit_mb=1024",
            f"-artifact_prefix={found}/", f"-dict={HERE}/fuzz/memcached.dict", "-print_final_stats=1",
            corpus, f"{HERE}/fuzz/corpus"]


def follow(process, runs):
    """What the fuzzer's lines say: (inputs, coverage, MiB after a tenth, MiB at the end)."""
    inputs, coverage, early, last = 0, 0, None, 0
    tail = []
    for line in process.stdout:
        tail = tail[-60:] + [line]
        if found := re.match(r"#(\d+)\s.*cov: (\d+).*rss: (\d+)Mb", line):
            inputs, coverage, last = (int(number) for number in found.groups())
            if early is None and inputs >= runs // 10:
                early = last
    return inputs, coverage, early if early is not None else last, last, "".join(tail)


def fuzz(program, runs, seed, found):
    # A short quarantine: freed memory that the sanitizer keeps aside is no growth of the program.
    options = "quarantine_size_mb=8:malloc_context_size=4:" + os.environ.get("ASAN_OPTIONS", "")
    with tempfile.TemporaryDirectory(prefix="holdfast-fuzz-") as corpus:
        started = time.monotonic()
        process = subprocess.Popen(command(program, runs, seed, corpus, found), stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT, encoding="utf-8", errors="replace",
                                   env={**os.environ, "ASAN_OPTIONS": options})
        inputs, coverage, early, last, tail = follow(process, runs)
        status = process.wait()
        seconds = time.monotonic() - started
    print(f"{os.path.basename(program)}: seed={seed} inputs={inputs} per_second={inputs / seconds:.0f} "
          f"coverage={coverage} rss_mb={early}..{last}", flush=True)
    if status != 0:
        print(tail, f"an input failed; it is in {found}", sep="\n")
    elif inputs < runs:
        print(tail, "too few inputs", sep="\n")
    elif last - early > GROWTH_MB_MAX:
        print(f"the memory grew by {last - early} MiB")
    else:
        return True
    return False


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--found", default=".")
    parser.add_argument("programs", nargs="+")
    given = parser.parse_args()
    pairs = list(zip(given.programs[::2], map(int, given.programs[1::2])))
    sys.exit(not all([fuzz(program, runs, given.seed, given.found) for program, runs in pairs]))


main()
