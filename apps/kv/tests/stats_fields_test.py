# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Goal: a monitor that knows memcached finds every number that it asks for.

Method: stock memcached and the server hold the same few items, from the first one on, and must name the same
statistics: general ones, of items and of slabs. The server may have more of the general ones; what memcached has
elsewhere, as mem_requested, must not be in the wrong place.
"""

import re
import sys

from kv_testing import Folder, Memcached, Server, check, connect, needs


class Asked:
    def __init__(self, client):
        self.client, self.lines = client, client.makefile("rb")

    def set(self, key, value):
        self.client.sendall(b"set %s 0 0 %d\r\n%s\r\n" % (key, len(value), value))
        check(self.lines.readline() == b"STORED\r\n", "set")

    def names(self, which):
        """The statistics' names, classes left out: 'items:7:age' is 'items:age'."""
        self.client.sendall(b"stats%s\r\n" % which)
        found = {}
        while (line := self.lines.readline()) != b"END\r\n":
            _, name, value = line.decode().strip().split(" ", 2)
            found[re.sub(r"(^|:)\d+:", r"\1", name)] = value
        return found


def main(program):
    needs("memcached")
    with Folder() as folder, Server(program, folder / "pool.hf") as server:
        with Memcached(unix=folder / "memcached.sock") as memcached:
            ours, theirs = Asked(server.connect()), Asked(connect(memcached.address))
            for count in (1, 3, 40):
                for number in range(count):
                    for each in (ours, theirs):
                        each.set(b"key%d" % number, b"x" * 100)
                for which in (b"", b" items", b" slabs"):
                    have, want = ours.names(which), theirs.names(which)
                    missing = sorted(set(want) - set(have))
                    check(not missing, f"{count} items: stats{which.decode()}: not there: {missing}")
                    more = sorted(set(have) - set(want))
                    check(which == b"" or not more, f"stats{which.decode()}: memcached has no {more}")
            check(not set(theirs.names(b" settings")) - set(ours.names(b" settings")), "stats settings: all that memcached has")
            settings, known = ours.names(b" settings"), theirs.names(b" settings")
            for name in ("auth_enabled_sasl", "auth_enabled_ascii", "slab_reassign", "lru_crawler", "lru_maintainer_thread",
                         "lru_segmented", "track_sizes", "ssl_enabled", "temp_lru"):
                check(name in known and settings.get(name) == "no", f"stats settings: {name} is {settings.get(name)}")
            for name in ("dump_enabled", "watcher_logbuf_size", "worker_logbuf_size", "binding_protocol", "cas_enabled",
                         "evictions", "flush_enabled", "maxconns", "item_size_max", "stat_key_prefix", "detail_enabled"):
                check(settings.get(name) == known[name], f"stats settings: {name} is {settings.get(name)}")
    with Folder() as folder, Server(program, folder / "pool.hf", "-o", "track_sizes") as server:
        tracks = Asked(server.connect())
        check(tracks.names(b" settings")["track_sizes"] == "yes" and not tracks.names(b" sizes"), "-o track_sizes")
        tracks.set(b"key", b"x" * 100)
        check(tracks.names(b" sizes") == {"256": "1"}, f"stats sizes: {tracks.names(b' sizes')}")
    print("the same statistics as memcached, from the first item on")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
