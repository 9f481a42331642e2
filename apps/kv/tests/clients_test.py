# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Goal: stock clients work unchanged. Method: pymemcache, pylibmc (both protocols) and memcslap do what
their users do, over TCP and over a Unix socket; replies are checked."""

import os
import random
import subprocess
import sys

from kv_testing import Folder, Server, check, needs

try:
    import pylibmc
    from pymemcache.client.base import Client, PooledClient
    from pymemcache.client.hash import HashClient
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)


def use_pymemcache(address):
    client = Client(address, default_noreply=False)
    check(client.set("a", b"1", flags=7), "set")
    check(client.get("a") == b"1", "get")
    check(not client.add("a", b"2") and client.add("b", b"2"), "add")
    check(not client.replace("c", b"x") and client.replace("b", b"3"), "replace")
    check(client.append("b", b"4") and client.prepend("b", b"2"), "append, prepend")
    check(client.get_many(["a", "b", "c"]) == {"a": b"1", "b": b"234"}, "get_many")
    value, token = client.gets("b")
    check(value == b"234" and client.cas("b", b"x", token) is True, "cas over what was read")
    check(client.cas("b", b"y", token) is False, "cas over what was changed")
    check(client.cas("none", b"y", token) is None, "cas of nothing")
    check(client.incr("a", 9) == 10 and client.decr("a", 3) == 7, "incr, decr")
    check(client.get("a") == b"7 ", "a shorter number keeps its length, as memcached's does")
    check(client.touch("a", 100), "touch")
    if hasattr(client, "gat"):
        check(client.gat("a", expire=0) == b"7 ", "gat")
    check(client.delete("a") and not client.delete("a"), "delete")
    big = random.Random(1).randbytes(1_000_000)
    check(client.set("big", big) and client.get("big") == big, "a megabyte")
    check(client.set_many({f"k{i}": b"v%d" % i for i in range(1000)}) == [], "set_many")
    check(len(client.get_many([f"k{i}" for i in range(1000)])) == 1000, "a thousand keys at once")
    stats = client.stats()
    check(stats[b"curr_items"] >= 1002 and stats[b"threads"] == 4, f"stats: {stats}")
    engine = b"mod" if sys.argv[1].endswith("-mod") else b"auto"
    check(client.stats("holdfast")[b"engine"] == engine, "stats holdfast")
    check(client.stats("settings")[b"item_size_max"] == 1 << 20, "stats settings")
    check(client.version().startswith(b"1.6"), "version")
    client.set("quiet", b"x", noreply=True)
    check(client.get("quiet") == b"x", "noreply")
    check(client.flush_all() and client.get("big") is None, "flush_all")
    client.close()
    pooled = PooledClient(address, max_pool_size=4)
    pooled.set("p", b"1", noreply=False)
    check(pooled.get("p") == b"1", "pooled client")
    hashed = HashClient([address], use_pooling=True)
    hashed.set_many({"h1": b"1", "h2": b"2"}, noreply=False)
    check(hashed.get_many(["h1", "h2"]) == {"h1": b"1", "h2": b"2"}, "hash client")


def use_pylibmc(name, behaviors, binary):
    client = pylibmc.Client([name], binary=binary, behaviors=behaviors)
    check(client.set("a", "text") and client.get("a") == "text", "set, get")
    check(client.set("n", 41) and client.incr("n") == 42, "incr")
    values = {f"key{i}": {"number": i} for i in range(500)}
    check(client.set_multi(values) == [], "set_multi")
    check(client.get_multi(list(values)) == values, "get_multi of pickled values")
    check(client.add("a", 1) is False and client.replace("a", 1) is True, "add, replace")
    check(client.delete("a") and client.get("a") is None, "delete")
    check(client.touch("n", 100), "touch")
    if behaviors.get("cas"):
        value, token = client.gets("n")
        check(client.cas("n", 7, token) and client.get("n") == 7, "cas")
    check(client.get_stats()[0][1]["threads"] in ("4", b"4"), "stats")


def use_memcslap(server):
    for test in ("set", "get", "mget"):
        run = subprocess.run(
            ["memcslap", f"--servers={server.host}:{server.port}", f"--test={test}", "--concurrency=4",
             "--execute-number=500", "--initial-load=500"],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120)
        print(run.stdout.strip())
        check(run.returncode == 0 and "rror" not in run.stdout and "FAIL" not in run.stdout, f"memcslap {test}")


def main():
    needs("memcslap")
    with Folder() as folder, Server(sys.argv[1], folder / "pool.hf") as server:
        use_pymemcache(server.address)
        for behaviors in ({}, {"cas": True}, {"tcp_nodelay": True, "no_block": True, "buffer_requests": False}):
            for binary in (False, True):
                use_pylibmc(f"{server.host}:{server.port}", behaviors, binary)
        use_memcslap(server)
        check(server.stop() == 0, "a clean stop")
    with Folder() as folder:
        path = folder / "socket"
        with Server(sys.argv[1], folder / "pool.hf", "-a", "0770", unix=path) as server:
            check(os.stat(path).st_mode & 0o777 == 0o770, "the socket's mask")
            use_pymemcache(path)
            check(server.stop() == 0, "a clean stop")
        check(not os.path.exists(path), "the socket is removed")


main()
