# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Goal: Prometheus' memcached_exporter can read every statistic that it reads, at any moment of a server under load.

Method: the names below are those that its source of commit 0cbb0fb asks for (pkg/exporter/exporter.go), by what it makes of them; the
program itself is not run here. `stats`, `stats slabs`, `stats items` and `stats settings` are asked for again and again
while five clients of both protocols store, count, compare, expire, evict and flush. Each value must parse as the
exporter parses it, no name may stand twice in an answer, a counter may not go back, and what it subtracts may not
come out negative. mem_requested belongs to `stats items` alone: in both, it makes the exporter answer HTTP 500.
"""

import random
import re
import struct
import sys
import threading
import time

from kv_testing import Folder, Server, check, packet

HITS = ("get", "delete", "incr", "decr", "cas", "touch")
TIMES = ("rusage_user", "rusage_system")
COUNTERS = tuple(f"{op}_{how}" for op in HITS for how in ("hits", "misses")) + (
    "uptime", "cas_badval", "cmd_flush", "cmd_set", "total_items", "bytes_read", "bytes_written", "total_connections",
    "rejected_connections", "conn_yields", "listen_disabled_num", "evictions", "reclaimed", "store_too_large", "store_no_memory",
    "lru_crawler_starts", "direct_reclaims", "crawler_items_checked", "crawler_reclaimed", "moves_to_cold", "moves_to_warm",
    "moves_within_lru")
GAUGES = ("time", "bytes", "limit_maxbytes", "curr_items", "curr_connections", "accepting_conns")
OF_ITEMS = ("number", "age", "hits_to_hot", "hits_to_warm", "hits_to_cold", "hits_to_temp", "crawler_reclaimed", "evicted",
            "evicted_nonzero", "evicted_time", "evicted_unfetched", "expired_unfetched", "outofmemory", "reclaimed", "tailrepairs",
            "mem_requested", "moves_to_cold", "moves_to_warm", "moves_within_lru", "number_hot", "number_warm", "number_cold",
            "age_hot", "age_warm")
OF_SLABS = tuple(f"{op}_hits" for op in HITS) + (
    "cas_badval", "cmd_set", "chunk_size", "chunks_per_page", "total_pages", "total_chunks", "used_chunks", "free_chunks",
    "free_chunks_end")

# The load must change these: the scrapes go on until it has.
MOVED = ("get_hits", "get_misses", "cas_misses", "cmd_flush", "touch_hits", "incr_hits", "delete_hits", "store_too_large",
         "total_items", "evictions", "reclaimed")


def answers(lines, client, which):
    client.sendall(b"stats" + which + b"\r\n")
    found = {}
    while (line := lines.readline()) != b"END\r\n":
        shape = re.fullmatch(rb"STAT (\S+) (.*)\r\n", line)
        check(shape, f"stats{which.decode()}: {line}")
        name = shape[1].decode()
        check(name not in found, f"stats{which.decode()}: {name} twice")
        found[name] = shape[2].decode()
    return found


def number(found, name):
    check(name in found, f"{name} is missing")
    check(re.fullmatch(r"\d+(\.\d+)?", found[name]), f"{name} is {found[name]!r}")
    return float(found[name])


def by_class(found, prefix):
    classes = {}
    for name, value in found.items():
        if shape := re.fullmatch(prefix + r"(\d+):(\w+)", name):
            classes.setdefault(int(shape[1]), {})[shape[2]] = value
    return classes


def scrape(client, lines, before):
    general = answers(lines, client, b"")
    slabs = answers(lines, client, b" slabs")
    items = answers(lines, client, b" items")
    settings = answers(lines, client, b" settings")
    check(general.get("version"), "a version")
    for name in TIMES:
        check(re.fullmatch(r"\d+\.\d+", general[name]), f"{name} is {general[name]!r}")
    now = {name: number(general, name) for name in COUNTERS + GAUGES}
    for name in COUNTERS:
        check(before is None or now[name] >= before[name], f"{name} goes back from {before and before[name]} to {now[name]}")
    check(now["cmd_set"] >= now["cas_misses"] + now["cas_hits"] + now["cas_badval"], "sets but for cas are not negative")
    check(number(slabs, "total_malloced") > 0 and number(slabs, "active_slabs") >= 0, "stats slabs")
    of_items, of_slabs = by_class(items, "items:"), by_class(slabs, "")
    for names, classes in ((OF_ITEMS, of_items), (OF_SLABS, of_slabs)):
        for found in classes.values():
            for name in names:
                number(found, name)
    check(all("mem_requested" not in found for found in of_slabs.values()), "mem_requested is in stats items alone")
    check(all(number(found, "cmd_set") >= number(found, "cas_hits") + number(found, "cas_badval") for found in of_slabs.values()),
          "sets of a class but for cas are not negative")
    check(number(settings, "maxconns") > 0, "maxconns")
    # The crawler's settings are read where it runs only.
    check(settings.get("lru_crawler") != "yes", "there is no crawler")
    return now, len(of_items), len(of_slabs)


def load(server, stop, seed):
    draw = random.Random(seed)
    with server.connect() as client:
        client.settimeout(30)
        while not stop.is_set():
            text = b""
            for _ in range(30):
                key, size = b"k%d" % draw.randrange(5000), draw.choice([1, 20, 300, 5000, 40000])
                value = b"7" * size
                text += draw.choice([
                    b"set %s 0 %d %d\r\n%s\r\n" % (key, draw.choice([0, 1, 90]), size, value), b"get %s %s\r\n" % (key, key),
                    b"cas %s 0 0 1 5\r\nx\r\n" % key, b"incr n%d 1\r\n" % draw.randrange(9), b"decr n1 1\r\n",
                    b"set n%d 0 0 1\r\n5\r\n" % draw.randrange(9), b"delete %s\r\n" % key, b"touch %s 50\r\n" % key,
                    b"gat 50 %s\r\n" % key, b"append %s 0 0 1\r\nx\r\n" % key])
            if draw.random() < 0.02:
                text += b"flush_all\r\nset big 0 0 2000000\r\n" + b"v" * 2000000 + b"\r\n"
            client.sendall(text + b"mn\r\n")
            tail = b""
            while not tail.endswith(b"MN\r\n"):
                piece = client.recv(1 << 20)
                check(piece, "the server hung up")
                tail = (tail + piece)[-10:]


def load_packets(server, stop, seed):
    draw = random.Random(seed)
    with server.connect() as client:
        client.settimeout(30)
        while not stop.is_set():
            text = b""
            for _ in range(30):
                key = b"k%d" % draw.randrange(5000)
                text += draw.choice([packet(0x11, key, b"v" * draw.choice([1, 3000]), b"\0" * 8), packet(0x09, key), packet(0x14, key),
                                     packet(0x15, b"n2", b"", struct.pack(">QQI", 1, 5, 0)), packet(0x1e, key, b"", b"\0\0\0\x50")])
            client.sendall(text + packet(0x0a))
            tail = b""
            while not tail.endswith(packet(0x0a)[12:16] + b"\0" * 8) or b"\x81\x0a" not in tail[-24:-22]:
                piece = client.recv(1 << 20)
                check(piece, "the server hung up")
                tail = (tail + piece)[-24:]


def main():
    with Folder() as folder, Server(sys.argv[1], folder / "pool.hf", "-m", "16") as server, server.connect() as client:
        lines = client.makefile("rb")
        scrapes, before, most = 0, None, 0
        before, _, _ = scrape(client, lines, before)
        with server.connect() as filler:  # what the clients do is often flushed before the pool is full
            for number in range(400):
                filler.sendall(b"set f%d 0 0 100000\r\n" % number + b"8" * 100000 + b"\r\n")
                check(filler.recv(100) == b"STORED\r\n", "a full pool evicts")
        stop = threading.Event()
        clients = [threading.Thread(target=of, args=(server, stop, seed), daemon=True)
                   for seed, of in enumerate((load, load, load, load_packets))]
        for each in clients:
            each.start()
        begun = time.monotonic()
        while time.monotonic() < begun + 5 or (time.monotonic() < begun + 120 and any(before[name] == 0 for name in MOVED)):
            before, items, slabs = scrape(client, lines, before)
            most = max(most, items, slabs)
            scrapes += 1
        stop.set()
        for each in clients:
            each.join(60)
        check(most >= 4, f"classes of sizes: {most}")
        for name in MOVED:
            check(before[name] > 0, f"{name} counts")
        print(f"{scrapes} scrapes, {int(before['cmd_set'])} sets, {int(before['evictions'])} evictions meanwhile")
        check(server.stop() == 0, "a clean stop")


main()
