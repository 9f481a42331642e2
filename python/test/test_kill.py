# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs that are killed with SIGKILL at any time, and continued.

The parent reads what a child says it did, kills it, and looks: what was said is there, what was not
said is there whole or not at all.
"""
import collections
import os
import pathlib
import re
import signal
import subprocess
import sys
import unittest

import holdfast
from support import SEED, Pooled

SOURCE = pathlib.Path(os.environ.get("HOLDFAST_SOURCE", pathlib.Path(__file__).parents[2]))


def examples_with(name):
    """The pages' Python blocks that have this in them."""
    return [block for page in (SOURCE / "README.md", *sorted((SOURCE / "docs/guide").glob("python*.md")))
            for block in re.findall(r"```python\n(.*?)```", page.read_text(), re.S)
            if name in block]


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


if __name__ == "__main__":
    unittest.main()
