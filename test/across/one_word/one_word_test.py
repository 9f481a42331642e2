#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The same program text, built for several engines, is killed again and again, and comes to the same end.

usage: one_word_test.py PROGRAM...

Each program makes OPERATIONS operations on a pool. It is killed a few times, wherever it is, and once between
the two stores of a transfer. What the next process finds must be what all acknowledged operations
have left, and perhaps the one after them. Then it goes on from there.

A section that justdo or ido has cut short resumes in the program that began it. The other program's
resume points are elsewhere: it refuses the pool, with the versions that it expected and found, and
leaves it as it is.
"""
import itertools
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile

OPERATIONS = 3000
RESUMING = ["one_word_justdo", "one_word_ido"]
CUT_SHORT = {"HOLDFAST_CRASH_AT": "between-debit-and-credit"}
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
    ways = [(reads, {}) for reads in KILLED_BEHIND] + [(10, CUT_SHORT)]
    for read, environment in ways:
        acknowledged = killed(program, pool, begin, max(read - begin, 1), environment)
        begin, _ = state(program, pool, acknowledged, min(acknowledged + 1, OPERATIONS))
    subprocess.run([program, pool, "run", str(begin), str(OPERATIONS)], check=True, stdout=subprocess.DEVNULL)
    return state(program, pool, OPERATIONS, OPERATIONS)


def refuse_each_other(programs, folder):
    for mine, other in itertools.permutations(programs, 2):
        pool = folder / f"{pathlib.Path(mine).name}-cut-short"
        with subprocess.Popen([mine, str(pool), "run", "0", str(OPERATIONS)], stdout=subprocess.PIPE,
                              env={**os.environ, **CUT_SHORT}) as running:
            acknowledged = len(running.stdout.read())
            assert running.wait() == -signal.SIGKILL, running.returncode
        before = pool.read_bytes()
        refused = subprocess.run([other, str(pool), "state", "0", str(OPERATIONS)], text=True, capture_output=True)
        assert refused.returncode == 1, refused
        found = re.search(r"function_changed: .* expected version (0x[0-9a-f]+), found (0x[0-9a-f]+);", refused.stderr)
        assert found and found[1] != found[2], refused.stderr
        assert pool.read_bytes() == before, f"{other} changed a pool that it refused"
        state(mine, str(pool), acknowledged + 1, acknowledged + 1)


def main():
    with tempfile.TemporaryDirectory(prefix="holdfast-one-word-", dir="/dev/shm") as folder:
        ends = {program: final(program, pathlib.Path(folder)) for program in sys.argv[1:]}
        resuming = [p for p in sys.argv[1:] if pathlib.Path(p).name in RESUMING]
        assert len(resuming) == len(RESUMING), sys.argv
        refuse_each_other(resuming, pathlib.Path(folder))
    for program, (made, found) in ends.items():
        print(f"{pathlib.Path(program).name}: as after operation {made}: {found}")
    assert len(set(ends.values())) == 1, "the programs come to different ends"


if __name__ == "__main__":
    main()
