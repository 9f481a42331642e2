# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A client process of the demonstration: writes its share of the keys and remembers every answer.

For each key it knows the last version the server acknowledged, and the one it was sending when
the connection broke. After a restart the server must hold one of these two, byte for byte; from
then on that one counts as acknowledged.
"""
import gzip
import pathlib
import random
import signal
import sys
import time
from contextlib import closing

from pymemcache.client.base import Client
from pymemcache.exceptions import MemcacheUnexpectedCloseError

WORDS = pathlib.Path("/usr/share/dict/american-english")        # Debian: wamerican
TEXTS = [pathlib.Path("/usr/share/misc"), pathlib.Path("/usr/share/state"),
         pathlib.Path("/usr/share/dict")]                       # Debian: miscfiles
DELETE_EVERY = 8            # every so many versions of a key, it is deleted
REPORTED_MAX = 5
BROKEN = (OSError, MemcacheUnexpectedCloseError)


def read_passages():
    """The packaged texts in pieces of about 40 to 800 bytes."""
    lines = []
    for folder in TEXTS:
        for path in sorted(folder.glob("*.gz")):
            with gzip.open(path) as text:
                lines += [line.strip() for line in text if len(line) > 8]
    passages, begin = [], 0
    while begin < len(lines):
        count = 1 + begin % 7
        passages.append(b"\n".join(lines[begin:begin + count])[:800])
        begin += count
    return passages


class Share:
    """The keys of one client and what is known of them."""

    def __init__(self, number, count, seed):
        self.passages = read_passages()
        self.keys = [word.encode() for word in WORDS.read_text("utf-8").split()][number::count]
        self.chance = random.Random(seed * 31 + number)
        self.acknowledged = [0] * len(self.keys)        # version 0: never written
        self.sending = {}                               # key number -> version without an answer
        self.lost = set()                               # key numbers, each counted once

    def value(self, key, version):
        """The bytes of a version; None if that version is a delete."""
        if version % DELETE_EVERY == 0:
            return None
        passage = self.passages[(key * 7919 + version * 104729) % len(self.passages)]
        return b"%s %d\n%s" % (self.keys[key], version, passage)

    # Each of the following takes the server's socket first and returns a count.

    def fill(self, path):
        """Writes version 1 of every key and forgets everything before."""
        with closing(Client(path, timeout=30)) as client:
            for begin in range(0, len(self.keys), 100):
                batch = range(begin, min(begin + 100, len(self.keys)))
                values = {self.keys[key]: self.value(key, 1) for key in batch}
                if client.set_many(values, noreply=False):
                    raise RuntimeError("a set was refused")
        self.acknowledged = [1] * len(self.keys)
        self.sending.clear()
        return len(self.keys)

    def write(self, path):
        """Writes until the connection breaks."""
        acknowledged = 0
        try:
            with closing(Client(path, timeout=30)) as client:
                while True:
                    acknowledged += self.write_some(client)
        except BROKEN:
            return acknowledged

    def write_some(self, client):
        """One set or delete; every fourth time, a batch of sets."""
        count = 16 if self.chance.random() < 0.25 else 1
        batch = self.chance.sample(range(len(self.keys)), count)
        self.sending = {key: self.acknowledged[key] + 1 for key in batch}
        values = {key: self.value(key, version) for key, version in self.sending.items()}
        for key in [key for key in values if values[key] is None]:
            if not client.delete(self.keys[key], noreply=False) and key not in self.lost:
                raise RuntimeError(f"deleted key {self.keys[key]} was not there")
            self.note(key)
        sets = {self.keys[key]: value for key, value in values.items() if value is not None}
        if sets and client.set_many(sets, noreply=False):
            raise RuntimeError("a set was refused")
        for key in list(self.sending):
            self.note(key)
        return count

    def note(self, key):
        self.acknowledged[key] = self.sending.pop(key)

    def verify(self, path):
        """Compares every key, byte for byte; returns how many are wrong."""
        lost = 0
        with closing(Client(path, timeout=30)) as client:
            for begin in range(0, len(self.keys), 200):
                batch = range(begin, min(begin + 200, len(self.keys)))
                found = client.get_many([self.keys[key] for key in batch])
                lost += sum(not self.holds(key, found.get(self.keys[key])) for key in batch)
        self.sending.clear()
        return lost

    def holds(self, key, found):
        if key in self.lost:
            return True
        for version in (self.acknowledged[key], self.sending.get(key)):
            if version is not None and found == self.value(key, version):
                self.acknowledged[key] = version
                return True
        self.lost.add(key)
        if len(self.lost) <= REPORTED_MAX:
            wanted = self.value(key, self.acknowledged[key])
            print(f"\nLOST {self.keys[key]!r}: acknowledged {wanted!r:.60}, found {found!r:.60}",
                  file=sys.stderr)
        return False

    def count(self, path):
        """How many keys are there with the right bytes."""
        with closing(Client(path, timeout=30)) as client:
            found = 0
            for begin in range(0, len(self.keys), 200):
                batch = range(begin, min(begin + 200, len(self.keys)))
                held = client.get_many([self.keys[key] for key in batch])
                found += sum(held.get(self.keys[key]) == self.value(key, 1) for key in batch)
        return found

    def load(self, path, operation, batch, seconds):
        """Throughput: requests answered in so many seconds. What is stored is not checked again."""
        values = {key: self.value(number, 1) for number, key in enumerate(self.keys)}
        batches = [self.chance.sample(self.keys, batch) for _ in range(2000)]
        done = 0
        with closing(Client(path, timeout=30, no_delay=True)) as client:
            until = time.perf_counter() + seconds
            while time.perf_counter() < until:
                keys = batches[done // batch % len(batches)]
                if operation == "get":
                    client.get_many(keys)
                else:
                    client.set_many({key: values[key] for key in keys}, noreply=False)
                done += batch
        return done


def serve(pipe, number, count, seed):
    """Answers questions (method, arguments …) from the pipe until it is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    share = Share(number, count, seed)
    while True:
        try:
            name, *arguments = pipe.recv()
        except EOFError:
            return
        try:
            pipe.send(getattr(share, name)(*arguments))
        except Exception as failure:        # the asker ends the run and says why
            pipe.send(failure)
