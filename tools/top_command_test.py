#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`holdfast top` sees the sections of a running server, does not disturb it, and ends with a line
if there is no pool.

usage: top_command_test.py BIN
"""
import contextlib
import json
import os
import pathlib
import re
import resource
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time

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


def metrics(port, request=b"GET /metrics HTTP/1.0\r\n\r\n"):
    """The page, by name: labels and value. Each line is as Prometheus' text format 0.0.4 has it."""
    with socket.create_connection(("127.0.0.1", port), timeout=60) as client:
        client.sendall(request)
        answer = client.makefile("rb").read()
    head, _, body = answer.partition(b"\r\n\r\n")
    if b" 200 " not in head.split(b"\r\n")[0]:
        return head.split(b"\r\n")[0]
    assert b"Content-Type: text/plain; version=0.0.4; charset=utf-8" in head.split(b"\r\n"), head
    assert body.endswith(b"\n")
    found, declared = {}, {}
    for line in body.decode().splitlines():
        if comment := re.fullmatch(r"# (HELP|TYPE) ([a-z_]+) (.+)", line):
            assert (comment[1] == "HELP") == (comment[2] not in declared), line
            declared[comment[2]] = comment[3]
            continue
        shape = re.fullmatch(r'([a-z_]+)\{((?:[a-z_]+="(?:[^"\\]|\\["\\n])*",?)*)\} (\S+)', line)
        assert shape and declared.get(shape[1]) in ("gauge", "counter"), line
        assert (declared[shape[1]] == "counter") == shape[1].endswith("_total") and shape[1] not in found, line
        found[shape[1]] = dict(re.findall(r'([a-z_]+)="((?:[^"\\]|\\.)*)"', shape[2])), float(shape[3])
    with contextlib.suppress(ImportError):    # another reader of the format
        from prometheus_client.parser import text_string_to_metric_families
        families = list(text_string_to_metric_families(body.decode()))
        assert sum(len(family.samples) for family in families) == len(found), families
    return found


@contextlib.contextmanager
def exporter(pool, stderr, **options):
    """It serves, and its port. It must serve to the end."""
    serving = subprocess.Popen([PROGRAMS / "holdfast", "top", pool, "--serve", "127.0.0.1:0"], stdout=subprocess.PIPE,
                               stderr=stderr, text=True, **options)
    try:
        yield serving, int(serving.stdout.readline().rpartition(":")[2].partition("/")[0])
        assert serving.poll() is None, serving.returncode
    finally:
        serving.kill()
        serving.communicate()


def sets(server, count):
    client = server.connect()
    answers = client.makefile("rb")
    for key in range(count):
        client.sendall(b"set key%d 0 0 100\r\n%s\r\n" % (key, b"v" * 100))
        assert answers.readline() == b"STORED\r\n"


def busy_s(process):
    fields = pathlib.Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def check_descriptors(folder):
    """Clients that say nothing, more than there are descriptors, cost nothing, and looks at the pool
    work on."""
    pool, errors = folder / "descriptors.hf", folder / "errors"
    with Server(PROGRAMS / "holdfast-kv", pool) as server:
        assert server.stop() == 0

    def waits_quietly(serving, *texts):
        before = busy_s(serving)
        time.sleep(1.5)
        assert busy_s(serving) - before < 0.3, (before, busy_s(serving))
        said = errors.read_text().splitlines()
        assert len(said) == 1 and all(text in said[0] for text in texts), said[:5]

    def limited():
        resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))

    with errors.open("w") as out, exporter(pool, out, preexec_fn=limited) as (serving, port):
        with contextlib.ExitStack() as idle:
            for _ in range(90):
                idle.enter_context(socket.create_connection(("127.0.0.1", port), timeout=60))
            waits_quietly(serving, "connections")
            assert len(os.listdir(f"/proc/{serving.pid}/fd")) <= 40
        assert metrics(port)["holdfast_pool_readable"][1] == 1
    # There are fewer than there were.
    with errors.open("w") as out, exporter(pool, out) as (serving, port):
        _, most = resource.prlimit(serving.pid, resource.RLIMIT_NOFILE)
        here = len(os.listdir(f"/proc/{serving.pid}/fd"))
        resource.prlimit(serving.pid, resource.RLIMIT_NOFILE, (here, most))
        with socket.create_connection(("127.0.0.1", port), timeout=60):
            waits_quietly(serving, "Too many open files")
        resource.prlimit(serving.pid, resource.RLIMIT_NOFILE, (most, most))
        assert metrics(port)["holdfast_pool_readable"][1] == 1


def check_errors_unread(folder):
    """The reason cannot be said: it goes on."""
    reader, writer = os.pipe()
    os.close(reader)
    with open("/dev/full", "wb") as full:
        for stderr in full, writer:
            with exporter(folder / "none.hf", stderr) as (serving, port):
                for _ in range(2):
                    assert metrics(port)["holdfast_pool_readable"][1] == 0
    os.close(writer)


def check_another_pool(folder):
    """A pool that was made anew has made fewer sections than the one before it."""
    pool = folder / "anew.hf"
    with exporter(pool, subprocess.PIPE) as (_, port):
        with Server(PROGRAMS / "holdfast-kv", pool) as server:
            sets(server, 300)
            metrics(port)
            sets(server, 300)
            first = metrics(port)
            assert first["holdfast_sections_total"][1] >= 300 - 8, first
            printing = subprocess.Popen([PROGRAMS / "holdfast", "top", pool, "--interval", "0.01", "--json"],
                                        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
            printing.stdout.readline()
            assert server.stop() == 0
        with Server(PROGRAMS / "holdfast-kv", folder / "other.hf") as server:
            os.rename(folder / "other.hf", pool)
            anew = metrics(port)
            assert anew["holdfast_generation"] == first["holdfast_generation"], (first, anew)
            assert str(server.process.pid) in anew["holdfast_pool_info"][0]["user"], anew
            assert anew["holdfast_sections_total"][1] == 0, anew
            sets(server, 100)
            assert 0 < metrics(port)["holdfast_sections_total"][1] <= 4 * 100 + 8
            for line in map(json.loads, printing.stdout):
                assert line["sections_per_second"] < 1e9, line
                if str(server.process.pid) in line["user"]:
                    break
            os.remove(pool)
            assert printing.wait(timeout=60) == 2
            assert server.stop() == 0


def check_cut(folder):
    """A pool that is cut during looks is not readable, and ends nothing."""
    pool, whole = folder / "cut.hf", folder / "whole.hf"
    with Server(PROGRAMS / "holdfast-kv", pool) as server:
        sets(server, 1000)
        assert server.stop() == 0
    shutil.copyfile(pool, whole)
    stop = threading.Event()

    def cut():
        while not stop.is_set():
            os.truncate(pool, 8192)
            os.truncate(pool, whole.stat().st_size)

    with exporter(pool, subprocess.DEVNULL) as (serving, port):
        cutting = threading.Thread(target=cut)
        cutting.start()
        try:
            seen = {metrics(port)["holdfast_pool_readable"][1] for _ in range(60)}
        finally:
            stop.set()
            cutting.join()
        assert seen <= {0, 1}, seen
        os.truncate(pool, 8192)
        assert metrics(port)["holdfast_pool_readable"][1] == 0
        shutil.copyfile(whole, pool)
        assert metrics(port)["holdfast_pool_readable"][1] == 1


def check_metrics(folder):
    pool = folder / 'a "pool" \\ of\nlines.hf'
    with Server(PROGRAMS / "holdfast-kv", pool) as server:
        serving = subprocess.Popen([PROGRAMS / "holdfast", "top", pool, "--serve", "127.0.0.1:0"], stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True)
        try:
            said = serving.stdout.readline()
            port = int(re.fullmatch(r"metrics on http://127.0.0.1:(\d+)/metrics\n", said)[1])
            first = metrics(port)
            labels, value = first["holdfast_pool_info"]
            assert value == 1 and labels["pool"] == str(pool).replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n"), labels
            assert "holdfast-kv" in labels["user"] and labels["mode"] == "process" and labels["layout"], labels
            assert first["holdfast_in_use"][1] == 1 and first["holdfast_pool_readable"][1] == 1, first
            client = server.connect()
            lines = client.makefile("rb")
            for key in range(300):
                client.sendall(b"set key%d 0 0 100\r\n%s\r\n" % (key, b"v" * 100))
                assert lines.readline() == b"STORED\r\n"
            second = metrics(port)
            assert second["holdfast_sections_total"][1] >= 300 - 8 > first["holdfast_sections_total"][1], (first, second)
            for name in "holdfast_blocks", "holdfast_used_bytes":
                assert second[name][1] > first[name][1], (name, first, second)
            assert second["holdfast_used_bytes"][1] + second["holdfast_free_bytes"][1] <= second["holdfast_pool_bytes"][1], second
            assert server.stop() == 0
            closed = metrics(port)
            assert closed["holdfast_in_use"][1] == 0 and closed["holdfast_sections_total"][1] >= second["holdfast_sections_total"][1], closed
            os.remove(pool)
            gone = metrics(port)
            assert list(gone) == ["holdfast_pool_readable"] and gone["holdfast_pool_readable"][1] == 0, gone
            assert b" 404 " in metrics(port, b"GET / HTTP/1.0\r\n\r\n")
            assert b" 501 " in metrics(port, b"POST /metrics HTTP/1.0\r\nContent-Length: 0\r\n\r\n")
            for bad in b"\0" * 100, b"GET /metrics HTTP/1.0\r\n" + b"x: y\r\n" * 5000 + b"\r\n", b"":    # and hangs up
                with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)) as client:
                    client.sendall(bad)
            assert metrics(port)["holdfast_pool_readable"][1] == 0
            expect(top(pool, "--serve", f"127.0.0.1:{port}"), 2, f"expected to listen on 127.0.0.1:{port}", "in use")
        finally:
            serving.kill()
            serving.communicate()
    for address in "127.0.0.1", ":9152", "127.0.0.1:70000", "localhost:9152", "::1:9152", "[::1:1":
        expect(top(pool, "--serve", address), 2, "expected ADDRESS:PORT")
    expect(top(pool, "--serve", "127.0.0.1:0", "--json"), 2, "--json excludes --serve")


def main():
    with tempfile.TemporaryDirectory(prefix="holdfast-top-") as folder:
        check_refusals(pathlib.Path(folder))
        check_at_work(pathlib.Path(folder))
        check_removed(pathlib.Path(folder))
        check_metrics(pathlib.Path(folder))
        check_descriptors(pathlib.Path(folder))
        check_errors_unread(pathlib.Path(folder))
        check_another_pool(pathlib.Path(folder))
        check_cut(pathlib.Path(folder))


main()
