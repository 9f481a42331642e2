# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Goal: a monitor that knows memcached finds every number that it asks for.

Method: stock memcached and the server hold the same few items, from the first one on, and must name the same
statistics: general ones, of items and of slabs. The server may have more of the general ones; what memcached has
elsewhere, as mem_requested, must not be in the wrong place.
"""

import re
import shutil
import socket
import subprocess
import sys
import time

from kv_testing import Folder, Server, check

MEMCACHED = shutil.which("memcached")


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


def memcached(folder):
    path = folder / "memcached.sock"
    process = subprocess.Popen([MEMCACHED, "-s", path, "-u", "root"], stdout=subprocess.DEVNULL)
    for _ in range(500):
        client = socket.socket(socket.AF_UNIX)
        try:
            client.connect(path)
            return process, client
        except OSError:
            client.close()
            time.sleep(0.02)
    raise RuntimeError("memcached does not answer")


def main(program):
    if MEMCACHED is None:
        print("skipped: no memcached")
        return 77
    with Folder() as folder, Server(program, folder / "pool.hf") as server:
        process, client = memcached(folder)
        try:
            ours, theirs = Asked(server.connect()), Asked(client)
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
            settings, known = ours.names(b" settings"), theirs.names(b" settings")
            for name in ("auth_enabled_sasl", "auth_enabled_ascii", "slab_reassign", "lru_crawler", "lru_maintainer_thread",
                         "lru_segmented", "track_sizes", "ssl_enabled", "temp_lru"):
                check(name in known and settings.get(name) == "no", f"stats settings: {name} is {settings.get(name)}")
            for name in ("dump_enabled", "watcher_logbuf_size", "worker_logbuf_size", "binding_protocol", "cas_enabled",
                         "evictions", "flush_enabled", "maxconns", "item_size_max", "stat_key_prefix", "detail_enabled"):
                check(settings.get(name) == known[name], f"stats settings: {name} is {settings.get(name)}")
        finally:
            process.kill()
            process.wait()
    print("the same statistics as memcached, from the first item on")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
