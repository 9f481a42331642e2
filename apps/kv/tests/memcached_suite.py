#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs memcached's own test-suite on holdfast-kv and on memcached, and prints what passes, file by file.

usage: memcached_suite.py CHECKOUT PROGRAM [FILE...]

CHECKOUT is a folder with memcached's sources, of tag 1.6.18; nothing in it is changed or built. PROGRAM is a
holdfast-kv. Without FILE (names like getset.t) all of t/*.t are run. The suite starts servers by a name of its own;
here that is a few lines of shell around either server. The servers that it expects are a debug build, with a clock
that can be moved: here that clock is waited for. Each server of holdfast-kv has a pool of its own.

Exit status 1 when a file that concerns a cache passes with memcached and not with holdfast-kv, and is not among KNOWN.
"""

import argparse
import concurrent.futures
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile

# Why a file is not run.
SLABS = "slabs, and what moves between them"
EXTSTORE = "items on flash (extstore)"
BUILD = "memcached's own build and sources"
NOT_RUN = {
    "chunked-items.t": SLABS, "slabhang.t": SLABS, "slabs_reassign.t": SLABS, "slabs-reassign2.t": SLABS,
    "slabs-reassign-chunked.t": SLABS, "lru-crawler.t": "the crawler and its histograms", "lru-maintainer.t": "segments of a list",
    "binary-extstore.t": EXTSTORE, "chunked-extstore.t": EXTSTORE, "error-extstore.t": EXTSTORE, "extstore.t": EXTSTORE,
    "extstore-buckets.t": EXTSTORE, "extstore-jbod.t": EXTSTORE, "proxy.t": "the proxy", "whitespace.t": BUILD,
    "issue_67.t": "UDP; its ports of TCP are tried by memcached_options_test.py", "ascii-auth.t": "passwords (-Y)",
    "conn-limits.t": "memory of memcached's response objects",
    "restart.t": "items kept beside the memory of slabs (-e)", "udp.t": "UDP",
}
# Files that do not pass, and why that stays so. The guide has them as a table.
KNOWN = {
    "00-startup.t": "1 of 21: with -C stats settings says cas_enabled no; here CAS numbers are always kept, and it says yes",
    "64bit.t": "2 of 6: a size of slabs that only a debug build can be told",
    "dyn-maxbytes.t": "3 of 309: memory that is taken and given back a slab at a time",
    "flush-all.t": "1 of 27: that with -C flush_all also takes items of the same second, which it does not here",
    "issue_163.t": "1 of 7: counts by number of a slab class; the server counts reclaimed items as a whole",
    "issue_22.t": "2 of 84: counts by number of a slab class; the server counts evictions as a whole",
    "issue_61.t": "1 of 7: turns by requests (-R); here they are by bytes",
    "lru.t": "which items a list of memcached's gives up; here a sample decides",
    "stats-conns.t": "1 of 12: UDP, here and there",
    "stats.t": "1 of 113: counts the names in stats, of which there are more here",
}

SERVER = """#!/usr/bin/env python3
import os, sys
words, given = sys.argv[1:], []
# The suite asks for UDP wherever it does not forbid it, and for what only its debug build has.
while words:
    word = words.pop(0)
    if words and (word == "-U" or (word, words[0]) == ("-o", "relaxed_privileges")):
        words.pop(0)
    else:
        given.append(word)
if {ours}:
    given = ["--pool", "{folder}/" + str(os.getpid()) + ".hf"] + given
os.execv("{program}", ["{program}"] + given)
"""
TIMED_RUN = """#!/bin/sh
shift
exec "$@"
"""


def prepare(checkout, folder, program, ours):
    """A copy of the suite that starts `program`."""
    shutil.copytree(checkout / "t", folder / "t")
    for extra in ("scripts", "devtools", "doc"):
        if (checkout / extra).is_dir():
            shutil.copytree(checkout / extra, folder / extra)
    for name, text in (("memcached-debug", SERVER.format(ours=ours, folder=folder / "pools", program=program)),
                       ("timedrun", TIMED_RUN)):
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    (folder / "pools").mkdir()
    library = folder / "t/lib/MemcachedTest.pm"
    text = library.read_text()
    moved = re.sub(r"(sub mem_move_time \{\s*my \(\$sock, \$move\) = @_;).*?\n\}", r"\1\n    sleep($move + 1);\n}", text, flags=re.S)
    if moved == text:
        sys.exit(f"{library}: no clock to replace: is this memcached 1.6.18?")
    # It waits for a server's socket by the second.
    library.write_text(re.sub(r"sleep 1;(\s+my \$conn = IO::Socket::UNIX)", r"sleep 0.2;\1", moved))


def run(folder, name, seconds):
    """What became of a file: (passed, failed, words)."""
    with subprocess.Popen(["perl", "-Ilib", f"t/{name}"], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          start_new_session=True, encoding="utf-8", errors="replace") as process:
        try:
            said, _ = process.communicate(timeout=seconds)
            status = process.returncode
        except subprocess.TimeoutExpired:
            said, status = "", None
        try:
            os.killpg(process.pid, signal.SIGKILL)  # servers that a test left behind
        except ProcessLookupError:
            pass
        if status is None:
            said, _ = process.communicate()
    for pool in (folder / "pools").iterdir():
        pool.unlink()
    (folder / f"{name}.log").write_text(said)
    lines = said.splitlines()
    passed = sum(line.startswith("ok ") for line in lines)
    failed = [line for line in lines if line.startswith("not ok ") and "# TODO" not in line]
    skipped = re.search(r"^1\.\.0 # skip(.*)", said, re.M | re.I)
    plan = re.search(r"^1\.\.(\d+)", said, re.M)
    if skipped:
        return 0, 0, f"skips itself:{skipped[1]}"
    if status is None:
        return passed, 1, f"no end after {seconds} s"
    if plan and passed + len(failed) < int(plan[1]):
        return passed, 1, f"ends after {passed + len(failed)} of {plan[1]}"
    if failed or status != 0:
        return passed, max(len(failed), 1), f"{len(failed)} of {passed + len(failed)} fail"
    return passed, 0, f"passes, {passed}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("checkout", type=pathlib.Path)
    parser.add_argument("program", type=pathlib.Path)
    parser.add_argument("files", nargs="*")
    parser.add_argument("--timeout", type=int, default=120, help="seconds for each file")
    parser.add_argument("--keep", type=pathlib.Path, help="a folder for what each file said")
    given = parser.parse_intermixed_args()
    memcached = shutil.which("memcached")
    if memcached is None:
        sys.exit("needs memcached, to compare with")
    names = given.files or sorted(path.name for path in (given.checkout / "t").glob("*.t"))
    bad = []
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="holdfast-suite-", dir=memory) as temporary, \
            concurrent.futures.ThreadPoolExecutor(2) as side_by_side:
        folders = []
        for program in (given.program.resolve(), pathlib.Path(memcached)):
            folders.append(pathlib.Path(temporary) / program.name)
            folders[-1].mkdir()
            prepare(given.checkout, folders[-1], program, program.name != "memcached")
        print(f"{'file':28} {'holdfast-kv':40} memcached")
        for name in names:
            if name in NOT_RUN and not given.files:
                print(f"{name:28} not run: {NOT_RUN[name]}", flush=True)
                continue
            ours, theirs = side_by_side.map(lambda folder, file=name: run(folder, file, given.timeout), folders)
            print(f"{name:28} {ours[2]:40} {theirs[2]}", flush=True)
            if ours[1] and name in KNOWN:
                print(f"{'':28} {KNOWN[name]}", flush=True)
            elif ours[1] and not theirs[1]:
                bad.append(name)
            if given.keep:
                for folder in folders:
                    given.keep.mkdir(parents=True, exist_ok=True)
                    shutil.copy(folder / f"{name}.log", given.keep / f"{name}.{folder.name}")
    if bad:
        print(f"pass with memcached alone: {' '.join(bad)}")
    return 1 if bad else 0


sys.exit(main())
