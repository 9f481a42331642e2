# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Goal: `stats conns` reports every connection as memcached 1.6.18 does, with the clients of all
threads. A list that is long, or asked for without end, delays no other client.

Method: clients in every state, of memcached and of the server, over IPv4, IPv6, a Unix socket and
TLS. The lists are compared without descriptors and ports; of seconds only whether there are any.
Then lists that are asked for while clients come, go, reset, begin to watch and end in the middle of
something: each is whole, names no client twice, and never leaves out a client that is there all the
time. Then more connections than an answer's buffer takes.

usage: conns_test.py holdfast-kv
"""

import concurrent.futures
import contextlib
import os
import re
import resource
import socket
import struct
import sys
import threading
import time

from kv_testing import Folder, Memcached, Server, check, connect, needs, packet, talk
from tls_tunnel import client_context, make_certificate

PROGRAM = sys.argv[1]
POWER = os.environ.get("KV_TEST_MODE") == "power"
KINDS = (b"addr", b"listen_addr", b"state", b"secs_since_last_cmd")
STATES = (b"listening", b"new_cmd", b"read", b"parse_cmd", b"nread", b"swallow", b"mwrite", b"watch")
LINE = re.compile(rb"STAT (\d+):(addr|listen_addr) (tcp:[\d.]+:\d+|tcp6:\[[0-9a-f:]+\]:\d+|unix:\S+|\?:<AF 0>)\r\n"
                  rb"|STAT (\d+):(state) conn_(" + b"|".join(STATES) + rb")\r\n|STAT (\d+):(secs_since_last_cmd) (\d+)\r\n")
SET = packet(1, b"key", b"v" * 50, b"\0" * 8)
# A client's words, by its state after them. memcached 1.6.18 dies of a watcher of mutations when a
# packet is refused.
SAYS = {
    "fresh": b"", "idle": b"mn\r\n", "half a line": b"get aaa", "half a value": b"set a 0 0 10\r\nabc", "a meta value": b"ms a 10\r\nabc",
    "refused value": b"set a 0 0 5000000\r\nabc", "half a header": SET[:10], "half a key": SET[:33], "half a packet": SET[:-10],
    "refused packet": packet(1, b"key", b"v" * 3000000, b"\0" * 8)[:100], "watches": b"watch evictions\r\n",
    "reads nothing": b"get big\r\n" * 40, "quits": b"get big\r\n" * 40 + b"quit\r\n"}


def lists(text):
    """The entry of each socket's number, in memcached's order."""
    check(text.endswith(b"END\r\n"), f"an end: {text[-80:]}")
    found, at = {}, 0
    while text[at:] != b"END\r\n":
        line = LINE.match(text, at)
        check(line, f"a line: {text[at:at + 100]}")
        number, kind, value = (each for each in line.groups() if each is not None)
        found.setdefault(int(number), []).append((kind, value))
        at = line.end()
    check(list(found) == sorted(found), f"in the order of numbers: {list(found)}")
    for number, told in found.items():
        kinds = tuple(kind for kind, _ in told)
        listens = (b"state", b"listening") in told
        check(kinds == (KINDS[:1] + KINDS[2:] if listens else KINDS), f"{number}: {kinds}")
    return {number: dict(told) for number, told in found.items()}


def ask(client):
    client.sendall(b"stats conns\r\n")
    answer = b""
    while not answer.endswith(b"END\r\n"):
        piece = client.recv(1 << 16)
        check(piece, "the server hung up on who asks")
        answer += piece
    return answer


def scene(address, wrap):
    """The list with a client of each kind; a client is recognised by its port, if it has one."""
    def client():
        return wrap(connect(address))
    with contextlib.ExitStack() as open_ones:
        asks = open_ones.enter_context(client())
        asks.sendall(b"set big 0 0 1000000\r\n" + b"v" * 1000000 + b"\r\n")
        check(asks.recv(100) == b"STORED\r\n", "a large value")
        names, there = {}, {}
        for name, said in SAYS.items():
            one = there[name] = open_ones.enter_context(client())
            if isinstance(one.getsockname(), tuple):
                names[b":%d" % one.getsockname()[1]] = name
            one.sendall(said)
        time.sleep(2.2)
        # Neither the rest of a line nor of a value is a command that begins.
        there["half a line"].sendall(b"a"), there["half a value"].sendall(b"d"), there["refused value"].sendall(b"d")
        time.sleep(0.3)
        told = []
        for of in lists(ask(asks)).values():
            port = re.search(rb":\d+$", of[b"addr"])
            name = names.get(port.group(), "asks or listens") if port else ""
            told.append((name, *(re.sub(rb":\d+$", b":PORT", of.get(kind, b"none")) for kind in KINDS[:3]), of[KINDS[3]] != b"0"))
        there["idle"].sendall(b"mn\r\n")
        time.sleep(0.3)
        seconds = [int(of[KINDS[3]]) for of in lists(ask(asks)).values() if of[b"addr"].endswith(b":%d" % there["idle"].getsockname()[1])] \
            if names else [0]
        check(seconds and seconds[0] <= 1, f"a command begins anew: {seconds}")
        return sorted(told)


def compare(what, ours, theirs, wrap=None):
    with concurrent.futures.ThreadPoolExecutor() as pool:  # each scene waits for seconds
        mine, other = pool.map(lambda address: scene(address, wrap or (lambda plain: plain)), (ours, theirs))
    if wrap:  # memcached may have read from a client that has said nothing yet: bytes of the handshake
        other = [tuple(b"read" if one[0] == "fresh" and part == b"new_cmd" else part for part in one) for one in other]
    # The path of a Unix socket differs.
    mine, other = (sorted(tuple(re.sub(rb"^unix:/\S+$", b"unix:PATH", part) if isinstance(part, bytes) else part for part in one) for one in told)
                   for told in (mine, other))
    check(mine == other and len(mine) >= len(SAYS) + 2, f"{what}:\n" + "\n".join(f"  {a}\n  {b}" for a, b in zip(mine, other) if a != b))


def same_as_memcached(folder):
    needs("memcached")
    with Server(PROGRAM, folder / "v4.hf") as server, Memcached() as memcached:
        compare("IPv4", server.address, memcached.address)
        check(talk(server.address, b"stats conns x\r\n", False).endswith(b"END\r\n"), "with a word behind it")
    with Server(PROGRAM, folder / "v6.hf", listens="127.0.0.1,::1") as server, Memcached("-l", "::1") as memcached:
        port = int(re.search(r"\[::1\]:(\d+)", server.ready_line).group(1))
        compare("IPv6", ("::1", port), ("::1", memcached.address[1]))
    path = folder / "kv.sock"
    with Server(PROGRAM, folder / "unix.hf", unix=path) as server, Memcached(unix=folder / "mc.sock") as memcached:
        compare("a Unix socket", server.address, memcached.address)
        with server.connect() as client:
            check(b"addr unix:" + path.encode() in ask(client), "its path")
    pair = make_certificate(folder.path)
    options = ("-Z", "-o", "ssl_chain_cert={},ssl_key={}".format(*pair))
    with Server(PROGRAM, folder / "tls.hf", *options) as server, Memcached(*options) as memcached:
        context = client_context(pair[0])
        compare("TLS", server.address, memcached.address, lambda plain: context.wrap_socket(plain, server_hostname="localhost"))


def comes_and_goes(address, number, ends, seen):
    """A client of another kind each time, that leaves in an orderly way or not."""
    said = list(SAYS.values()) + [b"get none\r\n" * 500, b"stats conns\r\n" * 20, b"quit\r\n"]
    while not ends.is_set():
        with contextlib.suppress(OSError), connect(address) as client:
            client.sendall(said[seen[number] % len(said)])
            if seen[number] % 3 == 0:  # a reset
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            elif seen[number] % 3 == 1:
                client.settimeout(0.002)
                client.recv(1000)
        seen[number] += 1


def while_others_come_and_go(folder):
    seconds = 4
    with Server(PROGRAM, folder / "churn.hf", "-t", "4", "-m", "64") as server, contextlib.ExitStack() as open_ones:
        talk(server.address, b"set big 0 0 1000000\r\n" + b"v" * 1000000 + b"\r\n", False)
        steady = [open_ones.enter_context(server.connect()) for _ in range(8)]
        for client in steady:
            client.sendall(b"mn\r\n")
            check(client.recv(10) == b"MN\r\n", "a client that stays")
        ports = {b"tcp:127.0.0.1:%d" % client.getsockname()[1] for client in steady}
        ends, seen, asked = threading.Event(), [0] * 8, [0] * 4
        threads = [threading.Thread(target=comes_and_goes, args=(server.address, n, ends, seen)) for n in range(len(seen))]

        def asks(number):
            with server.connect() as client:
                client.settimeout(30)
                while not ends.is_set():
                    text = ask(client)
                    missing = ports - {of[b"addr"] for of in lists(text).values()}
                    if missing:
                        wrong.append(f"{missing} left out")
                    asked[number] += 1

        wrong = []
        threads += [threading.Thread(target=asks, args=(n,)) for n in range(len(asked))]
        for thread in threads:
            thread.start()
        time.sleep(seconds)
        ends.set()
        for thread in threads:
            thread.join()
        check(not wrong and min(asked) > 0, f"lists: {wrong[:3]}, {asked}")
        with server.connect() as client:
            for _ in range(100):  # those that went are seen to be gone
                last = lists(ask(client))
                if len(last) == len(steady) + 2:
                    break
                time.sleep(0.05)
        check(len(last) == len(steady) + 2, f"nobody else is there in the end: {last}")
        for client in steady:
            client.close()
        check(server.stop() == 0, "a clean stop")
    print(f"{sum(asked)} lists while {sum(seen)} clients came and went")


def long_lists(folder):
    wanted = 2500
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(2 * wanted, most), most))
    wanted = min(wanted, resource.getrlimit(resource.RLIMIT_NOFILE)[0] - 200)
    with Server(PROGRAM, folder / "long.hf", "-c", str(wanted + 100)) as server, contextlib.ExitStack() as open_ones:
        clients = [open_ones.enter_context(server.connect()) for _ in range(wanted)]
        ports = {b"tcp:127.0.0.1:%d" % client.getsockname()[1] for client in clients}
        clients[0].settimeout(60)
        for _ in range(200):
            if len(lists(ask(clients[0]))) == wanted + 1:
                break
        found = lists(ask(clients[0]))
        check(len(found) == wanted + 1 and ports <= {of[b"addr"] for of in found.values()}, f"{len(found)} of {wanted} connections")
        clients[1].sendall(b"stats conns\r\n" * 200)  # and reads nothing of it
        slowest = 0
        for client in clients[2:200]:
            began = time.monotonic()
            client.sendall(b"mn\r\n")
            check(client.recv(10) == b"MN\r\n", "somebody else")
            slowest = max(slowest, time.monotonic() - began)
        check(slowest < 2, f"others wait {slowest} s")
        held = int(re.search(rb"connection_bytes (\d+)", talk(server.address, b"stats\r\n", False)).group(1))
        check(held < 4 << 20, f"{held} bytes wait for who reads nothing")
        text = bytearray()
        clients[1].settimeout(60)
        while not text.endswith(b"END\r\n") or text.count(b"END\r\n") < 200:
            text += clients[1].recv(1 << 20)
        for each in bytes(text).split(b"END\r\n")[:-1:20]:
            check(len(lists(each + b"END\r\n")) == wanted + 1, "each list is whole")
    print(f"{wanted} connections, others wait {1000 * slowest:.1f} ms at most, {held} bytes kept")


def main():
    with Folder() as folder:
        while_others_come_and_go(folder)
        long_lists(folder)
        if not POWER:
            same_as_memcached(folder)


main()
