# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Goal: in mode power no answer leaves the server before its content is on the disk: the change that it acknowledges, and
the work of other clients that it shows. And many clients share a wait for the disk.

Method: the server runs on a slow disk that with SIGKILL loses everything not synced
(lossy_disk.cpp). It is killed while many clients change their keys, and while some read what others
change; after the restart every answer that was received must still hold. Then the disk fails,
clients hang up or stop reading in the middle of a turn, and the server gets the order to stop.
"""

import os
import random
import selectors
import signal
import socket
import sys
import threading
import time

from kv_testing import Folder, Server, check, check_pool

CLIENTS, KEYS, ROUNDS = 48, 6, 5
COUNTERS, SIGHTS = 4, 3  # clients that count, as many as read, and how often
TIMEOUT_S = 60


class Disk:
    def __init__(self, library, folder):
        self.fails, self.syncs = folder / "fails", folder / "syncs"
        self.library = library

    def environment(self, sync_ms):
        return {"LD_PRELOAD": self.library, "LOSSY_SYNC_MS": str(sync_ms), "LOSSY_FAILS": self.fails,
                "LOSSY_SYNCS": self.syncs}

    def sync_count(self):
        return os.path.getsize(self.syncs)

    def start(self, program, pool, sync_ms, *options):
        return Server(program, pool, "--mode", "power", "-t", "4", *options, environment=self.environment(sync_ms))


class Connection:
    """Requests and answers, line by line."""

    def __init__(self, server):
        self.socket = server.connect()
        self.socket.settimeout(TIMEOUT_S)
        if self.socket.family == socket.AF_INET:
            self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.rest = b""

    def line(self):
        while b"\r\n" not in self.rest:
            got = self.socket.recv(1 << 16)
            if not got:
                raise ConnectionResetError
            self.rest += got
        line, _, self.rest = self.rest.partition(b"\r\n")
        return line

    def ask(self, request):
        self.socket.sendall(request)
        return self.line()

    def get(self, key):
        """The value, which has no line end in it; None if it is missing."""
        first = self.ask(b"get %s\r\n" % key)
        if first == b"END":
            return None
        check(first.startswith(b"VALUE "), f"the answer to get: {first}")
        value = self.line()
        check(self.line() == b"END", "the end of the answer")
        return value

    def close(self):
        self.socket.close()


class Client:
    """Changes keys of its own, with up to four requests under way."""

    def __init__(self, number, seed):
        self.number, self.chance = number, random.Random(seed * 1000 + number)
        self.known, self.under_way, self.acknowledged = {}, [], 0

    def draw(self):
        key = b"client%d-%d" % (self.number, self.chance.randrange(KEYS))
        if self.chance.random() < 0.2:
            return key, None
        return key, b"%d-" % self.chance.randrange(1 << 30) + b"v" * self.chance.choice((0, 40, 200, 3000))

    def batch(self):
        self.under_way = [self.draw() for _ in range(self.chance.choice((1, 1, 1, 4)))]
        return b"".join(b"delete %s\r\n" % key if value is None else b"set %s 0 0 %d\r\n%s\r\n" % (key, len(value), value)
                        for key, value in self.under_way)

    def answered(self, line):
        key, value = self.under_way.pop(0)
        allowed = (b"DELETED", b"NOT_FOUND") if value is None else (b"STORED",)
        check(line in allowed, f"the answer to a change of {key}: {line}")
        self.known[key] = value
        self.acknowledged += 1

    def verify(self, connection):
        found = {key: connection.get(key) for key in (b"client%d-%d" % (self.number, i) for i in range(KEYS))}
        states = [dict(self.known)]
        for key, value in self.under_way:
            states.append({**states[-1], key: value})
        check(any(all(found[k] == state.get(k) for k in found) for state in states),
              f"client {self.number}: what is there is not what was acknowledged, with a first part of what was asked: "
              f"{ {k: (found[k], states[0].get(k)) for k in found if found[k] != states[0].get(k)} }")
        self.known, self.under_way = found, []


def write_until_killed(server, clients, acknowledgements):
    """All clients from one thread, as fast as they are answered."""
    waiting = selectors.DefaultSelector()
    done = 0
    for client in clients:
        connection = Connection(server)
        waiting.register(connection.socket, selectors.EVENT_READ, (client, connection))
        connection.socket.sendall(client.batch())
    deadline = time.monotonic() + TIMEOUT_S
    killed = False
    while waiting.get_map():
        check(time.monotonic() < deadline, f"{done} of {acknowledgements} acknowledgements in time")
        for key, _ in waiting.select(1):
            client, connection = key.data
            try:
                got = connection.socket.recv(1 << 16)
            except ConnectionResetError:
                got = b""
            if not got:
                waiting.unregister(connection.socket)
                connection.close()
                continue
            connection.rest += got
            while b"\r\n" in connection.rest:
                client.answered(connection.line())
                done += 1
            if not client.under_way and not killed:
                try:
                    connection.socket.sendall(client.batch())
                except OSError:
                    pass
        if done >= acknowledgements and not killed:
            server.process.send_signal(signal.SIGKILL)
            killed = True
    server.kill()
    return done


def acknowledged_is_there(program, checker, disk, folder, seed):
    pool, chance = folder / "acknowledged.hf", random.Random(seed)
    clients = [Client(i, seed) for i in range(CLIENTS)]
    done = 0
    for _ in range(ROUNDS):
        with disk.start(program, pool, 3, "-m", "64") as server:
            done += write_until_killed(server, clients, chance.randrange(300, 1500))
        with disk.start(program, pool, 0, "-m", "64") as server:
            connection = Connection(server)
            for client in clients:
                client.verify(connection)
            check(server.stop() == 0, "a clean stop")
        check_pool(checker, pool)
    print(f"{done} acknowledgements of {CLIENTS} clients, none lost")


class Reader(threading.Thread):
    def __init__(self, server):
        super().__init__()
        self.connection, self.seen, self.reads = Connection(server), {}, 0

    def run(self):
        try:
            while True:
                for counter in range(COUNTERS):
                    value = self.connection.get(b"counter%d" % counter)
                    self.reads += 1
                    self.seen[counter] = max(self.seen.get(counter, 0), int(value))
        except OSError:
            pass


class Counter(threading.Thread):
    """Stores one number after the other."""

    def __init__(self, server, number):
        super().__init__()
        self.connection, self.number, self.at = Connection(server), number, 0

    def run(self):
        try:
            while True:
                self.at += 1
                self.connection.ask(b"set counter%d 0 0 8\r\n%08d\r\n" % (self.number, self.at))
        except OSError:
            pass


def seen_is_there(program, disk, folder, seed):
    chance, reads = random.Random(seed), 0
    for sight in range(SIGHTS):
        pool = folder / f"seen{sight}.hf"
        # Two workers take connections in turns: one has those that store, and waits, the other those that read.
        with disk.start(program, pool, 25, "-m", "16", "-t", "2") as server:
            first = Connection(server)
            for number in range(COUNTERS):
                check(first.ask(b"set counter%d 0 0 8\r\n%08d\r\n" % (number, 0)) == b"STORED", "a counter")
            counters, readers = [], []
            for number in range(COUNTERS):
                counters.append(Counter(server, number))
                readers.append(Reader(server))
            threads, deadline = counters + readers, time.monotonic() + TIMEOUT_S
            for thread in threads:
                thread.start()
            while any(max(r.seen.get(number, 0) for r in readers) < 2 for number in range(COUNTERS)):
                check(time.monotonic() < deadline, "counters get on, and are read")
                time.sleep(0.01)
            time.sleep(chance.random() / 5)
            server.kill()
            for thread in threads:
                thread.join()
        reads += sum(r.reads for r in readers)
        with disk.start(program, pool, 0) as server:
            connection = Connection(server)
            for number in range(COUNTERS):
                there = int(connection.get(b"counter%d" % number))
                seen = max(r.seen.get(number, 0) for r in readers)
                check(there >= seen, f"counter {number}: {seen} was shown, and is {there} after the failure")
                check(there <= counters[number].at, f"counter {number}: {there} was never asked for")
    print(f"{reads} reads beside changes: nothing was shown that the failure took back")


def waits_are_shared(program, disk, folder):
    requests = 20
    with disk.start(program, folder / "shared.hf", 5, "-m", "16") as server:
        connections = [Connection(server) for _ in range(CLIENTS)]
        for c in connections:
            c.ask(b"mn\r\n")
        before = disk.sync_count()
        for n in range(requests):
            for i, c in enumerate(connections):
                c.socket.sendall(b"set key%d 0 0 4\r\n%04d\r\n" % (i, n))
            for c in connections:
                check(c.line() == b"STORED", "stored")
        waits, done = disk.sync_count() - before, requests * CLIENTS
        check(waits <= done / 4, f"{done} changes waited for the disk {waits} times")
        before = disk.sync_count()
        for i, c in enumerate(connections):
            check(c.get(b"key%d" % i) == b"%04d" % (requests - 1), "read back")
        check(disk.sync_count() - before <= 2, "reads of what is durable wait for nothing")  # 2: a tick's
        lines = connections[0].ask(b"stats holdfast\r\n")
        while (line := connections[0].line()) != b"END":
            lines += b"\n" + line
        check(b"disk_waits" in lines, "stats tell of the waits")
    print(f"{done} changes of {CLIENTS} clients in {waits} waits")


def failing_disk(program, disk, folder):
    pool, count = folder / "failing.hf", 20
    with disk.start(program, pool, 20, "-m", "16") as server:
        connections = [Connection(server) for _ in range(count)]
        for i, c in enumerate(connections):
            check(c.ask(b"set key%d 0 0 3\r\nold\r\n" % i) == b"STORED", "stored on a good disk")
        with open(disk.fails, "w"):
            pass
        for i, c in enumerate(connections):
            c.socket.sendall(b"set key%d 0 0 3\r\nnew\r\nget key%d\r\n" % (i, (i + 1) % count))
        for c in connections:
            answer = b""
            try:
                while got := c.socket.recv(1 << 16):
                    answer += got
            except ConnectionResetError:
                pass
            check(b"STORED" not in answer and b"new" not in answer, f"a failed disk, and an answer: {answer}")
        check(server.died() == signal.SIGABRT, "the server ends where it cannot keep a promise")
    os.unlink(disk.fails)
    with disk.start(program, pool, 0) as server:
        connection = Connection(server)
        for i in range(count):
            check(connection.get(b"key%d" % i) == b"old", "what was acknowledged is there, what failed is not")
    print("a failed disk acknowledges nothing")


def clients_in_the_middle(program, disk, folder):
    pool = folder / "middle.hf"
    with disk.start(program, pool, 10, "-m", "64", "-t", "1") as server:
        asks = Connection(server)
        value = b"x" * 500_000
        check(asks.ask(b"set large 0 0 %d\r\n%s\r\n" % (len(value), value)) == b"STORED", "a large item")
        slow = Connection(server)
        slow.socket.sendall(b"get large\r\n" * 40)  # 20 MB, and it reads none of them
        begin, rounds = time.monotonic(), 20
        for n in range(rounds):
            check(asks.ask(b"set k 0 0 2\r\n%02d\r\n" % n) == b"STORED", "stored beside a client that does not read")
        took = time.monotonic() - begin
        check(took < 20, f"{rounds} changes beside a client that does not read took {took:.1f} s")
        # Answered, in order, before it hangs up: a quit behind changes.
        quits = Connection(server)
        quits.socket.sendall(b"set q 0 0 1\r\n1\r\nincr q 4\r\nnonsense\r\nget q\r\nquit\r\nset q 0 0 1\r\n9\r\n")
        got = b""
        while piece := quits.socket.recv(1 << 16):
            got += piece
        check(got == b"STORED\r\n5\r\nERROR\r\nVALUE q 0 1\r\n5\r\nEND\r\n", f"answers before the end: {got}")
        # Gone in the middle of a turn: done or not, and nobody else notices.
        for n in range(20):
            gone = Connection(server)
            gone.socket.sendall(b"set gone 0 0 2\r\n%02d\r\nset half 0 0 10\r\nxx" % n)
            gone.close()
        check(asks.get(b"q") == b"5" and asks.get(b"half") is None, "the others are served")
        # The slow client gets all of it, unmixed.
        slow.socket.settimeout(TIMEOUT_S)
        for _ in range(40):
            check(slow.line() == b"VALUE large 0 500000", "a large answer")
            check(slow.line() == value and slow.line() == b"END", "its value")
        watcher = Connection(server)
        check(watcher.ask(b"watch mutations\r\n") == b"OK", "a client that watches")
        check(asks.ask(b"set seen 0 0 1\r\n1\r\n") == b"STORED", "stored while it is watched")
        check(b"key=seen" in watcher.socket.recv(1 << 16), "and told")
    print("slow clients, clients that quit, that hang up and that watch: served and told in order")


def stops_cleanly(program, disk, folder):
    pool = folder / "stopped.hf"
    with disk.start(program, pool, 10, "-m", "16") as server:
        clients = [Connection(server) for _ in range(20)]
        for i, c in enumerate(clients):
            c.socket.sendall(b"".join(b"set s%d-%d 0 0 1\r\n1\r\n" % (i, n) for n in range(10)))
        time.sleep(0.015)
        check(server.stop() == 0, "a clean stop under load")
        answers = []
        for c in clients:
            got = b""
            try:
                while piece := c.socket.recv(1 << 16):
                    got += piece
            except ConnectionResetError:
                pass
            answers.append(got.count(b"STORED\r\n"))
    with disk.start(program, pool, 0) as server:
        connection = Connection(server)
        for i, answered in enumerate(answers):
            for n in range(answered):
                check(connection.get(b"s%d-%d" % (i, n)) == b"1", "what was acknowledged before the stop")
    print(f"a stop under load: {sum(answers)} answers, all of them kept")


def main():
    program, checker, library = sys.argv[1:4]
    seed = int(sys.argv[4]) if len(sys.argv) > 4 else 20260101
    print(f"seed {seed}: repeat with {' '.join(sys.argv[:4])} {seed}", flush=True)
    with Folder() as folder:
        disk = Disk(library, folder)
        acknowledged_is_there(program, checker, disk, folder, seed)
        seen_is_there(program, disk, folder, seed)
        waits_are_shared(program, disk, folder)
        failing_disk(program, disk, folder)
        clients_in_the_middle(program, disk, folder)
        stops_cleanly(program, disk, folder)


main()
