# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Goal: if a disk could not write something when a pool was closed, the next open does not take it
for written: what a clean close has vouched for is there when the machine fails.

Method: a file system on a loop device whose file lies on a tmpfs that is full at that moment, so
that the device answers with errors. Then there is room again; the pool is opened and closed; and
the kernel forgets all that it takes for written.

usage: failing_disk_test.py stored_and_closed
"""

import contextlib
import os
import pathlib
import subprocess
import sys
import tempfile

PROGRAM = sys.argv[1]
MIB = 1 << 20


def skip(why):
    print(f"skipped: {why}")
    sys.exit(77)


def check(condition, what):
    if not condition:
        print(f"FAILED: {what}")
        sys.exit(1)


def quietly(*command):
    return subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False).returncode == 0


def opened(pool, *number):
    return subprocess.Popen([PROGRAM, pool, *number], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def seen(process):
    """The process's report of its pool, which stays open."""
    line = process.stdout.readline()
    check(line and len(line.split()) == 2, f"a pool that opens: {line}")
    return tuple(map(int, line.split()))


def closed(process):
    process.communicate("\n", timeout=60)
    check(process.returncode == 0, f"a process that ends: {process.returncode}")


def refused(pool):
    """Whether the pool is, as its disk has failed."""
    process = opened(pool)
    said, _ = process.communicate("\n", timeout=60)
    check(process.returncode == 0 or ": fsync: " in said, f"a pool that opens, or its disk's error: {said}")
    return process.returncode != 0


def held_in(pool):
    process = opened(pool)
    held = seen(process)
    closed(process)
    return held


def forget_what_is_written():
    subprocess.run(["sync"], check=True)
    pathlib.Path("/proc/sys/vm/drop_caches").write_text("3\n", encoding="ascii")


def in_namespace():
    """Runs the program again, in a namespace whose mounts end with the process."""
    if "HOLDFAST_IN_NAMESPACE" in os.environ:
        return
    if not quietly("unshare", "--mount", "true"):
        skip("this needs root")
    os.environ["HOLDFAST_IN_NAMESPACE"] = "1"
    os.execvp("unshare", ["unshare", "--mount", sys.executable, "-B", *sys.argv])


def main():
    in_namespace()
    with tempfile.TemporaryDirectory(prefix="holdfast-disk-", dir="/dev/shm") as folder:
        room, disk = pathlib.Path(folder, "room"), pathlib.Path(folder, "disk")
        room.mkdir(), disk.mkdir()
        if not quietly("mount", "-t", "tmpfs", "-o", "size=96m", "none", room):
            skip("no file system can be mounted here")
        try:
            image, pool = room / "image", disk / "pool.hf"
            with image.open("wb") as made:
                made.truncate(256 * MIB)
            if not quietly("mkfs.ext4", "-q", "-O", "^has_journal", "-E", "lazy_itable_init=0,nodiscard", image) or \
                    not quietly("mount", "-o", "loop", image, disk):
                skip("no ext4 on a loop device here")
            try:
                check(held_in(pool) == (0, 64 << 10), "a new pool")
                forget_what_is_written()
                process = opened(pool, "2")
                check(seen(process) == (2, 64 << 10), "stores")
                ballast = room / "ballast"
                with ballast.open("wb", buffering=0) as fills, contextlib.suppress(OSError):
                    while True:  # until there is no room
                        fills.write(b"x" * 4096)
                closed(process)
                ballast.unlink()
                for _ in range(5):  # a failure behind the close refuses the next process that opens
                    if not refused(pool):
                        break
                vouched = held_in(pool)  # closed cleanly behind it
                forget_what_is_written()
                found = held_in(pool)
                check(found == vouched, f"a clean close vouched for {vouched}, and there is {found}")
                print(f"{vouched} after a close whose disk failed, and after the machine did")
            finally:
                quietly("umount", disk)
        finally:
            quietly("umount", room)


main()
