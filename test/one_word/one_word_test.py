#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The same program text, built for several engines, is killed again and again, and comes to the same end.

usage: one_word_test.py PROGRAM...

Each program makes OPERATIONS operations on a pool. It is killed a few times, wherever it is, and once between
the two stores of a transfer. What the next process finds must be what all acknowledged operations
have left, and perhaps the one after them. Then it goes on from there.
"""
import os
import pathlib
import signal
import subprocess
import sys
import tempfile

OPERATIONS = 3000
KILLED_BEHIND = [1, 40, 333, 700, 1201, 2000]  # so many bytes that were read


def state(program, pool, least, most):
    """After how many operations the pool is as it is, and a sum of what it holds."""
    made, found = subprocess.run([program, pool, "state", str(least), str(most)], text=True, check=True,
                                 stdout=subprocess.PIPE).stdout.split()
    assert found not in ("none", "broken"), f"{program}: {found}: the pool is not as after {least} to {most} operations"
    return int(made), found


def killed(program, pool, begin, read, environment):
    """Runs from operation 'begin', kills, and returns how many operations are acknowledged in all."""
    with subprocess.Popen([program, pool, "run", str(begin), str(OPERATIONS)], stdout=subprocess.PIPE,
                          env={**os.environ, **environment}) as running:
        seen = len(running.stdout.read(read))
        if not environment:
            running.kill()
        seen += len(running.stdout.read())
        assert running.wait() in (0, -signal.SIGKILL), running.returncode
    return begin + seen


def final(program, folder):
    pool, begin = str(folder / pathlib.Path(program).name), 0
    ways = [(reads, {}) for reads in KILLED_BEHIND] + [(10, {"HOLDFAST_CRASH_AT": "between-debit-and-credit"})]
    for read, environment in ways:
        acknowledged = killed(program, pool, begin, max(read - begin, 1), environment)
        begin, _ = state(program, pool, acknowledged, min(acknowledged + 1, OPERATIONS))
    subprocess.run([program, pool, "run", str(begin), str(OPERATIONS)], check=True, stdout=subprocess.DEVNULL)
    return state(program, pool, OPERATIONS, OPERATIONS)


def main():
    with tempfile.TemporaryDirectory(prefix="holdfast-one-word-", dir="/dev/shm") as folder:
        ends = {program: final(program, pathlib.Path(folder)) for program in sys.argv[1:]}
    for program, (made, found) in ends.items():
        print(f"{pathlib.Path(program).name}: as after operation {made}: {found}")
    assert len(set(ends.values())) == 1, "the programs come to different ends"


if __name__ == "__main__":
    main()
