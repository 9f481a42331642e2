#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`holdfast repair` that found no room is run again: it left no half of a copy, and an older
journal does no harm.

usage: repair_command_test.py BIN
"""
import pathlib
import resource
import subprocess
import sys
import tempfile

PROGRAMS = pathlib.Path(sys.argv[1]).resolve()


def run(program, *arguments, **how):
    return subprocess.run([PROGRAMS / program, *map(str, arguments)], capture_output=True, text=True, timeout=60, **how)


def damaged_pool(folder):
    """A pool with a scratch in its first header, and its bytes before that."""
    pool = folder / "numbers.hf"
    assert run("example_numbers", pool).returncode == 0
    whole = pool.read_bytes()
    pool.write_bytes(whole[:100] + b"scratched" + whole[109:])
    return pool, whole


def check_no_room_for_the_copy(folder):
    pool, whole = damaged_pool(folder)
    scratched = pool.read_bytes()

    def few():
        resource.setrlimit(resource.RLIMIT_FSIZE, (len(whole) // 2, len(whole) // 2))

    refused = run("holdfast", "repair", pool, preexec_fn=few)
    assert refused.returncode > 0, refused  # and not killed by SIGXFSZ
    assert f"{len(whole) // 2} bytes (ulimit -f)" in refused.stdout + refused.stderr, refused
    assert [f.name for f in folder.iterdir()] == ["numbers.hf"], list(folder.iterdir())
    assert run("holdfast", "repair", pool).returncode == 0
    assert (folder / "numbers.hf.repaired").read_bytes() == whole and pool.read_bytes() == scratched


def check_journals(folder):
    pool, whole = damaged_pool(folder)
    journal = folder / "numbers.hf.repair-journal"
    journal.write_text("of the one that was killed\n")
    for older in ([], [".2"]):  # and once more
        ran = run("holdfast", "repair", "--in-place", pool)
        assert ran.returncode == 0 and pool.read_bytes() == whole, ran
        names = sorted(f.name for f in folder.iterdir())
        assert names == sorted([pool.name, journal.name, *(journal.name + n for n in [*older, f".{len(older) + 2}"])])
        pool.write_bytes(whole[:100] + b"scratched" + whole[109:])
    assert journal.read_text() == "of the one that was killed\n"


def main():
    with tempfile.TemporaryDirectory() as where:
        for check in (check_no_room_for_the_copy, check_journals):
            folder = pathlib.Path(where) / check.__name__
            folder.mkdir()
            check(folder)
    print("repair: passed")


if __name__ == "__main__":
    main()
