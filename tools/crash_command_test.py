#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`holdfast crash` runs crash programs with their arguments, and says of anything else what it lacks.

usage: crash_command_test.py BIN
"""
import os
import pathlib
import subprocess
import sys
import tempfile

PROGRAMS = pathlib.Path(sys.argv[1]).resolve()


def crash(*arguments, **environment):
    return subprocess.run([PROGRAMS / "holdfast", "crash", *map(str, arguments)], capture_output=True, text=True,
                          env={**os.environ, **environment}, timeout=60)


def expect(ran, status, *texts):
    for text in texts:
        assert text in ran.stdout + ran.stderr, (text, ran)
    assert ran.returncode == status, ran


def check_refusals(folder):
    plain = folder / "plain"
    plain.write_text("no program\n")
    expect(crash(folder / "gone"), 2, "no program '", "gone'")
    expect(crash("gone"), 2, "no program 'gone' in PATH", "'./gone'")
    expect(crash(plain), 2, "is not executable")
    expect(crash("/bin/true"), 2, "is not a crash program")
    expect(crash("/bin/false"), 2, "is not a crash program")
    # They print something, and end well, whatever they are asked: no clean bill for that.
    expect(crash("/bin/echo"), 2, "is not a crash program", "--list")
    expect(crash("/usr/bin/env"), 2, "is not a crash program")
    expect(crash("/usr/bin/yes"), 2, "is not a crash program")
    deaf = folder / "deaf"
    deaf.write_text("#!/bin/sh\necho 3 numbers, sum 6\n")
    deaf.chmod(0o755)
    expect(crash(deaf), 2, "is not a crash program")
    expect(crash(), 2, "PROGRAM is required")


def check_command_line():
    def holdfast(*arguments):
        return subprocess.run([PROGRAMS / "holdfast", *arguments], capture_output=True, text=True, timeout=60)

    said = holdfast("--version")
    expect(said, 0, "holdfast 0.")
    expect(holdfast("frobnicate"), 2, "no subcommand 'frobnicate'", "holdfast --help")
    expect(holdfast("verfy", "x.hf"), 2, "no subcommand 'verfy'", "did you mean 'verify'?")
    expect(holdfast(), 2, "a subcommand is missing", "info", "verify", "crash", "holdfast --help")
    expect(holdfast("--frobnicate"), 2, "--frobnicate")


def check_runs():
    queue, broken = PROGRAMS / "example_crash_queue", PROGRAMS / "example_crash_queue_broken"
    expect(crash(queue, "--list"), 0, "queue\n")
    expect(crash(queue, "queue", "--depth", 1), 0, "queue: no violation")
    expect(crash(queue, "other"), 2, "no program 'other'")
    expect(crash(queue, "--depth", 9), 2, "--depth")
    expect(crash(queue, "--states", 3), 3, "NOT COMPLETE")
    expect(crash(broken), 1, "guilty: ", "at examples/crash_queue_broken.cpp:")
    # By name, from PATH.
    expect(crash(queue.name, "--depth", 1, PATH=f"{PROGRAMS}:{os.environ['PATH']}"), 0, "no violation")


def check_replay():
    broken = PROGRAMS / "example_crash_queue_broken"
    found = crash(broken)
    words = found.stdout.split("replay: ")[1].split("\n")[0].split()
    again = crash(broken, "take back", *words[words.index("--depth"):])
    expect(again, 1, "replayed: ")


def check_without_symbolizer(folder):
    (folder / "sh").symlink_to("/bin/sh")
    ran = crash(PROGRAMS / "example_crash_queue_broken", PATH=str(folder))
    expect(ran, 1, "guilty: ", "example_crash_queue_broken+0x")


def main():
    with tempfile.TemporaryDirectory(prefix="holdfast-crash-") as scratch:
        check_refusals(pathlib.Path(scratch))
        check_without_symbolizer(pathlib.Path(scratch))
    check_command_line()
    check_runs()
    check_replay()
    print("holdfast crash: refusals, runs, replay and names without a symbolizer are as they should be")


if __name__ == "__main__":
    main()
