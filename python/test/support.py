# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the tests share: a fresh pool for each, and the comparison with a built-in type."""
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

import holdfast

SOURCE = pathlib.Path(os.environ.get("HOLDFAST_SOURCE", pathlib.Path(__file__).parents[2]))
SEED = int(os.environ.get("HOLDFAST_SEED", "20200316"))
# Sizes around those where structures change shape, and where an element leaves the stack's buffer.
LENGTHS = (0, 1, 7, 8, 31, 64, 247, 248, 4000)


def random_element(random_source, few):
    """A str or bytes; one of about 'few' different ones, so that they meet again."""
    number = random_source.randrange(few)
    length = LENGTHS[number % len(LENGTHS)]
    text = (f"{number}é\0" * (length // 2 + 1))[:length]
    return text.encode() if number % 3 == 0 else text


def examples_with(name):
    """The pages' Python blocks that have this in them."""
    return [block for page in (SOURCE / "README.md", *sorted((SOURCE / "docs/guide").glob("python*.md")))
            for block in re.findall(r"```python\n(.*?)```", page.read_text(), re.S)
            if name in block]


class Pooled(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="holdfast-python-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.path = self.folder / "test.hf"
        self.pool = holdfast.open(self.path)
        self.addCleanup(lambda: self.pool.close())
        self.random = random.Random(SEED)

    def reopen(self, kind, *arguments):
        self.pool.close()
        self.pool = holdfast.open(self.path)
        return kind(self.pool, *arguments)

    def last_said(self, source, lines, *arguments):
        """The last line that the program wrote, stripped; it is killed once it wrote 'lines' of them."""
        program = subprocess.Popen([sys.executable, "-c", source, *map(str, arguments)], stdout=subprocess.PIPE, text=True)
        last = ""
        for _ in range(lines):
            last = program.stdout.readline() or last
        os.kill(program.pid, signal.SIGKILL)
        last = ([last] + program.stdout.readlines())[-1]
        program.stdout.close()
        self.assertEqual(program.wait(), -signal.SIGKILL)
        return last.strip()

    def outcome(self, call, on):
        """What the call returns, or the type of what it raises."""
        try:
            return call(on)
        except (KeyError, IndexError, ValueError, TypeError) as error:
            return type(error)

    def same(self, call, ours, model):
        """The call does to 'ours' what it does to the built-in type."""
        found, expected = self.outcome(call, ours), self.outcome(call, model)
        self.assertEqual(found, expected, f"seed {SEED}")
        self.assertIs(type(found), type(expected), f"seed {SEED}")
