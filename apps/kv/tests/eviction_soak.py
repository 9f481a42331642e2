# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Goal: a full server goes on as a full memcached does, over restarts: it stores what memcached stores, gives back right
values or none, loses nothing that it did not count as evicted, and takes no more memory than it was given.

Method: holdfast-kv and memcached, both with the same small limit, get the same commands: sets of 20 B to 1 MB, whose
distribution changes with each phase, deletions, expiry times, reads. Between phases holdfast-kv is stopped or killed,
sometimes amid a batch, and started again. After each restart, and at each phase's end, all that should be there is read.
Every fourth round is without evictions (-M): filled, flushed or expired, and filled again.

eviction_soak.py PROGRAM... [--seconds N | --rounds N] [--phases N] [--seed N]: the programs take turns, round by round.
"""

import argparse
import contextlib
import math
import os
import random
import sys
import time

from kv_testing import Folder, Memcached, Server, check, connect, needs

CLIENTS = 4            # connections to holdfast-kv; a key is always of the same one
BATCH_BYTES = 200_000  # asked before answers are read: less than sockets take
MEMORY_MB = 16
OVERHEAD_BYTES = 60    # of an item beside its value, about
ANSWER_S = 60          # nothing takes so long
BYTES = random.Random(1).randbytes(2 << 20)  # values are cut from it
# Engine mod makes no large blocks of chunks that served small items (docs/guide/kv.md): above, refusals are counted only.
MOD_BYTES_MAX = 8000
SIZES = {
    "tens of bytes": lambda chance: chance.randrange(20, 100),
    "one size": lambda chance: 500,
    "another size": lambda chance: 620,
    "hundreds of bytes": lambda chance: chance.randrange(100, 1000),
    "kilobytes": lambda chance: chance.randrange(1000, 8000),
    "tens of kilobytes": lambda chance: chance.randrange(8000, 64_000),
    "hundreds of kilobytes": lambda chance: chance.randrange(64_000, 1_000_000),
    "a long tail": lambda chance: int(60 * (1 / (1 - chance.random() * 0.9995)) ** 0.9),
    "any": lambda chance: int(math.exp(chance.uniform(math.log(20), math.log(1_000_000)))),
}


class Client:
    """A connection that asks several things at once."""

    def __init__(self, address):
        self.socket = connect(address)
        self.socket.settimeout(ANSWER_S)
        self.answers = self.socket.makefile("rb", 1 << 16)

    def lines(self, requests):
        """The answers to requests with one line each."""
        self.socket.sendall(b"".join(requests))
        return [self.line() for _ in requests]

    def line(self):
        line = self.answers.readline()
        if not line.endswith(b"\r\n"):
            raise ConnectionResetError
        return line[:-2]

    def values(self, keys):
        """Those of these keys that exist."""
        self.socket.sendall(b"get " + b" ".join(keys) + b"\r\n")
        found = {}
        while (line := self.line()) != b"END":
            check(line.startswith(b"VALUE "), f"an answer to get: {line}")
            _, key, _, length = line.split()
            found[key] = self.answers.read(int(length))
            check(self.answers.read(2) == b"\r\n", f"the end of {key}")
        return found

    def stats(self):
        self.socket.sendall(b"stats\r\n")
        found = {}
        while (line := self.line()) != b"END":
            name, _, value = line[5:].partition(b" ")
            found[name.decode()] = value.decode()
        return found

    def close(self):
        self.answers.close()
        self.socket.close()


def value_of(key, version, size):
    """'size' bytes that no other key and version has, except those shorter than their name."""
    name = b"%s/%d/" % (key, version)
    at = hash_of(name) % (1 << 20)
    return name[:size] if size <= len(name) else name + BYTES[at:at + size - len(name)]


def hash_of(text):
    found = 0
    for byte in text:
        found = (found * 131 + byte) & 0xffffffff
    return found


class Soak:
    def __init__(self, program, memcached, folder, number, chance, evicts, phases):
        self.program, self.chance, self.evicts, self.phases = program, chance, evicts, phases
        self.pool = folder / f"pool{number}.hf"
        self.real = Client(memcached.address)
        self.known = {}  # key -> (version, size) as acknowledged
        self.in_doubt = {}  # key -> what it may be beside that, of requests that a kill has cut short
        self.number = self.version = self.evicted = self.refused = self.sets = 0
        self.server = None

    # The server.

    def start(self):
        options = ["-m", str(MEMORY_MB)] + ([] if self.evicts else ["-M"])
        self.server = Server(self.program, self.pool, *options)
        self.clients = [Client(self.server.address) for _ in range(CLIENTS)]

    def end(self, how):
        """Counts of this process; notes what it has evicted."""
        if how != "kill amid requests":
            self.look_at_memory()
            self.evicted += int(self.clients[0].stats()["evictions"])
        for client in self.clients:
            client.close()
        if how == "stop":
            check(self.server.stop() == 0, "a clean stop")
        else:
            self.server.kill()

    def look_at_memory(self):
        size = os.path.getsize(self.pool)  # with the seal that a clean stop has left, 16 bytes for each item
        check(size <= (MEMORY_MB << 20) * 5 / 4, f"the pool has {size} bytes")
        with open(f"/proc/{self.server.process.pid}/status") as status:
            own = next(int(line.split()[1]) for line in status if line.startswith("RssAnon"))
        check(own < 256 << 10, f"the server has {own} KB of memory beside the pool")

    # Requests.

    def client_of(self, key):
        return self.clients[hash_of(key) % CLIENTS]

    def ask_both(self, requests):
        """Requests (key, bytes), one line each: holdfast-kv's answers and memcached's."""
        parts = {}
        for at, (key, request) in enumerate(requests):
            parts.setdefault(self.client_of(key), []).append((at, request))
        for client, part in parts.items():
            client.socket.sendall(b"".join(request for _, request in part))
        ours = [b""] * len(requests)
        for client, part in parts.items():
            for at, _ in part:
                ours[at] = client.line()
        return ours, self.real.lines([request for _, request in requests])

    def draw(self, size_of):
        """A batch of changes: (key, request, what the key becomes)."""
        batch, left = [], BATCH_BYTES
        touched = set()
        while left > 0 and len(batch) < 500:
            key = b"k%d" % (self.number if self.chance.random() < 0.8 else self.chance.randrange(self.number + 1))
            self.number += 1
            if key in touched:
                continue
            touched.add(key)
            if self.chance.random() < 0.03:
                batch.append((key, b"delete %s\r\n" % key, None))
                continue
            self.version += 1
            size = size_of(self.chance)
            expires = 1_000_000 if self.chance.random() < 0.1 else 0
            value = value_of(key, self.version, size)
            batch.append((key, b"set %s 0 %d %d\r\n%s\r\n" % (key, expires, size, value), (self.version, size)))
            left -= size + OVERHEAD_BYTES
        return batch

    def change(self, batch):
        """Asks both servers, and compares."""
        ours, theirs = self.ask_both([(key, request) for key, request, _ in batch])
        refused = 0
        for (key, _, becomes), our, their in zip(batch, ours, theirs):
            if becomes is None:
                check(our in (b"DELETED", b"NOT_FOUND"), f"the answer to a deletion: {our}")
                self.known.pop(key, None)
                continue
            self.sets += 1
            if our == b"STORED":
                self.known[key] = becomes
                continue
            check(our == b"SERVER_ERROR out of memory storing object", f"the answer to a set of {becomes[1]} bytes: {our}")
            self.known.pop(key, None)  # an older value does not stay
            refused += 1
            self.refused += 1
            limited = self.program.endswith("-mod") and becomes[1] > MOD_BYTES_MAX
            check(not self.evicts or limited or their != b"STORED", f"refused, where memcached stores: {becomes[1]} bytes")
        return refused

    def verify(self, counted=True):
        """Reads all that should be there."""
        lost, doubtful = 0, 0
        for client in self.clients:
            keys = [key for key in self.known.keys() | self.in_doubt.keys() if self.client_of(key) is client]
            while keys:
                part, expected = [], 0
                while keys and len(part) < 200 and expected < 4_000_000:
                    part.append(keys.pop())
                    expected += self.known.get(part[-1], (0, 0))[1]
                found = client.values(part)
                for key in part:
                    states = [self.known.get(key)] + self.in_doubt.get(key, [])
                    if key not in found:
                        lost += key in self.known and key not in self.in_doubt
                        self.known.pop(key, None)
                        continue
                    right = [s for s in states if s is not None and found[key] == value_of(key, *s)]
                    check(right, f"a wrong value of {key}: {found[key][:40]}… of {len(found[key])} bytes, allowed: {states}")
                    self.known[key] = right[0]
                    doubtful += key in self.in_doubt
        self.in_doubt = {}
        evicted = self.evicted + int(self.clients[0].stats()["evictions"])
        if counted:
            check(lost <= evicted, f"{lost} acknowledged items are missing, and {evicted} were evicted")
        self.evicted = -int(self.clients[0].stats()["evictions"])  # counted from here on
        return lost

    def kill_amid(self, size_of):
        batch = self.draw(size_of)
        with contextlib.suppress(OSError):
            for key, request, _ in batch:
                self.client_of(key).socket.sendall(request)
                if self.chance.random() < 2 / len(batch):
                    break
        for key, _, becomes in batch:
            self.in_doubt[key] = [becomes]
        self.end("kill amid requests")
        for key, request, _ in batch:  # memcached has them, too
            self.real.lines([request])

    # Rounds.

    def restart(self, size_of):
        how = self.chance.choice(("stop", "kill", "kill amid requests"))
        if how == "kill amid requests":
            self.kill_amid(size_of)
        else:
            self.end(how)
        self.start()
        self.verify(counted=how != "kill amid requests")
        return how

    def evicting_round(self):
        self.start()
        names = list(SIZES)
        self.chance.shuffle(names)
        for name in names[:self.phases]:
            size_of = SIZES[name]
            before, sets, begin = self.refused, self.sets, time.monotonic()
            left = MEMORY_MB * 1_300_000
            while left > 0:
                batch = self.draw(size_of)
                left -= sum(becomes[1] + OVERHEAD_BYTES for _, _, becomes in batch if becomes is not None)
                self.change(batch)
            lost = self.verify()
            how = self.restart(SIZES[self.chance.choice(names)])
            print(f"  {name}: {self.sets - sets} sets, {self.refused - before} refused, {lost} evicted, "
                  f"{len(self.known)} there, then {how}, {time.monotonic() - begin:.1f} s", flush=True)
        self.end("stop")

    def full_and_dead(self):
        """Without evictions: filled until it refuses, all of it dead, restarted or not, and filled again."""
        self.start()
        for name in self.chance.sample(["one size", "another size", "hundreds of bytes", "kilobytes"], 2):
            size_of, expires = SIZES[name], self.chance.random() < 0.5
            if self.program.endswith("-mod"):  # living items keep the chunks of the dead from other sizes
                name, size_of = "one size", SIZES["one size"]
            stored = refused = 0
            while refused < 20:
                key = b"f%d" % self.number
                self.number += 1
                request = b"set %s 0 %d 500\r\n%s\r\n" % (key, 5 if expires else 0, value_of(key, 0, 500))
                answer = self.client_of(key).lines([request])[0]
                refused += answer != b"STORED"
                stored += answer == b"STORED"
            if expires:
                time.sleep(6.1)  # all have lived for five seconds
            else:
                self.clients[0].lines([b"flush_all\r\n"])
            how = "no restart"
            if self.chance.random() < 0.5:
                how = self.chance.choice(("stop", "kill"))
                self.end(how)
                self.start()
            left, sets, again = MEMORY_MB << 19, 0, 0
            while left > 0:
                key, size = b"g%d" % self.number, size_of(self.chance)
                self.number += 1
                left -= size + OVERHEAD_BYTES
                sets += 1
                answer = self.client_of(key).lines([b"set %s 0 0 %d\r\n%s\r\n" % (key, size, value_of(key, 0, size))])[0]
                if answer == b"STORED":
                    self.known[key] = (0, size)
                    continue
                check(answer == b"SERVER_ERROR out of memory storing object", f"the answer to a set: {answer}")
                again += 1  # in engine mod an inner node of the map, which has another size, may find no room
                check(again <= (sets / 1000 + 1 if self.program.endswith("-mod") else 0),
                      f"{again} of {sets} refused, of {size} bytes, though all else is dead")
            self.evicted = 0
            check(self.verify() == 0, "nothing goes without evictions")
            print(f"  without evictions, {stored} {'expired' if expires else 'flushed'}, {how}, then {sets} of {name}", flush=True)
            self.known = {}
            self.clients[0].lines([b"flush_all\r\n"])
        self.end("stop")


def main():
    options = argparse.ArgumentParser()
    options.add_argument("programs", nargs="+")
    options.add_argument("--seconds", type=float, default=0)
    options.add_argument("--rounds", type=int, default=1)
    options.add_argument("--phases", type=int, default=len(SIZES), help="of each round")
    options.add_argument("--seed", type=int, default=int(time.time()))
    asked = options.parse_args()
    needs("memcached")
    print(f"seed {asked.seed}: repeat with {' '.join(sys.argv)} --seed {asked.seed}", flush=True)
    begin, number, sets, refused = time.monotonic(), 0, 0, 0
    while number < asked.rounds or time.monotonic() - begin < asked.seconds:
        program = asked.programs[number % len(asked.programs)]
        evicts = number // len(asked.programs) % 4 != 3
        chance = random.Random(asked.seed * 1000 + number)
        print(f"round {number}: {os.path.basename(program)}, {time.monotonic() - begin:.0f} s", flush=True)
        with Folder() as folder, Memcached("-m", str(MEMORY_MB)) as memcached:
            soak = Soak(program, memcached, folder, number, chance, evicts, asked.phases)
            try:
                soak.evicting_round() if evicts else soak.full_and_dead()
            finally:
                if soak.server is not None and soak.server.process.poll() is None:
                    soak.server.kill()
            sets, refused = sets + soak.sets, refused + soak.refused
        number += 1
    print(f"{number} rounds, {sets} sets, {refused} refused where that is allowed")


main()
