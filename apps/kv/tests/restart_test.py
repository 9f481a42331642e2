# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Goal: every acknowledged write is there after kill -9, byte for byte, and nothing else.

Method: several clients, each with keys of its own, write through pymemcache and note what was
acknowledged. At a random number of acknowledgements the server gets SIGKILL. After the restart each
key must hold its acknowledged value; the one write a client had under way may have happened or not.
A clean stop between rounds must keep everything too. Then the server dies in the middle of each kind
of section, where the pool is half changed. After every death the pool is checked as a whole: tables,
items, and the allocator's account against what the root reaches.
"""

import random
import signal
import subprocess
import sys
import threading

from kv_testing import Folder, Server, check, check_pool

try:
    from pymemcache.client.base import Client
    from pymemcache.exceptions import MemcacheError
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

CLIENTS, KEYS, ROUNDS = 4, 400, 8


class Acknowledgements:
    """How many so far; the killer waits for a number of them."""

    def __init__(self):
        self.count = 0
        self.changed = threading.Condition()

    def add(self):
        with self.changed:
            self.count += 1
            self.changed.notify_all()

    def wait_for(self, count):
        with self.changed:
            return self.changed.wait_for(lambda: self.count >= count, timeout=120)


class Writer:
    def __init__(self, number, seed):
        self.number = number
        self.random = random.Random(seed * 100 + number)
        self.known = {}       # key -> acknowledged value
        self.under_way = None  # key, value (None: deleted) of the write not yet acknowledged

    def key(self):
        return f"client{self.number}-{self.random.randrange(KEYS)}"

    def value(self):
        length = self.random.choice((0, 8, 100, 100, 1000, 30_000, 200_000 if self.random.random() < 0.1 else 64))
        return self.random.randbytes(length)

    def step(self, client):
        key, kind = self.key(), self.random.random()
        old = self.known.get(key)
        if kind < 0.6 or old is None:
            new, call = self.value(), client.set
        elif kind < 0.7:
            new, call = None, client.delete
        elif kind < 0.8:
            extra = self.random.randbytes(20)
            new, call = old + extra, lambda k, _: client.append(k, extra)
        elif kind < 0.9:
            key = f"client{self.number}-counter"
            new = b"%d" % (int(self.known.get(key, b"0")) + 1)
            call = (lambda k, _: client.incr(k, 1)) if key in self.known else client.add
        else:
            value, token = client.gets(key)
            check(value == old, f"{key} before cas")
            new, call = self.value(), lambda k, v: client.cas(k, v, token)
        self.under_way = (key, new)
        done = call(key) if new is None else call(key, new)
        check(done not in (None, False), f"a write of {key} was refused: {done}")
        self.acknowledged(key, new)

    def acknowledged(self, key, value):
        if value is None:
            self.known.pop(key, None)
        else:
            self.known[key] = value
        self.under_way = None

    def run(self, address, acknowledgements):
        client = Client(address, default_noreply=False, connect_timeout=30, timeout=30)
        try:
            while True:
                self.step(client)
                acknowledgements.add()
        except (OSError, MemcacheError):
            pass  # killed: the write under way stays noted
        finally:
            client.close()

    def verify(self, client):
        if self.under_way is not None:  # it happened or not; either way it is known from now on
            key, new = self.under_way
            found = client.get(key)
            check(found in (self.known.get(key), new), f"{key} is neither the old nor the new value")
            self.acknowledged(key, found)
        keys = [f"client{self.number}-{i}" for i in range(KEYS)] + [f"client{self.number}-counter"]
        found = client.get_many(keys)
        lost = [k for k in keys if found.get(k) != self.known.get(k)]
        check(not lost, f"lost or wrong: {lost[:10]}")


def write_and_kill(server, writers, count):
    acknowledgements = Acknowledgements()
    threads = [threading.Thread(target=w.run, args=(server.address, acknowledgements)) for w in writers]
    for thread in threads:
        thread.start()
    enough = acknowledgements.wait_for(count)
    server.kill()
    for thread in threads:
        thread.join()
    check(enough, f"{count} acknowledgements in time")
    return acknowledgements.count


def die_in_sections(program, checker, folder):
    """The write that meets the crash was not acknowledged: old or new, but one of them."""
    old, new = b"9" * 100, b"8" * 300
    for point, call, outcomes in (
            ("kv_insert", lambda c: c.set("fresh", new), {"fresh": (None, new)}),
            ("kv_replace", lambda c: c.set("key", new), {"key": (old, new)}),
            ("kv_remove", lambda c: c.delete("key"), {"key": (old, None)}),
            ("kv_number", lambda c: c.decr("number", 1), {"number": (b"10", b"9 ")})):
        pool = folder / f"{point}.hf"
        with Server(program, pool, "-m", "16") as server:
            client = Client(server.address, default_noreply=False)
            expected = {f"key{i}": b"%d" % i for i in range(1000)} | {"key": old, "number": b"10"}
            client.set_many(expected)
            server.kill()
        with Server(program, pool, "-m", "16", crash_at=point) as server:
            try:
                call(Client(server.address, default_noreply=False))
                check(False, f"{point}: acknowledged by a server that was to die")
            except (OSError, MemcacheError):
                pass
            check(server.died() == signal.SIGKILL, f"{point}: the server dies there")
        found = check_pool(checker, pool)
        # In mode process a section leaves no trace before it has overwritten something.
        check(found["re_executed"] == 0 and found["rolled_back"] <= 1, f"{point}: at most one section recovered: {found}")
        with Server(program, pool) as server:
            client = Client(server.address)
            for key, allowed in outcomes.items():
                value = client.get(key)
                check(value in allowed, f"{point}: {key} is {value}")
                expected.pop(key, None)
                print(f"{point}: {found}: {'new' if value == allowed[1] else 'old'}")
            check(client.get_many(list(expected)) == expected, f"{point}: other items")


def main():
    program, checker = sys.argv[1:3]
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else 20260101
    print(f"seed {seed}: repeat with {' '.join(sys.argv[:3])} {seed}", flush=True)
    with Folder() as folder:
        write_and_kill_rounds(program, checker, folder / "pool.hf", seed)
    if program.endswith("-mod"):
        return  # its commit is one store: there is no half of it
    with Folder() as folder:
        die_in_sections(program, checker, folder)


def write_and_kill_rounds(program, checker, pool, seed):
    chance = random.Random(seed)
    writers = [Writer(i, seed) for i in range(CLIENTS)]
    acknowledged = 0
    for round_number in range(ROUNDS):
        with Server(program, pool, "-m", "1024") as server:
            client = Client(server.address)
            for writer in writers:
                writer.verify(client)
            items = sum(len(w.known) for w in writers)
            check(client.stats()[b"curr_items"] == items, "as many items as were written")
            print(f"round {round_number}: {items} items verified; {server.ready_line.strip()}", flush=True)
            if round_number % 4 == 3:
                check(server.stop() == 0, "a clean stop")
            else:
                acknowledged += write_and_kill(server, writers, chance.randrange(200, 4000))
        check_pool(checker, pool)
    print(f"{acknowledged} acknowledged writes, none lost")


main()
