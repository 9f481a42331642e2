#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`holdfast top` sees the sections of a running server, does not disturb it, and ends with a line
if there is no pool.

usage: top_command_test.py BIN
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import threading

from kv_testing import Server

PROGRAMS = pathlib.Path(sys.argv[1]).resolve()


def top(*arguments):
    return subprocess.run([PROGRAMS / "holdfast", "top", *map(str, arguments)], capture_output=True, text=True,
                          timeout=60)


def expect(ran, status, *texts):
    for text in texts:
        assert text in ran.stdout + ran.stderr, (text, ran)
    assert ran.returncode == status, ran


def watched(pool, count):
    ran = top(pool, "--count", count, "--interval", 0.2, "--json")
    assert ran.returncode == 0, ran
    lines = [json.loads(line) for line in ran.stdout.splitlines()]
    assert len(lines) == count, lines
    return lines


def check_at_work(folder):
    pool = folder / "kv.hf"
    with Server(PROGRAMS / "holdfast-kv", pool) as server:
        idle = watched(pool, 2)[-1]
        assert idle["in_use"] and "holdfast-kv" in idle["user"], idle
        assert idle["sections_per_second"] == 0 and idle["lanes"] == 0, idle
        stop = threading.Event()
        sets = [0]

        def work():
            client = server.connect()
            answers = client.makefile("rb")
            while not stop.is_set():
                client.sendall(b"set key%d 0 0 100\r\n%s\r\n" % (sets[0], b"v" * 100))
                assert answers.readline() == b"STORED\r\n"
                sets[0] += 1

        # After the first look: a lane's first section is far beyond what an earlier opening left
        # there.
        worker = threading.Timer(0.3, work)
        worker.start()
        busy = watched(pool, 7)
        stop.set()
        worker.join()
        assert sum(line["sections_per_second"] > 0 for line in busy) >= 3, busy
        # A set is a section, or a few; a mark may be one section late.
        seen = sum(line["sections_per_second"] * 0.2 for line in busy)
        assert seen <= 4 * sets[0] + 8, (seen, sets, busy)
        assert busy[-1]["used_bytes"] > idle["used_bytes"] and busy[-1]["blocks"] > idle["blocks"], (idle, busy)
        assert busy[-1]["used_bytes"] + busy[-1]["free_bytes"] <= busy[-1]["pool_bytes"], busy
        expect(top(pool, "--count", 1, "--interval", 0.05), 0, "sections/s", "holdfast-kv")
        with open("/dev/full", "wb") as full:
            ran = subprocess.run([PROGRAMS / "holdfast", "top", pool, "--count", "1"], stdout=full, stderr=subprocess.PIPE,
                                 text=True, timeout=60)
        assert ran.returncode == 2 and "could not be written: No space left" in ran.stderr, ran
        assert server.stop() == 0
    closed = watched(pool, 1)[0]
    assert not closed["in_use"] and closed["sections_per_second"] == 0, closed
    # While it is watched it can be opened.
    watching = subprocess.Popen([PROGRAMS / "holdfast", "top", pool, "--interval", "0.01", "--json"],
                                stdout=subprocess.PIPE, text=True)
    watching.stdout.readline()
    for _ in range(20):
        with Server(PROGRAMS / "holdfast-kv", pool) as server:
            assert server.stop() == 0
    os.remove(pool)
    assert watching.wait(timeout=20) == 2 and watching.stdout.read()


def pool_file(server):
    client = server.connect()
    client.sendall(b"stats holdfast\r\n")
    lines = {}
    for line in client.makefile("r"):
        if line == "END\n" or line == "END\r\n":
            break
        _, name, value = line.split(" ", 2)
        lines[name] = value
    return lines["pool_file"].strip()


def check_removed(folder):
    """A server whose file was removed, or replaced by another, says so; commands that are asked for
    the file do, too."""
    pool, backup = folder / "pool.hf", folder / "backup.hf"
    with Server(PROGRAMS / "holdfast-kv", pool) as server:
        assert pool_file(server) == "in place"
        assert subprocess.run([PROGRAMS / "holdfast", "copy", pool, backup], stdout=subprocess.DEVNULL).returncode == 0
        os.remove(pool)
        assert pool_file(server).startswith("its file was removed, nothing has its name"), pool_file(server)
        for command in "info", "verify", "top":
            ran = subprocess.run([PROGRAMS / "holdfast", command, pool], capture_output=True, text=True, timeout=60)
            expect(ran, 2, "not_found") if command == "top" else expect(ran, 2, "not_found", "works on a pool with layout")
        (folder / "other").mkdir()
        ran = subprocess.run([PROGRAMS / "holdfast", "info", folder / "other/pool.hf"], capture_output=True, text=True, timeout=60)
        assert ran.returncode == 2 and "works on" not in ran.stderr, f"none was removed from that folder: {ran}"
        os.rename(backup, pool)
        assert pool_file(server).startswith("its file was removed, another file"), pool_file(server)
        ran = subprocess.run([PROGRAMS / "holdfast", "info", pool], capture_output=True, text=True, timeout=60)
        expect(ran, 0, f"process {server.process.pid} (holdfast-kv) works on")
        assert "works on" in watched(pool, 1)[0]["user"]
        os.rename(pool, backup)
        assert server.stop() == 0, "it has worked on"


def check_refusals(folder):
    expect(top(folder / "gone"), 2, "gone", "not_found")
    expect(top(folder), 2, "expected a regular file")
    text = folder / "text"
    text.write_text("no pool\n" * 4000)
    expect(top(text), 2, "not_a_pool")
    empty = folder / "empty"
    empty.write_bytes(b"")
    expect(top(empty), 2, "not_a_pool")
    expect(top(), 2, "POOL is required")
    for interval in 0, "nan":
        expect(top(text, "--interval", interval), 2, "--interval")
    expect(top(text, "--count", -1), 2, "--count: Value -1 not in range 0 to 9223372036854775807")


def main():
    with tempfile.TemporaryDirectory(prefix="holdfast-top-") as folder:
        check_refusals(pathlib.Path(folder))
        check_at_work(pathlib.Path(folder))
        check_removed(pathlib.Path(folder))


main()
