# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Goal: a command line that starts memcached 1.6.18 starts holdfast-kv, and what means something does it.

Method: each option, right and wrong, is given to both, which start or refuse together; what has no meaning here is said
in one line. Then what those options do that do something: the background, the port's file, signals, shutdown,
flush_all, idle_timeout. The answers are memcached's.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
import time

from kv_testing import Folder, Memcached, Server, check, packet, talk

PROGRAM = sys.argv[1]
HAS_MEMCACHED = shutil.which("memcached") is not None

# Options; None: refused, else how many lines say that something means nothing.
OPTIONS = [
    (["-C"], 1), (["-k"], 1), (["-L"], 1), (["-X"], 0), (["-W"], 0), (["-r"], 0), (["-R", "20"], 1), (["-R", "0"], None),
    (["-B", "ascii"], 0), (["-B", "auto"], 0), (["-B", "binary"], 0), (["-B", "carrier-pigeon"], None),
    (["-f", "1.1"], 1), (["-f", "1"], None), (["-n", "64"], 1), (["-n", "0"], None), (["-D", ":"], 0), (["-m", "2"], 1), (["-F"], 0),
    (["-A"], 0), (["-o", "modern"], 0), (["-o", "idle_timeout=5,no_lru_crawler"], 1), (["-o", "hashpower=16"], 1),
    (["-o", "modern", "-o", "idle_timeout=9"], 0), (["-o", "idle_timeout"], None), (["-o", "nonsense"], None),
    (["-CFAXW", "-t", "2"], 1),
]
# Locking all memory, and large pages, are not everywhere allowed to memcached itself.
NOT_COMPARED = ("-k", "-L")


def memcached_starts(options):
    try:
        with Memcached(*options):
            return True
    except SystemExit:
        return False


def start_or_refuse(folder):
    for number, (options, lines) in enumerate(OPTIONS):
        if HAS_MEMCACHED and options[0] not in NOT_COMPARED:
            check(memcached_starts(options) == (lines is not None), f"memcached {options}")
        pool = folder / f"{number}.hf"
        if lines is None:
            ran = subprocess.run([PROGRAM, "--pool", pool, "-u", "root", "-p", "-1", *options], capture_output=True, text=True,
                                 timeout=60)
            check(ran.returncode == 2 and ran.stderr.count("\n") == 1 and options[0] in ran.stderr, f"{options}: {ran}")
            check(not os.path.exists(pool), f"{options}: a refused option made a pool")
            continue
        with Server(PROGRAM, pool, *options) as server:
            binary = talk(server.address, packet(0x0a), False)[:2] == b"\x81\x0a"
            text = talk(server.address, b"mn\r\n", False) == b"MN\r\n"
            speaks = (options[1] != "binary", options[1] != "ascii") if options[0] == "-B" else (True, True)
            check((text, binary) == speaks, f"{options}: serves")
            server.process.send_signal(signal.SIGTERM)
            said = server.process.communicate(timeout=60)[1]
            check(server.process.returncode == 0, f"{options}: a clean stop")
            check(said.count("\n") == lines, f"{options}: says {said!r}")


def settings(address):
    return dict(re.findall(rb"STAT (\S+) (\S+)", talk(address, b"stats settings\r\n", False)))


def what_they_do(folder):
    pool = folder / "pool.hf"
    refused = b"shutdown\r\nflush_all\r\nflush_all noreply\r\nflush_all 1 2 3\r\nmn\r\n"
    allowed = b"shutdown x\r\nshutdown a b c\r\nflush_all\r\n"
    with Server(PROGRAM, pool, "-F", "-o", "idle_timeout=7") as server:
        said = talk(server.address, refused, False)
        told = settings(server.address)
        check(told[b"idle_timeout"] == b"7" and told[b"flush_enabled"] == b"no", f"{told}")
        server.process.send_signal(signal.SIGHUP)
        check(talk(server.address, b"mn\r\n", False) == b"MN\r\n", "serves after SIGHUP")
        server.process.send_signal(signal.SIGUSR1)
        check(server.process.wait(60) == 0, "SIGUSR1 is a clean stop")
        server.process.communicate()
    with Server(PROGRAM, pool, "-A") as server:
        check(settings(server.address)[b"shutdown_command"] == b"yes", "shutdown_command")
        also = talk(server.address, allowed, False)
        check(talk(server.address, b"set kept 0 0 1\r\nx\r\nshutdown\r\n", False) == b"STORED\r\n", "shutdown")
        check(server.process.wait(60) == 0, "shutdown is a clean stop")
        server.process.communicate()
    with Server(PROGRAM, pool) as server:
        check(talk(server.address, b"get kept\r\n", False) == b"VALUE kept 0 1\r\nx\r\nEND\r\n", "kept")
        check(server.stop() == 0, "a clean stop")
    if HAS_MEMCACHED:
        with Memcached("-F") as memcached:
            check(talk(memcached.address, refused, False) == said, f"memcached -F: {said}")
        with Memcached("-A") as memcached:
            check(talk(memcached.address, allowed, False) == also, f"memcached -A: {also}")


def more_memory(folder):
    """-m of a pool that is there: more of it is allowed, and less, but not below what its file has."""
    for megabytes, limit in ((16, 16), (48, 48), (32, 32), (8, 16)):
        with Server(PROGRAM, folder / "growing.hf", "-m", str(megabytes)) as server:
            told = settings(server.address)
            check(told[b"maxbytes"] == b"%d" % (limit << 20), f"-m {megabytes}: {told[b'maxbytes']}")
            check(server.stop() == 0, "a clean stop")


def protocols(folder):
    """The answer to a client of the other protocol is memcached's."""
    asked = (packet(0x0a), b"mn\r\n", packet(0x0a) + b"\r\n", b"version\r\n" * 3, b"get a\r\n" + packet(0x0a))
    for speaks, named in (("ascii", b"ascii"), ("binary", b"binary"), ("auto", b"auto-negotiate")):
        with Server(PROGRAM, folder / "speaks.hf", "-B", speaks) as server:
            ours = [talk(server.address, text, False) for text in asked]
            if speaks != "binary":
                check(settings(server.address)[b"binding_protocol"] == named, f"-B {speaks}: stats settings")
            check(server.stop() == 0, "a clean stop")
        if HAS_MEMCACHED:
            with Memcached("-B", speaks) as memcached:
                theirs = [talk(memcached.address, text, False) for text in asked]
            same = [[re.sub(rb"1\.6\.18[-.\w]*", b"", text) for text in each] for each in (ours, theirs)]
            check(speaks == "auto" or same[0] == same[1], f"-B {speaks}: {ours}, memcached {theirs}")


def background(folder):
    pool, pid_file, ports = folder / "daemon.hf", folder / "pid", folder / "ports"
    ran = subprocess.run([PROGRAM, "--pool", "daemon.hf", "-u", "root", "-p", "-1", "-l", "127.0.0.1", "-d", "-P", pid_file],
                         capture_output=True, text=True, timeout=60, cwd=folder.path,
                         preexec_fn=lambda: os.close(0),  # as what starts it may have done
                         env={**os.environ, "MEMCACHED_PORT_FILENAME": ports})
    check(ran.returncode == 0 and "listening on" in ran.stdout, f"-d: {ran}")
    with open(pid_file, encoding="ascii") as file:
        pid = int(file.read())
    try:
        with open(ports, encoding="ascii") as file:
            port = re.fullmatch(r"TCP INET: (\d+)\n", file.read()).group(1)
        check(os.getsid(pid) == pid, "a session of its own")
        check(talk(("127.0.0.1", int(port)), b"set a 0 0 1\r\nx\r\n", False) == b"STORED\r\n", "serves")
        refused = subprocess.run([PROGRAM, "--pool", pool, "-u", "root", "-p", "-1", "-d"], capture_output=True, text=True,
                                 timeout=60)
        check(refused.returncode == 1 and "in_use" in refused.stderr, f"-d of a pool in use: {refused}")
    finally:
        os.kill(pid, signal.SIGTERM)
    for _ in range(600):
        if not os.path.exists(pid_file):
            break
        time.sleep(0.05)
    check(not os.path.exists(pid_file), "ended")


def main():
    with Folder() as folder:
        start_or_refuse(folder)
    with Folder() as folder:
        what_they_do(folder)
        more_memory(folder)
        protocols(folder)
    with Folder() as folder:
        background(folder)
    print(f"{len(OPTIONS)} command lines")


main()
