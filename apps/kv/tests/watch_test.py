# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Goal: a watcher gets the lines of memcached 1.6.18, and costs no other client anything.

Method: the same commands, beside memcached, with a watcher of each kind on either; lines are
compared without times, numbers, descriptors, ports and classes of sizes. Then a watcher that does
not read, beside clients that go on; too many watchers; watchers that leave.
"""

import concurrent.futures
import contextlib
import multiprocessing
import re
import resource
import socket
import sys
import time

from kv_testing import Folder, Memcached, Server, check, needs, packet, talk

KINDS = (b"fetchers", b"mutations", b"connevents", b"evictions", b"sysevents", b"", b"fetchers mutations",
         b"connevents mutations proxyreqs proxyevents proxyuser")
QUIET = (b"evictions", b"sysevents")  # of those, where nothing is evicted
TOLD = (b"get a\r\nset a 0 0 3\r\nabc\r\nget a b\r\ngets a\r\nset a%20b~- 0 500 1\r\nx\r\nadd a 0 0 1\r\ny\r\nadd n 0 0 1\r\n5\r\n"
        b"replace a 1 0 2\r\nyz\r\nappend a 0 0 1\r\nq\r\nprepend none 0 0 1\r\nq\r\ncas a 0 0 1 99999999999\r\nx\r\n"
        b"cas none 0 0 1 5\r\nx\r\nincr n 1\r\nincr none 1\r\ntouch a 100\r\ntouch none 1\r\ngat 0 a\r\ndelete none\r\ndelete a\r\n"
        b"set big 0 0 2000000\r\n" + b"v" * 2000000 + b"\r\nset gone 0 -1 1\r\nx\r\nget gone\r\nversion\r\nquit\r\n")
ANSWERED = (b"watch nonsense\r\nget x\r\nwatch fetchers\r\n", b"watch fetchers nonsense\r\n",
            b"watch mutations\r\nget a\r\n")


def watch(address, kinds):
    client = socket.create_connection(address)
    client.settimeout(20)
    client.sendall(b"watch" + (b" " + kinds if kinds else b"") + b"\r\n")
    lines = client.makefile("rb")
    check(lines.readline() == b"OK\r\n", f"watch {kinds}")
    return client, lines


def comparable(line):
    line = re.sub(rb"ts=\d+\.\d+ gid=\d+ ", b"", line)
    line = re.sub(rb"(key=gone .*ttl=)\d+", rb"\1PAST", line)  # memcached's goes below 0, and so beyond four thousand million
    return re.sub(rb"\b(cfd|rport|clsid|ttl)=(?!0\b)-?\d+", rb"\1=N", line)


def answers(address, request):
    """The immediate answer to these lines; the client stays."""
    with socket.create_connection(address) as client:
        client.sendall(request)
        client.settimeout(20)  # for the first of it, which each has; a busy machine takes its time
        said = client.recv(1000)
        client.settimeout(0.5)
        with contextlib.suppress(socket.timeout):
            while piece := client.recv(1000):
                said += piece
        return said.split(b"ts=")[0]


def heard(address, kinds):
    """The lines about TOLD, up to a connection that says so."""
    client, lines = watch(address, kinds)
    with client:
        talk(address, b"delete a\r\ndelete n\r\ndelete a%20b~-\r\ndelete big\r\ndelete gone\r\n", False)
        time.sleep(1.2)  # memcached's logger sleeps up to a second, and sorts nothing
        for mark in (b"begins", b"ends"):
            talk(address, b"get %s\r\nset %s 0 0 1\r\nx\r\n" % (mark, mark), False)
            time.sleep(0.3)
            if mark == b"begins":
                talk(address, TOLD, False)
                time.sleep(0.3)
        found = []
        client.settimeout(2)
        with contextlib.suppress(socket.timeout):
            while not found or b"ends" not in found[-1] or b"item_get" in found[-1]:
                found.append(comparable(lines.readline()))
        begins = max((i for i, line in enumerate(found) if b"begins" in line), default=-1)
        return [line for line in found[begins + 1:] if not re.search(rb"key=ends| get ends| set ends", line)]


def both_heard(program, folder, kinds):
    """The same of two servers that have no other clients."""
    with Server(program, folder / (kinds.decode().replace(" ", "_") + ".hf")) as server, Memcached() as memcached, \
            concurrent.futures.ThreadPoolExecutor() as beside:
        theirs = beside.submit(heard, memcached.address, kinds)
        return heard(server.address, kinds), theirs.result()


def same_lines(program, folder, server, memcached):
    compared = 0
    for kinds in QUIET:
        watch(server.address, kinds)[0].close()
    told = [kinds for kinds in KINDS if kinds not in QUIET]
    with concurrent.futures.ThreadPoolExecutor() as beside:  # most of it waits for memcached's logger
        each = list(beside.map(lambda kinds: both_heard(program, folder, kinds), told))
    for kinds, (ours, theirs) in zip(told, each):
        check(ours == theirs, f"watch {kinds}:\n" + "\n".join(
            f"{'  ' if mine == other else '! '}{mine} | {other}" for mine, other in zip(ours + [b""] * 9, theirs + [b""] * 9)))
        check(ours, f"watch {kinds}: nothing")
        compared += len(ours)
    for request in ANSWERED:
        ours, theirs = (answers(each.address, request) for each in (server, memcached))
        check(ours == theirs, f"{request}: {ours}, memcached {theirs}")
    print(f"{compared} lines as memcached's")


def commands_are_told(server):
    """memcached 1.6.18 accepts the word, and sends nothing."""
    client, lines = watch(server.address, b"rawcmds")
    with client:
        talk(server.address, b"get a b\r\nnonsense\r\nget " + b"k" * 1000 + b"\r\n", False)
        told = [re.sub(rb"ts=\d+\.\d+ gid=\d+ <\d+ ", b"", lines.readline()) for _ in range(3)]
        check(told == [b"get a b\n", b"nonsense\n", b"get " + b"k" * 508 + b"\n"], f"commands: {told}")


def packets_are_told(server):
    client, lines = watch(server.address, b"fetchers mutations")
    with client:
        talk(server.address, packet(0x01, b"p q", b"value", b"\0" * 8) + packet(0x00, b"p q") + packet(0x04, b"p q"), False)
        told = [lines.readline() for _ in range(4)]
        for line, words in zip(told, (b"item_get key=p%20q status=not_found", b"item_store key=p%20q status=stored cmd=set",
                                      b"item_get key=p%20q status=found", b"item_get key=p%20q status=found")):
            check(words in line, f"a packet is told: {told}")


def evictions(program, folder):
    with Server(program, folder / "small.hf", "-m", "8") as server:
        client, lines = watch(server.address, b"evictions")
        with client:
            for number in range(2000):
                talk(server.address, b"set k%d 0 %d 10000\r\n" % (number, 900 * (number % 2)) + b"v" * 10000 + b"\r\n", False)
            told = lines.readline()
            shape = rb"ts=\d+\.\d+ gid=\d+ type=eviction key=k\d+ fetch=(yes|no) ttl=(-1|\d+) la=\d+ clsid=\d+ size=10000\n"
            check(re.fullmatch(shape, told), f"an eviction: {told}")


def reads_nothing(program, folder):
    """A watcher that reads nothing: lines that do not fit its buffer are counted, and other clients are served meanwhile."""
    with Server(program, folder / "slow.hf", "-o", "watcher_logbuf_size=64,worker_logbuf_size=32") as server:
        lazy, lines = watch(server.address, b"fetchers")
        with lazy, server.connect() as client:
            request = b"get " + b"k" * 240 + b"\r\n"
            slowest = 0
            for _ in range(400):
                started = time.monotonic()
                client.sendall(request * 100)
                left = 100 * len(b"END\r\n")
                while left:
                    left -= len(client.recv(left))
                slowest = max(slowest, time.monotonic() - started)
            print(f"beside a watcher that does not read: 100 answers within {slowest * 1000:.0f} ms")
            check(slowest < 5, "nobody waits for a watcher")
            told = dict(re.findall(rb"STAT (log_\w+) (\d+)", talk(server.address, b"stats\r\n", False)))
            told = {name: int(number) for name, number in told.items()}
            check(told[b"log_watchers"] == 1 and told[b"log_worker_written"] > 0, f"{told}")
            check(told[b"log_watcher_skipped"] + told[b"log_worker_dropped"] > 0, f"what found no room is counted: {told}")
            numbers = []
            lazy.settimeout(10)
            if told[b"log_watcher_skipped"]:
                while not (line := lines.readline()).startswith(b"skipped="):
                    numbers.append(int(re.search(rb"gid=(\d+)", line).group(1)))
                    client.sendall(b"get x\r\n")
                    check(client.recv(100) == b"END\r\n", "an answer")
                check(numbers == sorted(numbers), "in order")
                check(int(line.split(b"=")[1]) > 0 and lines.readline().startswith(b"ts="), f"told of what was skipped: {line}")
        lines.close()  # and with it the socket
        deadline = time.monotonic() + 10
        while b"STAT log_watchers 0\r\n" not in talk(server.address, b"stats\r\n", False):
            check(time.monotonic() < deadline, "a watcher that leaves is noticed")
            time.sleep(0.05)
        check(server.stop() == 0, "a clean stop")


def talk_without_end(client):
    said = b"x" * (1 << 20)
    with contextlib.suppress(OSError):
        while client.send(said):
            pass


def says_much(program, folder):
    """Watchers that talk faster than they are listened to; others, whose commands ask the hub, are served meanwhile."""
    with Server(program, folder / "loud.hf") as server, contextlib.ExitStack() as ends:
        for _ in range(6):
            client, lines = watch(server.address, b"mutations")
            process = multiprocessing.Process(target=talk_without_end, args=(client,), daemon=True)
            process.start()
            ends.callback(process.kill)
            client.close(), lines.close()
        waited = 0
        for _ in range(6):
            time.sleep(0.3)
            started = time.monotonic()
            check(b"STAT log_watchers 6\r\n" in talk(server.address, b"stats\r\n", False), "they watch")
            waited += time.monotonic() - started
        check(waited < 2.5, f"stats beside loud watchers: {waited:.3f} s for six")


def too_many(program, folder):
    with Server(program, folder / "many.hf") as server, contextlib.ExitStack() as opened:
        watchers = [watch(server.address, b"mutations") for _ in range(20)]
        for client, _ in watchers:
            opened.enter_context(client)
        with server.connect() as one_more:
            one_more.sendall(b"watch\r\n")
            check(one_more.recv(100) == b"WATCHER_TOO_MANY log watcher limit reached\r\n", "the 21st")
            one_more.sendall(b"set a 0 0 1\r\nx\r\n")
            check(one_more.recv(100) == b"STORED\r\n", "is served on")
        for _, lines in watchers:
            check(b"key=a status=stored" in lines.readline(), "each is told")
        check(b"STAT curr_connections 21\r\n" in talk(server.address, b"stats\r\n", False), "watchers are connections")
        check(server.stop() == 0, "a clean stop beside watchers")
    with Server(program, folder / "none.hf", "-W") as server:
        check(talk(server.address, b"watch\r\n", False) == b"CLIENT_ERROR watch commands not allowed\r\n", "-W")


def no_thread(program, folder):
    """The system refuses the hub a thread: the client gets the reason, and the server goes on."""
    with Server(program, folder / "thread.hf", "-t", "1") as server:
        with open(f"/proc/{server.process.pid}/status", encoding="ascii") as status:
            held = int(re.search(r"VmSize:\s+(\d+) kB", status.read()).group(1)) << 10
        if held > 1 << 40:
            return  # a sanitizer's
        check(talk(server.address, b"mn\r\n", False) == b"MN\r\n", "serves")
        limits = resource.prlimit(server.process.pid, resource.RLIMIT_AS)
        resource.prlimit(server.process.pid, resource.RLIMIT_AS, (held + (2 << 20), limits[1]))
        with server.connect() as client:
            client.settimeout(20)
            client.sendall(b"watch\r\n")
            said = client.recv(100)
            check(said == b"WATCHER_FAILED failed to add log watcher\r\n", f"no thread for the hub: {said}")
            client.sendall(b"get a\r\n")
            check(client.recv(100) == b"END\r\n", "is served on")
            resource.prlimit(server.process.pid, resource.RLIMIT_AS, limits)
            client.sendall(b"watch\r\n")
            check(client.recv(4) == b"OK\r\n", "and may watch when there is one")
        check(server.stop() == 0, "a clean stop")


def main():
    needs("memcached")
    program = sys.argv[1]
    with Folder() as folder:
        with Server(program, folder / "pool.hf") as server, Memcached() as memcached:
            same_lines(program, folder, server, memcached)
            commands_are_told(server)
            packets_are_told(server)
            check(server.stop() == 0, "a clean stop")
        evictions(program, folder)
        reads_nothing(program, folder)
        says_much(program, folder)
        too_many(program, folder)
        no_thread(program, folder)


main()
