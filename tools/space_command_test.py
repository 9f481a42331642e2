#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`holdfast trim` and `holdfast compact` make a pool take less disk, leave what is in it, and refuse what they cannot do.
`holdfast diff` says what it does not compare.

usage: space_command_test.py BIN
"""
import fcntl
import json
import os
import pathlib
import subprocess
import sys
import tempfile

PROGRAMS = pathlib.Path(sys.argv[1]).resolve()


def run(program, *arguments):
    return subprocess.run([PROGRAMS / program, *map(str, arguments)], capture_output=True, text=True, timeout=60)


def good(program, *arguments):
    ran = run(program, *arguments)
    assert ran.returncode == 0, ran
    return ran.stdout


def disk_bytes(path):
    return path.stat().st_blocks * 512


def check_made_smaller(folder):
    pool = folder / "prices.hf"
    for day in (1, 2):
        good("example_mod_prices", pool)
    before, length = disk_bytes(pool), pool.stat().st_size
    trimmed = json.loads(good("holdfast", "trim", pool, "--json"))
    after = disk_bytes(pool)
    assert after < before / 4 and pool.stat().st_size >= length, (before, after, trimmed)
    good("holdfast", "verify", "--deep", pool)
    info = json.loads(good("holdfast", "info", pool, "--json"))
    assert good("example_mod_prices", pool) == "day 3: tea 3.75, 3 prices known\n", info
    good("holdfast", "compact", pool)
    assert pool.stat().st_size < length / 4, pool.stat()
    again = json.loads(good("holdfast", "info", pool, "--json"))
    assert info["pool"]["uuid"] == again["pool"]["uuid"] and info["pool"]["layout"] == again["pool"]["layout"], (info, again)
    good("holdfast", "verify", "--deep", pool)
    assert good("example_mod_prices", pool) == "day 4: tea 4.00, 4 prices known\n"
    assert [f.name for f in folder.iterdir()] == ["prices.hf"], list(folder.iterdir())


def is_open(pool):
    """Whether a copy of the header says so (docs/format/pool.md)."""
    with open(pool, "rb") as file:
        return any(os.pread(file.fileno(), 4, copy + 124) != bytes(4) for copy in (0, 4096))


def killed_open(pool, *command):
    """Kills the command as soon as it is seen to have opened the pool, which was closed."""
    closed = pool.read_bytes()
    for _ in range(100):
        pool.write_bytes(closed)
        with subprocess.Popen([PROGRAMS / "holdfast", *command, pool], stdout=subprocess.DEVNULL) as running:
            while not is_open(pool) and running.poll() is None:
                pass
            running.kill()
        if is_open(pool):
            return
    raise AssertionError(f"{command}: never seen")


def check_killed(folder):
    """The pool's own program, with the engines that it has, opens what a killed command leaves."""
    for program, given, said in (("example_bank_undo", ("create", "10", "1000"), "10 accounts, 10000 cents\n"),
                                 ("example_mod_prices", (), None)):
        pool = folder / (program + ".hf")
        good(program, *given[:1], pool, *given[1:])
        for command in (("trim",), ("repair", "--roll-back")):
            killed_open(pool, *command)
            ran = run(program, *(("total", pool) if given else (pool,)))
            assert ran.returncode == 0 and said in (None, ran.stdout), (command, ran)


def check_refused(folder):
    """With a sentence, and every byte as it was."""
    pool = folder / "numbers.hf"
    good("example_numbers", pool)
    text = folder / "text.hf"
    text.write_text("no pool\n" * 4096)
    cut = folder / "cut.hf"
    cut.write_bytes(pool.read_bytes()[:100_000])
    for path, command, word in ((pool, "compact", "conflict"), (text, "compact", "no pool"), (text, "trim", "no pool"),
                                (cut, "compact", "truncated"), (cut, "trim", "truncated"),
                                (folder / "none.hf", "compact", "not_found"), (folder / "none.hf", "trim", "not_found")):
        before = path.read_bytes() if path.exists() else None
        ran = run("holdfast", command, path)
        assert ran.returncode not in (0, -6, -11) and word in ran.stdout + ran.stderr, (command, ran)
        assert word != "conflict" or "`holdfast trim`" in ran.stdout + ran.stderr, (command, ran)
        assert (path.read_bytes() if path.exists() else None) == before, (command, path)
    left = subprocess.run([PROGRAMS / "example_numbers", pool], env={**os.environ, "HOLDFAST_CRASH_AT": "half-pushed"})
    assert left.returncode == -9, left
    before, ran = pool.read_bytes(), run("holdfast", "compact", pool)
    assert ran.returncode == 2 and "left open with engine undo, redo: its program opens and closes it" in ran.stderr, ran
    assert pool.read_bytes() == before
    good("example_numbers", pool)
    with open(pool, "r+b") as held:
        fcntl.lockf(held, fcntl.LOCK_EX)  # as a process that has it open
        for command in ("compact", "trim"):
            ran = run("holdfast", command, pool)
            assert ran.returncode != 0 and "in_use" in ran.stdout + ran.stderr, ran


def check_compared(folder):
    """A root object is not: without another difference the exit status says so, and a sentence names the pool."""
    for program, alike in (("example_mod_prices", 0), ("example_numbers", 3)):
        pool, copy = folder / (program + ".hf"), folder / (program + ".copy")
        good(program, pool)
        good("holdfast", "copy", pool, copy)
        for status in (alike, 1 if alike == 0 else 3):
            ran = run("holdfast", "diff", pool, copy)
            assert ran.returncode == status and (ran.stdout == "") == (status != 1), (program, ran)
            assert (f"{copy}: not compared: the root object" in ran.stderr) == (alike == 3), (program, ran)
            good(program, pool)


def main():
    with tempfile.TemporaryDirectory() as where:
        for check in (check_made_smaller, check_killed, check_refused, check_compared):
            folder = pathlib.Path(where) / check.__name__
            folder.mkdir()
            check(folder)
    print("trim, compact, diff: passed")


if __name__ == "__main__":
    main()
