# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Goal: `holdfast copy` backs up the pool of a running server, or says in one line why not and leaves nothing.

Method: a client counts in an item, one acknowledged `incr` after the other, while the pool is
copied: as it is, with the copier killed, with the server killed, with the server stopped. Every
file that has the copy's name must be verified by `holdfast verify`, be served, and hold a number
that was acknowledged when the copy was asked for, or a later one. Then the refusals. Parts that
need rights which the test does not have are left out, and named.
"""

import contextlib
import json
import os
import pty
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

from kv_testing import Folder, Server, check, talk

PROGRAM, COMMAND = sys.argv[1:3]
SEED = int(sys.argv[3]) if len(sys.argv) > 3 else 20260101
CHANCE = random.Random(SEED)
NOBODY = 65534


class Counting(threading.Thread):
    """Counts on a connection of its own until the server is gone."""

    def __init__(self, address):
        super().__init__(daemon=True)
        self.client = socket.create_connection(address)
        self.acknowledged, self.sent = 0, 0
        self.client.sendall(b"set n 0 0 20\r\n%-20d\r\n" % 0)
        check(self.client.recv(100) == b"STORED\r\n", "set")
        self.start()

    def run(self):
        lines = self.client.makefile("rb")
        try:
            while True:
                self.sent += 1
                self.client.sendall(b"incr n 1\r\n")
                answer = lines.readline()
                if not answer.endswith(b"\n"):
                    return
                self.acknowledged = int(answer)
        except OSError:
            pass


@contextlib.contextmanager
def command_of_all():
    """The command where another user reaches it: the build may lie in a folder of root's own."""
    with tempfile.TemporaryDirectory() as place:
        os.chmod(place, 0o755)
        yield shutil.copy(COMMAND, place)


def holdfast(*arguments, command=COMMAND, **how):
    return subprocess.run([command, *map(str, arguments)], capture_output=True, text=True, timeout=60, **how)


def sealed(copy, what):
    """Every byte of the copy is verified as it is, including those that its first open recovers from."""
    verified = holdfast("verify", "--deep", copy)
    check(verified.returncode == 0, f"{what}, as it was made: {verified}")
    check("first open recovers" in verified.stdout, f"{what}: {verified}")
    with open(copy, "r+b") as file:
        for at in CHANCE.sample(range(8192, os.path.getsize(copy) - 4096), 3):
            file.seek(at)
            byte = file.read(1)
            file.seek(at)
            file.write(bytes([byte[0] ^ 0x10]))
            file.flush()
            damaged = holdfast("verify", "--deep", copy)
            check(damaged.returncode == 1, f"{what}, byte {at} changed: {damaged}")
            file.seek(at)
            file.write(byte)


def judge(copy, least, most, what):
    """Sealed, recovered, served, verified, and of a moment between the two numbers."""
    sealed(copy, what)
    with Server(PROGRAM, copy) as server:
        answer = talk(server.address, b"get n\r\n", False)
        check(server.stop() == 0, f"{what}: a clean stop")
    verified = holdfast("verify", copy)
    check(verified.returncode == 0, f"{what}: {verified}")
    found = int(re.fullmatch(rb"VALUE n 0 20\r\n(\d+) *\r\nEND\r\n", answer).group(1))
    check(least <= found <= most, f"{what}: {found}, acknowledged {least}, sent {most}")
    os.unlink(copy)


def nothing_left(folder, *names):
    check(sorted(os.listdir(folder.path)) == sorted(names), f"left in the folder: {os.listdir(folder.path)}")


def refuse(arguments, *texts, **how):
    ran = holdfast("copy", *arguments, **how)
    check(ran.returncode not in (0, -signal.SIGSEGV), f"to be refused: {ran}")
    for text in texts:
        check(text in ran.stderr, f"{text}: {ran}")
    check(ran.stderr.count("\n") == 1 and not ran.stdout, f"one line: {ran}")


def copies(server, counting, folder, pool):
    copy = folder / "copy.hf"
    for number in range(3):
        least = counting.acknowledged
        made = holdfast("copy", pool, copy, "--json")
        most = counting.sent
        check(made.returncode == 0 and not made.stderr, f"{made}")
        said = json.loads(made.stdout)
        check(said["in_use"] and said["bytes"] == os.path.getsize(copy), f"{said}")
        judge(copy, least, most, f"copy {number}")
    then = counting.acknowledged
    while counting.acknowledged == then:  # would never end
        time.sleep(0.001)
    os.kill(server.process.pid, signal.SIGSTOP)
    least = counting.acknowledged
    made = holdfast("copy", pool, copy)
    check(made.returncode == 0, f"of a server that is stopped: {made}")
    with open(f"/proc/{server.process.pid}/stat", encoding="ascii") as file:
        check(file.read().rsplit(")", 1)[1].split()[0] == "T", "it is stopped as before")
    os.kill(server.process.pid, signal.SIGCONT)
    then = counting.acknowledged
    while counting.acknowledged <= then:
        time.sleep(0.001)
    judge(copy, least, counting.sent, "copy of a stopped server")


def elsewhere(counting, folder, pool):
    with tempfile.TemporaryDirectory(dir=os.environ.get("HOLDFAST_OTHER_DISK", "/var/tmp")) as other:
        if os.stat(other).st_dev == os.stat(folder.path).st_dev:
            print("left out: another file system")
            return
        least = counting.acknowledged
        copy = os.path.join(other, "copy.hf")
        check(holdfast("copy", pool, copy).returncode == 0, "to another file system")
        judge(copy, least, counting.sent, "copy on another file system")


def kill_copiers(counting, folder, pool):
    copy = folder / "copy.hf"
    begun = time.monotonic()
    check(holdfast("copy", pool, copy).returncode == 0, "a copy")
    took = time.monotonic() - begun
    os.unlink(copy)
    whole = 0
    for _ in range(10):
        least = counting.acknowledged
        copier = subprocess.Popen([COMMAND, "copy", pool, copy], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(CHANCE.uniform(0, 1.2 * took))
        copier.kill()
        copier.wait()
        then = counting.acknowledged
        while counting.acknowledged == then:  # the server goes on
            time.sleep(0.001)
        if os.path.exists(copy):
            whole += 1
            judge(copy, least, counting.sent, "copy of a killed copier")
        nothing_left(folder, "pool.hf")
    print(f"{whole} of 10 killed copiers had finished")


def kill_servers(folder):
    copy, pool = folder / "copy.hf", folder / "pool.hf"
    whole = 0
    for _ in range(5):
        with Server(PROGRAM, pool) as server:
            counting = Counting(server.address)
            least = counting.acknowledged
            copier = subprocess.Popen([COMMAND, "copy", pool, copy], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                      text=True)
            time.sleep(CHANCE.uniform(0, 0.05))
            server.kill()
            said = copier.communicate(timeout=60)[1]
            counting.join(10)
        check((copier.returncode == 0) == os.path.exists(copy), f"a copy, or a refusal: {said}")
        if os.path.exists(copy):
            whole += 1
            judge(copy, least, counting.sent, "copy of a killed server")
        nothing_left(folder, "pool.hf")
    print(f"{whole} of 5 killed servers were copied")


def progress(folder, pool):
    """Shown where somebody looks: on a terminal, not in a file, and not beside --json."""
    copy = folder / "copy.hf"
    for options, expected in (([], True), (["--json"], False)):
        seen, terminal = pty.openpty()
        ran = subprocess.run([COMMAND, "copy", pool, copy, *options], stdout=subprocess.DEVNULL, stderr=terminal,
                             timeout=60, check=False)
        os.close(terminal)
        shown = b""
        try:
            while piece := os.read(seen, 4096):
                shown += piece
        except OSError:
            pass  # the other end is closed
        os.close(seen)
        check(ran.returncode == 0, "a copy")
        mib = os.path.getsize(copy) >> 20
        last = b"\rcopied %d of %d MiB\r\n" % (mib, mib)
        check(shown.endswith(last) if expected else not shown, f"progress: {shown}")
        os.unlink(copy)
    check(not holdfast("copy", pool, copy).stderr, "none in a file")
    os.unlink(copy)


def refusals(folder, pool):
    copy, other = folder / "copy.hf", folder / "other"
    with open(other, "wb") as file:
        file.write(b"not to be lost")
    refuse([pool, other], "exists")
    with open(other, "rb") as file:
        check(file.read() == b"not to be lost", "what is there stays")
    refuse([pool, pool], "exists")
    refuse([folder / "gone", copy], "not_found")
    refuse([other, copy], "not_a_pool")
    refuse([folder.path, copy], "not_a_pool")
    refuse([pool, folder / "gone/copy.hf"], "copy.hf")
    refuse([pool, folder.path], folder.path)
    os.symlink(folder / "nowhere", folder / "link")
    refuse([pool, folder / "link"], "exists")
    os.unlink(folder / "link")
    os.unlink(other)
    nothing_left(folder, "pool.hf")


def owners(folder, pool):
    """The pool's program can open what root has copied, repaired or compacted: the file belongs to
    that program's user."""
    if os.geteuid() != 0:
        print("left out: another owner: not root")
        return
    os.chown(pool, NOBODY, NOBODY)
    os.chmod(pool, 0o640)
    copy = folder / "copy.hf"
    check(holdfast("copy", pool, copy).returncode == 0, "of another owner's pool")
    found = os.stat(copy)
    check((found.st_uid, found.st_gid, found.st_mode & 0o777) == (NOBODY, NOBODY, 0o640), f"{found}")

    def as_another():
        os.setgroups([])
        os.setgid(NOBODY - 1)
        os.setuid(NOBODY - 1)

    os.chmod(copy, 0o644)
    os.chmod(folder.path, 0o777)
    mine = folder / "mine.hf"
    with command_of_all() as command:
        made = holdfast("copy", copy, mine, command=command, preexec_fn=as_another)
    check(made.returncode == 0 and "cannot have the owner" in made.stderr, f"who may not give it: {made}")
    check(os.stat(mine).st_mode & 0o777 == 0o604, "no permissions for another group")
    with open(copy, "r+b") as file:  # half of a header copy
        file.seek(100)
        file.write(bytes(50))
    mended = holdfast("repair", copy)
    check(mended.returncode == 0, f"{mended}")
    found = os.stat(copy + ".repaired")
    check((found.st_uid, found.st_gid, found.st_mode & 0o777) == (NOBODY, NOBODY, 0o644), f"{found}")
    for name in (copy, mine, copy + ".repaired"):
        os.unlink(name)
    os.chown(pool, 0, 0)
    os.chmod(pool, 0o600)


def refusals_of_rights(folder, pool):
    """Copies a server that another user may not stop, and copies to a full disk."""
    if os.geteuid() != 0:
        print("left out: another user's server, a full disk: not root")
        return
    os.chmod(folder.path, 0o777)
    with command_of_all() as command:
        another = {"command": command, "user": NOBODY, "group": NOBODY, "extra_groups": []}
        os.chmod(pool, 0o644)
        refuse([pool, folder / "copy.hf"], "permission", **another)
        os.chmod(pool, 0o600)
        refuse([pool, folder / "copy.hf"], "permission", **another)
    nothing_left(folder, "pool.hf")
    small = folder / "small"
    os.mkdir(small)
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "none", small], check=False,
                      stderr=subprocess.DEVNULL).returncode != 0:
        print("left out: a full disk: no file system may be mounted")
        os.rmdir(small)
        return
    try:
        refuse([pool, os.path.join(small, "copy.hf")], "pool_full")
        check(not os.listdir(small), "nothing is left on the full disk")
    finally:
        subprocess.run(["umount", small], check=True)
    os.rmdir(small)


def main():
    print(f"seed {SEED}: repeat with {' '.join(sys.argv[:3])} {SEED}", flush=True)
    with Folder() as folder:
        pool = folder / "pool.hf"
        with Server(PROGRAM, pool) as server:
            counting = Counting(server.address)
            copies(server, counting, folder, pool)
            elsewhere(counting, folder, pool)
            kill_copiers(counting, folder, pool)
            progress(folder, pool)
            refusals(folder, pool)
            owners(folder, pool)
            refusals_of_rights(folder, pool)
            then = counting.acknowledged
            check(server.process.poll() is None, "the server lives")
            while counting.acknowledged == then:
                time.sleep(0.001)
            check(server.stop() == 0, "a clean stop")
        kill_servers(folder)
    print("every copy was whole, and of a state that was acknowledged")


main()
