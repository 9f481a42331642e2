# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Goal: a full pool is as useful after a restart as before it, and without evictions (-M) all that is dead makes room.

Method: a server filled beyond its limit with items of one size; then stopped, killed or neither; then items of other
sizes, which memcached all stores. With -M: filled until it refuses, everything expired, flushed or deleted, then
filled again. eviction_soak.py does the same by chance.

usage: full_pool_test.py PROGRAM [living | expired | flushed | deleted]: one part, or all
"""

import sys
import time

from kv_testing import Folder, Server, check

PROGRAM = sys.argv[1]
MOD = PROGRAM.endswith("-mod")
REFUSED = b"SERVER_ERROR out of memory storing object\r\n"


class Client:
    def __init__(self, server):
        self.socket = server.connect()
        self.socket.settimeout(60)
        self.answers = self.socket.makefile("rb")

    def sets(self, keys, size, expires=0):
        """The answers to sets of these keys."""
        said = []
        for first in range(0, len(keys), 100):
            part = keys[first:first + 100]
            self.socket.sendall(b"".join(b"set %s 0 %d %d\r\n%s\r\n" % (key, expires, size, b"v" * size) for key in part))
            said += [self.answers.readline() for _ in part]
        return said

    def ask(self, request):
        self.socket.sendall(request)
        return self.answers.readline()


def keys(name, count):
    return [b"%s%d" % (name, i) for i in range(count)]


class Restarted:
    """A server on a pool, and after restart() another one."""

    def __init__(self, pool, *options):
        self.pool, self.options = pool, options
        self.server = Server(PROGRAM, pool, *options)

    def restart(self, how):
        if how == "stop":
            check(self.server.stop() == 0, "a clean stop")
        elif how == "kill":
            self.server.kill()
        if how != "none":
            self.server = Server(PROGRAM, self.pool, *self.options)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.kill()


def full_of_another_size(folder, how):
    sizes = (600, 5000, 20, 2000) if MOD else (600, 5000, 20_000, 200_000, 20, 2000, 1_000_000)
    with Restarted(folder / f"{how}.hf", "-m", "24") as it:
        check(Client(it.server).sets(keys(b"old", 60_000), 500) == [b"STORED\r\n"] * 60_000, "sets that evict")
        for size in sizes:
            it.restart(how)
            said = Client(it.server).sets(keys(b"s%d-" % size, 200 if size < 100_000 else 20), size)
            check(set(said) == {b"STORED\r\n"}, f"{size} bytes after {how}: {said.count(REFUSED)} of {len(said)} refused")
    print(f"restart: {how}: full of 500 bytes, then {sizes}: all stored")


def full_of_smaller_large_ones(folder, how):
    """Items of whole chunks: in engine mod, too, several neighbours make room for a larger one."""
    sizes = (20_000, 100_000, 500_000, 1_000_000, 300_000)
    with Restarted(folder / f"large-{how}.hf", "-m", "24") as it:
        for size in sizes:
            said = Client(it.server).sets(keys(b"l%d-" % size, 2 * 24_000_000 // size), size)
            check(set(said) == {b"STORED\r\n"}, f"{size} bytes after {how}: {said.count(REFUSED)} of {len(said)} refused")
            it.restart(how)
    print(f"restart: {how}: full of each of {sizes}, one after the other: all stored")


def dead_makes_room(folder, dead, how):
    # In engine mod, living items keep the chunks of the dead from other sizes. The inner nodes of its map are of such
    # sizes, too: now and then an item finds no room for one.
    more, few = (((700, 8000),), 8) if MOD else (((700, 4000), (300, 4000), (1500, 1000)), 0)
    with Restarted(folder / f"{dead}-{how}.hf", "-m", "16", "-M") as it:
        client = Client(it.server)
        stored = client.sets(keys(b"old", 30_000), 700, 4 if dead == "expired" else 0).count(b"STORED\r\n")
        check(stored > 5000, f"{stored} stored until it is full")
        if dead == "expired":
            time.sleep(5.1)  # the last, too, has lived for four seconds
        elif dead == "flushed":
            check(client.ask(b"flush_all\r\n") == b"OK\r\n", "flush_all")
        else:
            for key in keys(b"old", stored):
                client.socket.sendall(b"delete %s\r\n" % key)
            check({client.answers.readline() for _ in range(stored)} == {b"DELETED\r\n"}, "deletions in a full pool")
        it.restart(how)
        client = Client(it.server)
        for size, count in more:
            said = client.sets(keys(b"s%d-" % size, count), size)
            refused = said.count(REFUSED)
            check(said.count(b"STORED\r\n") == count - refused and refused <= few,
                  f"{size} bytes, {dead}, {how}: {refused} of {count} refused")
        check(REFUSED in client.sets(keys(b"more", 30_000), 700), "full again")
        there = sum(client.ask(b"mg s%d-%d\r\n" % (size, n)) == b"HD\r\n" for size, count in more for n in range(count))
        check(there >= sum(count for _, count in more) - few, "what lives stays")
    print(f"-M, restart: {how}: {stored} {dead}, then {more}: all stored")


def main():
    parts = sys.argv[2:] or ["living", "expired", "flushed", "deleted"]
    with Folder() as folder:
        for how in ("none", "stop", "kill") if "living" in parts else ():
            full_of_another_size(folder, how)
            full_of_smaller_large_ones(folder, how)
        for dead, how in (("expired", "none"), ("flushed", "none"), ("flushed", "stop"), ("expired", "kill"),
                          ("deleted", "stop"), ("deleted", "kill")):
            if dead in parts:
                dead_makes_room(folder, dead, how)


main()
