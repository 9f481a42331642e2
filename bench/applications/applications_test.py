#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The applications' benchmarks run on every engine, with the same result, and mod with one fence.

usage: applications_test.py PATH-OF-HOLDFAST
"""
import json
import subprocess
import sys
import unittest

HOLDFAST = "holdfast"
SMALL = {"bfs": ["--nodes", "3000", "--edges", "30000"],
         "vacation": ["--ops", "3000", "--relations", "500"]}
RESULT = {"bfs": "checksum", "vacation": "digest"}


def bench(*arguments):
    done = subprocess.run([HOLDFAST, "bench", *arguments], capture_output=True, text=True,
                          timeout=120, check=False)
    assert done.returncode == 0, f"{arguments}: {done.stderr}"
    return done.stdout


def run(name, engine, mode):
    return json.loads(bench(name, "--engine", engine, "--mode", mode, "--json", "--no-prefault",
                            *SMALL[name]))


class Applications(unittest.TestCase):
    def test_engines_agree(self):
        for name in SMALL:
            results = set()
            for engine in ("mod", "pmdk", "volatile"):
                for mode in ("process", "pmem"):
                    found = run(name, engine, mode)
                    self.assertEqual((found["name"], found["engine"], found["mode"]),
                                     (name, engine, mode))
                    self.assertGreater(found["ops_per_second"], 0)
                    results.add(found[RESULT[name]])
            self.assertEqual(len(results), 1, name)

    def test_mod_has_one_fence_for_a_section(self):
        self.assertAlmostEqual(run("bfs", "mod", "pmem")["fences_per_op"], 1, delta=0.01)
        # Some requests change nothing.
        fences = run("vacation", "mod", "pmem")["fences_per_op"]
        self.assertTrue(0.8 < fences <= 1.001, fences)

    def test_compare_takes_them(self):
        for name in SMALL:
            found = json.loads(bench("compare", name, "--rounds", "1", "--engines", "pmdk,mod",
                                     "--mode", "pmem", "--json", "--no-prefault", *SMALL[name]))
            self.assertEqual([each["engine"] for each in found["runs"]], ["pmdk", "mod"])
        table = bench("compare", "vacation", "--rounds", "1", "--no-prefault", *SMALL["vacation"])
        self.assertIn("4 maps", table)


if __name__ == "__main__":
    HOLDFAST = sys.argv.pop(1)
    unittest.main()
