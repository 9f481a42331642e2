# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs that are killed with SIGKILL at any time, and continued.

The parent reads what a child says it did, kills it, and looks: what was said is there, what was not
said is there whole or not at all.
"""
import array
import collections
import mmap
import os
import signal
import subprocess
import sys
import time
import traceback
import unittest

import holdfast
from support import SEED, Pooled, examples_with

COUNTER = """
import sys, holdfast
counts, log, jobs, stack, done = (kind(sys.argv[1], durability=sys.argv[2]) for kind in (
    holdfast.Map, holdfast.Vector, holdfast.Queue, holdfast.Stack, holdfast.Set))
start = int(counts.get("n", "0"))
for n in range(start + 1, start + 100000):
    counts.update({"n": str(n), **{f"copy {i}": str(n) for i in range(100)}})
    log.append(str(n))
    log.extend(f"{n} {i}" for i in range(70))
    jobs.extend(f"{n} {i}" for i in range(70))
    stack.extend(f"{n} {i}" for i in range(70))
    done |= {f"{n} {i}" for i in range(70)}
    print(n, flush=True)
"""

ENDING = """
import atexit, sys
atexit.register(lambda: print("closed" if d_pool.closed else "open"))   # runs after holdfast's
import holdfast
d = holdfast.Map(sys.argv[1])
d_pool = d.pool
d["a"] = "b"
s, i = d.snapshot(), iter(d)
next(i)
sys.exit(3)
"""


PROMISED = """
import os, signal, sys, holdfast
pool = holdfast.open(sys.argv[1], durability="power")
later = holdfast.Set(pool, "later", when_durable="by_next_section")
later.add("settled")
pool.settle()
holdfast.Set(pool, "safe").add("said")
later.add("said as well")
os.kill(os.getpid(), signal.SIGKILL)
"""


class KillTest(Pooled):
    def run_until_killed(self, source, lines, durability="process"):
        self.pool.close()
        return self.last_said(source, lines, self.path, durability)

    def test_what_was_said_is_there_and_every_call_is_whole(self):
        self.said_is_there("process", kills=12)

    def test_in_mode_power_too(self):
        self.pool.close()
        self.path = self.folder / "power.hf"
        self.said_is_there("power", kills=6)

    def test_in_mode_power_a_change_is_promised_when_it_returns(self):
        path = self.folder / "power.hf"
        self.assertEqual(subprocess.run([sys.executable, "-c", PROMISED, path]).returncode, -signal.SIGKILL)
        with holdfast.open(path, durability="power") as pool:
            self.assertEqual(holdfast.Set(pool, "safe"), {"said"})
            self.assertEqual(holdfast.Set(pool, "later"), {"settled", "said as well"})

    def said_is_there(self, durability, kills):
        cut_short = set()
        for kill in range(kills):
            said = int(self.run_until_killed(COUNTER, self.random.randrange(1, 60), durability))
            self.pool = holdfast.open(self.path, durability=durability)
            with self.subTest(seed=SEED, kill=kill):
                counts = holdfast.Map(self.pool)
                n = int(counts["n"])
                self.assertIn(n, (said, said + 1))
                self.assertEqual(counts, {"n": str(n), **{f"copy {i}": str(n) for i in range(100)}})
                expected = {str(each) for each in range(1, said + 1)} - cut_short
                for kind in (holdfast.Vector, holdfast.Queue, holdfast.Stack, holdfast.Set):
                    elements = list(kind(self.pool))
                    batches = collections.Counter(e.split()[0] for e in elements if " " in e)
                    self.assertLessEqual(expected, set(batches))
                    self.assertEqual(set(batches.values()), {70}, kind)
                    if kind is holdfast.Vector:
                        self.assertLessEqual(expected, set(elements))
                cut_short.add(str(n))       # may have been, between its calls

    def test_the_three_lines_of_the_pages_survive_their_death(self):
        examples = examples_with("prices.hf")
        self.assertTrue(examples)
        suicide = "\nimport os, signal\nos.kill(os.getpid(), signal.SIGKILL)"
        for number, example in enumerate(examples):
            folder = self.folder / f"example {number}"
            folder.mkdir()
            for _ in range(2):
                killed = subprocess.run([sys.executable, "-c", example + suicide], cwd=folder)
                self.assertEqual(killed.returncode, -signal.SIGKILL)
                with holdfast.Map(folder / "prices.hf") as prices:
                    self.assertEqual(prices.pop("apple"), "1.20")
                    self.assertEqual(prices, {})

    def test_the_end_of_the_program_closes_its_pools(self):
        self.pool.close()
        ended = subprocess.run([sys.executable, "-c", ENDING, self.path], capture_output=True)
        self.assertEqual((ended.returncode, ended.stdout, ended.stderr), (3, b"closed\n", b""))
        self.pool = holdfast.open(self.path)
        self.assertEqual(holdfast.Map(self.pool), {"a": "b"})


NAME = os.fsdecode(b"caf\xe9")  # of a file
KEPT = 20


class Structures:
    """What each way to change has counted to, in a pool that is open."""

    def __init__(self, pool):
        self.pool = pool
        self.map, self.ordered, self.queue, self.vector = (kind(pool) for kind in (holdfast.Map, holdfast.SortedMap, holdfast.Queue, holdfast.Vector))
        self.steps = (self.set, self.add, self.edit, self.sort, self.update, self.together, self.lend)

    def set(self, n):
        self.map["set"] = {"n": n, NAME: [n, str(n)]}

    def add(self, n):
        self.map.add("add", 1)

    def edit(self, n):
        with self.map.edit("edit", []) as value:
            value.append(n)
            del value[:-KEPT]

    def sort(self, n):
        self.ordered[n] = NAME
        self.ordered.erase(None, n - KEPT + 1)

    def update(self, n):
        self.map.update({("update", NAME, i): n for i in range(5)})

    def together(self, n):
        with self.pool.transaction():
            self.map.add(("together", n % 3), 1)
            self.map["together"] = n
            self.queue.put(n)
            self.vector.append(n)
            if len(self.queue) > KEPT:
                self.queue.get()
                del self.vector[0]
            self.ordered["together", n] = n
            self.ordered.erase(("together", 0), ("together", n - KEPT + 1))

    def lend(self, n):
        before = self.map.get("lend")
        view = None if before is None else self.map.view("lend")
        self.map["lend"] = n.to_bytes(4, "big") * 1000
        if view is not None and view != before:
            os._exit(1)

    def found(self):
        """The counts, in the order of the steps; each as one value that is whole."""
        last = lambda values: values[-1] if len(values) else 0
        value, edited, lent = self.map.get("set", {"n": 0}), self.map.get("edit", []), self.map.get("lend", bytes(4))
        numbers = [key for key in self.ordered if isinstance(key, int)]
        line = list(self.queue)
        whole = [
            value == {"n": 0} or value == {"n": value["n"], NAME: [value["n"], str(value["n"])]},
            edited == list(range(last(edited) - len(edited) + 1, last(edited) + 1)),
            numbers == list(range(last(numbers) - len(numbers) + 1, last(numbers) + 1)) and len(numbers) <= KEPT + 1,
            len({self.map.get(("update", NAME, i)) for i in range(5)}) == 1,
            sum(self.map.get(("together", i), 0) for i in range(3)) == self.map.get("together", 0) == last(line) == last(list(self.vector)),
            line == list(self.vector) == [key[1] for key in self.ordered if isinstance(key, tuple)] == list(range(last(line) - len(line) + 1, last(line) + 1)),
            lent == lent[:4] * (len(lent) // 4),
        ]
        return whole, [value["n"], self.map.get("add", 0), last(edited), last(numbers), self.map.get(("update", NAME, 0), 0),
                       self.map.get("together", 0), int.from_bytes(lent[:4], "big")]


class ManyKillsTest(Pooled):
    """Children of fork(), which say in shared memory what they have done. HOLDFAST_KILLS is the number of kills; HOLDFAST_KILLS_S are the
    seconds after which it is enough."""

    def test_each_way_to_change(self):
        self.pool.close()
        kills, ends = int(os.environ.get("HOLDFAST_KILLS", 60)), time.monotonic() + float(os.environ.get("HOLDFAST_KILLS_S", 3600))
        counts = memoryview(mmap.mmap(-1, mmap.PAGESIZE)).cast("Q")
        killed = 0
        while killed < kills and time.monotonic() < ends:
            durability = "power" if killed % 8 == 7 else "process"
            path = self.folder / f"{durability}.hf"
            self.kill_one(path, durability, counts, wait_s=self.random.random() * 0.02)
            killed += 1
            with self.subTest(seed=SEED, kill=killed), holdfast.open(path, durability=durability) as pool:
                whole, found = Structures(pool).found()
                self.assertTrue(all(whole), whole)
                for step, (there, said) in enumerate(zip(found, counts)):
                    self.assertIn(there, (said, said + 1), f"step {step}")
                pool.verify()
        if killed > 60:
            print(f"{killed} kills", flush=True)

    def kill_one(self, path, durability, counts, wait_s):
        """Makes a child that goes on with the pool, and kills it so long after its first round of steps."""
        counts[-1] = 0
        child = os.fork()
        if child == 0:
            try:
                pool = holdfast.open(path, durability=durability)
                structures = Structures(pool)
                _, found = structures.found()
                counts[:len(found)] = memoryview(array.array("Q", found))
                while True:
                    for step, work in enumerate(structures.steps):
                        work(counts[step] + 1)
                        counts[step] += 1
                    counts[-1] = 1  # each was done once
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(1)
        while counts[-1] == 0:
            self.assertEqual(os.waitpid(child, os.WNOHANG), (0, 0), "the child has ended")
            time.sleep(0.001)
        time.sleep(wait_s)
        os.kill(child, signal.SIGKILL)
        self.assertEqual(os.waitpid(child, 0)[1], signal.SIGKILL)


if __name__ == "__main__":
    unittest.main()
