# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Goal: what cannot be served is refused with one clear line and a non-zero exit status, the file
untouched. Method: every bad pool, path and option there is, bytes compared before and after; a disk
that is full when the pool is made, and one that fills up while it grows."""

import os
import resource
import signal
import subprocess
import sys

from kv_testing import Folder, Server, check

PROGRAM = sys.argv[1]


def refused(what, *options, says, pool):
    before = open(pool, "rb").read() if os.path.isfile(pool) else None
    run = subprocess.run([PROGRAM, "--pool", pool, "-u", "root", "-p", "-1", "-l", "127.0.0.1", *options],
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60)
    after = open(pool, "rb").read() if os.path.isfile(pool) else None
    lines = run.stderr.strip().splitlines()
    print(f"{what}: {run.returncode}: {run.stderr.strip()}")
    check(run.returncode > 0, f"{what}: exit status {run.returncode}")
    check(len(lines) == 1 and lines[0].startswith("holdfast-kv: "), f"{what}: one line")
    check(any(word in lines[0] for word in says), f"{what}: says one of {says}")
    check(run.stdout == "", f"{what}: does not claim to listen")
    check(before == after, f"{what}: the file was changed")


def bad_files(folder):
    def made(name, content):
        with open(folder / name, "wb") as file:
            file.write(content)
        return folder / name

    refused("foreign file", pool=made("foreign", b"once upon a time\n" * 10_000), says=["not_a_pool"])
    refused("empty file", pool=made("empty", b""), says=["not_a_pool", "truncated"])
    refused("directory", pool=folder.path, says=["not_a_pool", "directory"])
    refused("missing directory", pool=folder / "none/pool.hf", says=["not_found", "No such file"])
    os.mkfifo(folder / "fifo")
    refused("FIFO", pool=folder / "fifo", says=["not_a_pool"])
    with Server(PROGRAM, folder / "pool.hf", "-m", "16") as server:
        server.process.send_signal(signal.SIGSTOP)  # it may write to its own pool
        refused("pool in use", pool=folder / "pool.hf", says=["in_use"])
        server.process.send_signal(signal.SIGCONT)
        refused("port in use", "-p", str(server.port), pool=folder / "other.hf", says=["in use"])
        check(not os.path.exists(folder / "other.hf"), "a refused port made a pool")
        check(server.stop() == 0, "a clean stop")
    os.symlink(folder / "pool.hf", folder / "link")
    refused("symbolic link", pool=folder / "link", says=["not_a_pool", "symbolic", "symlink"])
    whole = open(folder / "pool.hf", "rb").read()
    refused("truncated", pool=made("short", whole[:len(whole) // 2]), says=["truncated"])
    refused("damaged header", pool=made("damaged", bytes(1 << 16) + whole[1 << 16:]), says=["not_a_pool", "corrupt"])


def limits(folder):
    """Each of them ended the server by a signal."""
    def limited(*limits):
        def set_them():
            for which, most in limits:
                resource.setrlimit(which, (most, most))
        return set_them
    with_little = limited((resource.RLIMIT_STACK, 8 << 20), (resource.RLIMIT_AS, 300 << 20))  # a thread has a stack
    cases = [("file size", [], limited((resource.RLIMIT_FSIZE, 2 << 20)), "pool_full: allocate 16777216 bytes: File too large")]
    with open(PROGRAM, "rb") as program:
        if b"__sanitizer_" not in program.read():  # which maps terabytes
            cases += [("addresses", ["-t", "60"], with_little, "cannot start a thread"),
                      ("addresses, in the background", ["-d", "-t", "60"], with_little, "cannot start a thread")]
    for what, options, limit, says in cases:
        run = subprocess.run([PROGRAM, "--pool", folder / f"{what}.hf", "-u", "root", "-p", "-1", "-l", "127.0.0.1", "-m", "16",
                              *options], preexec_fn=limit, capture_output=True, text=True, timeout=60)
        check(run.returncode == 1 and says in run.stderr and not run.stdout, f"limit of {what}: {run}")


def bad_options(folder):
    for what, options in {
        "unknown option": ["--nonsense"], "UDP": ["-U", "11211"], "item size": ["-I", "3g"],
        "small item size": ["-I", "10"], "threads": ["-t", "0"], "many threads": ["-t", "1000"],
        "port": ["-p", "70000"], "mode": ["--mode", "magic"], "mask": ["-s", folder / "s", "-a", "9"],
        "memory": ["-m", "0"], "address": ["-l", "999.1.1.1"], "no listener": ["-p", "0"],
        "small buffers": ["--buffer-limit", "1"], "timeout": ["--request-timeout", "-1"],
        "pid file": ["-P", folder / "none/pid"],
    }.items():
        pool = folder / f"option-{what}.hf".replace(" ", "-")
        refused(f"option: {what}", *options, pool=pool, says=["-", "cannot"])
        check(not os.path.exists(pool), f"{what}: a refused option made a pool")
    run = subprocess.run([PROGRAM], stderr=subprocess.PIPE, text=True)
    check(run.returncode > 0 and "--pool" in run.stderr, "no pool named")


class Disk:
    """A file system of this size, where mounting is allowed."""

    def __init__(self, place, size):
        os.mkdir(place)
        self.place = place
        self.there = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", place],
                                    stderr=subprocess.DEVNULL).returncode == 0
        if not self.there:
            print("full disk: not tried, mounting is not allowed here")

    def __enter__(self):
        return self.there

    def __exit__(self, *_):
        if self.there:
            subprocess.run(["umount", self.place], check=True)


def full_disk(folder):
    with Disk(folder / "small", "8m") as there:
        if there:
            pool = folder / "small/pool.hf"
            refused("full disk", pool=pool, says=["pool_full"])
            check(not os.path.exists(pool), "a pool that could not be made is left behind")
    with Disk(folder / "larger", "72m") as there:
        if there:
            growth_stops(folder / "larger/pool.hf")


def growth_stops(pool):
    """The disk is full before the limit is reached: old items go, new ones are stored, all are whole."""
    value, count = b"v" * 100_000, 1500
    with Server(PROGRAM, pool, "-m", "1024") as server, server.connect() as client:
        answers = client.makefile("rb")
        for i in range(count):
            client.sendall(b"set key%d 0 0 %d\r\n%s\r\n" % (i, len(value), value))
            answer = answers.readline()
            check(answer == b"STORED\r\n", f"set {i} on a full disk: {answer}")
        client.sendall(b"get key%d\r\n" % (count - 1))
        check(answers.readline() == b"VALUE key%d 0 %d\r\n" % (count - 1, len(value)), "the last item")
        check(answers.read(len(value) + 7) == value + b"\r\nEND\r\n", "its value")
        client.sendall(b"stats holdfast\r\n")
        growth = [line for line in iter(answers.readline, b"END\r\n") if line.startswith(b"STAT pool_growth ")]
        check(len(growth) == 1 and b"No space left on device" in growth[0], f"says why the pool does not grow: {growth}")
        print(f"growth on a full disk: {count} sets of {len(value)} bytes stored, old items evicted")
        check(server.stop() == 0, "a clean stop")


def main():
    with Folder() as folder:
        bad_files(folder)
    with Folder() as folder:
        limits(folder)
        bad_options(folder)
    with Folder() as folder:
        full_disk(folder)


main()
