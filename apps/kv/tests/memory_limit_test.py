# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Goal: cache_memlimit raises and lowers the limit of the pool's growth while the server runs, with memcached's
answers. Stored items survive kills, whatever limit -m sets at the next start. Method: a server filled to its limit, raised, filled again, killed,
started with less, with more and without evictions.
"""

import os
import re
import shutil
import sys

from kv_testing import Folder, Memcached, Server, check, check_pool, talk

PROGRAM, CHECKER = sys.argv[1:3]
MB = 1 << 20


def stat(address, name):
    return int(re.search(rb"STAT %s (\d+)" % name, talk(address, b"stats\r\n", False)).group(1))


def fill(address, first, count, value_bytes=5000):
    """How many of so many sets were stored."""
    request = b"".join(b"set k%d 0 0 %d\r\n" % (i, value_bytes) + b"%d" % (i % 10) * value_bytes + b"\r\n"
                       for i in range(first, first + count))
    return talk(address, request, False).count(b"STORED\r\n")


def kept(address, first, count):
    return talk(address, b"".join(b"mg k%d\r\n" % i for i in range(first, first + count)), False).count(b"HD\r\n")


def grows_while_it_runs(folder):
    pool = folder / "pool.hf"
    with Server(PROGRAM, pool, "-m", "16") as server:
        check(stat(server.address, b"limit_maxbytes") == 16 * MB, "-m")
        check(fill(server.address, 0, 8000) == 8000, "sets that evict")
        check(stat(server.address, b"evictions") > 1000 and os.path.getsize(pool) <= 16 * MB, "evictions at 16 MB")
        check(talk(server.address, b"cache_memlimit 64\r\n", False) == b"OK\r\n", "raised")
        check(stat(server.address, b"limit_maxbytes") == 64 * MB, "limit_maxbytes")
        before = stat(server.address, b"evictions")
        check(fill(server.address, 10_000, 6000) == 6000 and kept(server.address, 10_000, 6000) == 6000, "30 MB more")
        check(stat(server.address, b"evictions") == before, "no evictions below the new limit")
        check(16 * MB < os.path.getsize(pool) <= 64 * MB, "the file")
        check(fill(server.address, 20_000, 8000) == 8000 and stat(server.address, b"evictions") > before, "evictions at 64 MB")
        check(os.path.getsize(pool) <= 64 * MB, "no more than the limit")
        newest = kept(server.address, 27_000, 1000)
        check(newest > 800, f"{newest} of the newest thousand are there")
        check(talk(server.address, b"cache_memlimit 8\r\n", False) == b"OK\r\n", "lowered")
        size = os.path.getsize(pool)
        check(stat(server.address, b"limit_maxbytes") == size, "what the file has is not taken away")
        check(fill(server.address, 30_000, 3000) == 3000 and os.path.getsize(pool) == size, "it grows no more")
        there = kept(server.address, 0, 33_000)
        server.kill()
    with Server(PROGRAM, pool, "-m", "8") as server:
        check(kept(server.address, 0, 33_000) == there, "all of it after a kill, with less -m")
        check(fill(server.address, 40_000, 3000) == 3000 and os.path.getsize(pool) == size, "-m below the file's size")
        check(talk(server.address, b"cache_memlimit 100\r\n", False) == b"OK\r\n", "raised, to less than the pool's own limit")
        server.stop()
    check_pool(CHECKER, pool)


def without_evictions(folder):
    with Server(PROGRAM, folder / "full.hf", "-m", "16", "-M") as server:
        stored = fill(server.address, 0, 6000)
        check(0 < stored < 4000, f"{stored} stored in 16 MB")
        check(talk(server.address, b"cache_memlimit 40 noreply\r\nmn\r\n", False) == b"MN\r\n", "noreply")
        check(fill(server.address, 10_000, 3000) == 3000, "room for more")
        check(kept(server.address, 0, 6000) == stored, "and nothing went")


def by_the_smallest_steps(folder):
    """More of them than a pool has extents: every megabyte that is given is used."""
    with Server(PROGRAM, folder / "steps.hf", "-m", "20", "-M") as server, server.connect() as client:
        said, number, stored, value = client.makefile("rb"), 0, [], b"v" * 5000
        for megabytes in range(20, 157):  # of 160, the last are kept for logs
            client.sendall(b"cache_memlimit %d\r\n" % megabytes)
            check(said.readline() == b"OK\r\n", f"a limit of {megabytes}")
            while True:
                client.sendall(b"set s%d 0 0 5000\r\n%s\r\n" % (number, value))
                if said.readline() != b"STORED\r\n":
                    break
                number += 1
            stored.append(number)
            more = stored[-1] - stored[max(len(stored) - 9, 0)]
            check(len(stored) < 9 or more * len(value) > 5 * MB, f"at {megabytes} MB the last 8 took {more} items")
        server.kill()
    print(f"136 steps of one megabyte: {number} items")


def answers(folder):
    lines = ["cache_memlimit 64", "cache_memlimit 8", "cache_memlimit 7", "cache_memlimit 0", "cache_memlimit -1", "cache_memlimit",
             "cache_memlimit a", "cache_memlimit 8m", "cache_memlimit +8", "cache_memlimit 08", "cache_memlimit 64 x",
             "cache_memlimit 64 x y", "cache_memlimit 1000000001", "cache_memlimit 18446744073709551616",
             "cache_memlimit 9 noreply", "cache_memlimit 1 noreply", "cache_memlimit noreply", "cache_memlimit a noreply"]
    with Server(PROGRAM, folder / "answers.hf") as server:
        said = [talk(server.address, line.encode() + b"\r\n", False) for line in lines]
        # Eight times -m is what the pool has addresses for.
        for line, wanted in ((b"512", b"OK"), (b"513", b"MEMLIMIT_ADJUST_FAILED out of bounds or unable to adjust"),
                             (b"99999999999", b"MEMLIMIT_ADJUST_FAILED input value is megabytes not bytes")):
            found = talk(server.address, b"cache_memlimit " + line + b"\r\n", False)
            check(found == wanted + b"\r\n", f"{line}: {found}")
    if shutil.which("memcached") is not None:
        with Memcached() as real:
            for line, ours in zip(lines, said):
                theirs = talk(real.address, line.encode() + b"\r\n", False)
                check(ours == theirs, f"{line}: {ours}, memcached {theirs}")


def main():
    with Folder() as folder:
        grows_while_it_runs(folder)
        without_evictions(folder)
        by_the_smallest_steps(folder)
        answers(folder)


main()
