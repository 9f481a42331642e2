# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Goal: the rows of "What happens when" in docs/guide/kv.md that no other test has: a reboot, and a pool that
a failure of the machine has torn, with each --when-torn and in each mode.

Method: no test switches the machine off. A pool that a kill has left open, copied to another file,
is torn for the same reason: its bytes may be of different moments. A pool in mode power without its
log is torn, too.
"""

import glob
import os
import re
import shutil
import subprocess
import sys

from kv_testing import Folder, Server, check

PROGRAM = sys.argv[1]
ITEMS = {b"key%d" % i: b"%d" % i * (1 + i % 50) for i in range(1000)}


def store(server):
    with server.connect() as client:
        answers = client.makefile("rb")
        client.sendall(b"".join(b"set %s 0 0 %d\r\n%s\r\n" % (key, len(value), value) for key, value in ITEMS.items()))
        check({answers.readline() for _ in ITEMS} == {b"STORED\r\n"}, "all stored")


def found(server):
    with server.connect() as client:
        client.sendall(b"get %s\r\nquit\r\n" % b" ".join(ITEMS))
        answers, items = client.makefile("rb"), {}
        while (line := answers.readline()) != b"END\r\n":
            key, length = re.fullmatch(rb"VALUE (\S+) 0 (\d+)\r\n", line).groups()
            items[key] = answers.read(int(length))
            answers.readline()
        return items


def content(path):
    with open(path, "rb") as file:
        return file.read()


def torn(pool, *options):
    """Makes a torn pool of that name; its bytes."""
    with Server(PROGRAM, pool, "-m", "16", *options) as server:
        store(server)
        server.kill()
    shutil.copy(pool, pool + ".copy")
    os.rename(pool + ".copy", pool)
    return content(pool)


def refuses(pool, *options):
    before = content(pool)
    run = subprocess.run([PROGRAM, "--pool", pool, "-u", "root", "-p", "-1", "-l", "127.0.0.1", *options],
                         capture_output=True, text=True, timeout=60)
    check(run.returncode == 1 and run.stdout == "" and len(run.stderr.splitlines()) == 1, f"a refusal: {run}")
    for word in ("torn", "--when-torn=discard", "--when-torn=salvage"):
        check(word in run.stderr, f"the refusal says {word}: {run.stderr}")
    check(content(pool) == before and not glob.glob(pool + ".torn-*"), "and the files stay as they are")
    print(run.stderr.strip())


def discards(pool, before, *options, log=None):
    """Begins empty, and goes on; the file and the log are kept."""
    there = set(glob.glob(pool + ".torn-*"))
    with Server(PROGRAM, pool, *options) as server:
        said = server.process.stderr.readline()
        aside = [name for name in set(glob.glob(pool + ".torn-*")) - there if not name.endswith("-power")]
        check(len(aside) == 1 and aside[0] in said, f"the line names the file {aside}: {said}")
        check(re.search(r"\.torn-\d{8}-\d{6}(-\d+)?$", aside[0]), "with a date")
        check(content(aside[0]) == before, "which has its bytes")
        if log is not None:
            check(content(aside[0] + "-power") == log, "and its log")
        check(found(server) == {}, "the pool is empty")
        store(server)
        server.kill()
    with Server(PROGRAM, pool, *options) as server:
        check(found(server) == ITEMS, "and keeps what it gets")
        check(server.stop() == 0, "a clean stop")
    print(said.strip())


def reboot(folder):
    pool = folder / "reboot.hf"
    with Server(PROGRAM, pool, "-m", "16") as server:
        store(server)
        check(server.stop() == 0, "a clean stop")
    with Server(PROGRAM, pool) as server:
        check(found(server) == ITEMS, "all there after a reboot")
        check(server.stop() == 0, "a clean stop")


def in_mode_process(folder):
    pool = folder / "process.hf"
    before = torn(pool)
    refuses(pool, "--when-torn=refuse")
    with Server(PROGRAM, pool, "--when-torn=salvage") as server:
        check(found(server) == ITEMS, "salvage serves what is there, here all")
        server.kill()
    for options in ([], ["--when-torn=discard"], ["--look-through"]):  # the second and third in one second, perhaps
        before = torn(pool)
        discards(pool, before, *options)


def two_servers_at_once(folder):
    """One sets the file aside, and never the other one's new pool."""
    pool = folder / "two.hf"
    for _ in range(5):
        for name in glob.glob(pool + "*"):
            os.unlink(name)
        before = torn(pool)
        command = [PROGRAM, "--pool", pool, "-u", "root", "-p", "-1", "-l", "127.0.0.1"]
        both = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(2)]
        lines = [process.stdout.readline() for process in both]
        check(sum("listening" in line for line in lines) == 1, f"one of them serves: {lines}")
        for process in both:
            process.kill()
            process.communicate()
        aside = glob.glob(pool + ".torn-*")
        check(len(aside) == 1 and content(aside[0]) == before, f"one file is set aside: {aside}")


def in_modes_that_promise_more(folder):
    for mode in ("pmem", "power"):
        pool = folder / f"{mode}.hf"
        before = torn(pool, "--mode", mode)
        refuses(pool, "--mode", mode)
        log = content(pool + "-power") if mode == "power" else None
        discards(pool, before, "--mode", mode, "--when-torn=discard", log=log)
    pool = folder / "log.hf"
    with Server(PROGRAM, pool, "-m", "16", "--mode", "power") as server:
        store(server)
        server.kill()
    os.unlink(pool + "-power")
    refuses(pool, "--mode", "power")
    discards(pool, content(pool), "--mode", "power", "--when-torn=discard")


def main():
    with Folder() as folder:
        reboot(folder)
        in_mode_process(folder)
        two_servers_at_once(folder)
        in_modes_that_promise_more(folder)


main()
