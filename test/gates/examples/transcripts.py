#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the README and the guide show in a terminal is what the examples print.

usage: transcripts.py BIN

Each step runs a program in an empty folder, perhaps killed at a named place, and compares its output.
"""
import os
import pathlib
import signal
import subprocess
import sys
import tempfile

# (program and arguments, crash point or None, output)
STEPS = [
    ("example_numbers", None, "1 numbers, sum 1\n"),
    ("example_numbers", "half-pushed", ""),
    ("example_numbers", None, "2 numbers, sum 3\n"),
    ("example_numbers_clobber completed.hf", None, "1 numbers, sum 1\n"),
    ("example_numbers_clobber completed.hf", "half-pushed", ""),
    ("example_numbers_clobber completed.hf", None, "3 numbers, sum 6\n"),
    ("example_bank create bank.hf 10 1000", None, "10 accounts, 10000 cents\n"),
    ("example_bank transfer bank.hf 0 1 250", "between-debit-and-credit", ""),
    ("example_bank total bank.hf", None, "10 accounts, 10000 cents; 1 transfer was completed\n"),
    ("example_bank_undo create undo.hf 10 1000", None, "10 accounts, 10000 cents\n"),
    ("example_bank_undo transfer undo.hf 0 1 250", "between-debit-and-credit", ""),
    ("example_bank_undo total undo.hf", None, "10 accounts, 10000 cents; 1 transfer was rolled back\n"),
    ("example_beside", None, "now 1250 in 2 entries, then 1000 in 1\nnow 1250, then 960\n"),
    ("example_counter", None, "5\n"),
    ("example_counter", "half-added", ""),
    ("example_counter", None, "completed what was cut short\n15\n"),
    ("example_simpo_structures", None, "2 urgent, 1 done\n"),
    ("example_simpo_structures", None, "4 urgent, 2 done\n"),
    ("example_simpo_once", "fourth-day", ""),
    ("example_simpo_once", None, "took 120\ntook 120\ntook 120\nspent 98, 492 are left\n"),
    ("example_simpo_readings counted.hf", None, "4000 readings\n"),
    ("example_simpo_share shared.hf 2", None, "terminal 2: all paid\n"),
    ("example_simpo_view counted.hf", None, "4001 readings\n4001 readings\n"),
    ("example_simpo_swap", None, "365 days, most in files, 1 on day 1\n"),
    ("example_simpo_swap", None, "365 days, most in files, 2 on day 1\n"),
    ("example_simpo_history past.hf", None, "call 2001: clear\nbefore it: 2000 readings\n"),
    ("example_simpo_history past.hf", None, "call 4002: clear\nbefore it: 2000 readings\n"),
    *[("example_simpo_table", None, "now 3 visits of 7 days\n1 object\n")] * 2,
    ("example_readings", None, "2 readings, total 30\n"),
    ("example_readings", "half-added", ""),
    ("example_readings", None, "4 readings, total 60\n"),
    ("example_jobs", None, "2 jobs, linked both ways\n"),
    ("example_jobs", "half-pushed", ""),
    ("example_jobs", None, "4 jobs, linked both ways\n"),
    ("example_containers", None, "3 articles, 5 pieces\n"),
    ("example_containers", "half-added", ""),
    ("example_containers", None, "recovered 1 section\n7 articles, 11 pieces\n"),
    ("example_containers_undo undo_inventory.hf", None, "3 articles, 5 pieces\n"),
    ("example_containers_undo undo_inventory.hf", "half-added", ""),
    ("example_containers_undo undo_inventory.hf", None,
     "recovered 1 section\n6 articles, 10 pieces\n"),
    ("example_mod_prices", None, "day 1: tea 3.25, 1 prices known\n"),
    ("example_mod_prices", "half-written", ""),
    ("example_mod_prices", None, "day 2: tea 3.50, 2 prices known\n"),
    *[("example_mod_tour", None, "Ada is 36, Bob is not known\n20 and 22 degrees\nthen 2, now 3\n"
       "a conflict, as it must be\nmoved\n2 ages are known\n")] * 2,
    ("example_notebook notes.hf write milk", None, ""),
    ("example_notebook notes.hf write bread", "half-written", ""),
    ("example_notebook notes.hf tear-out", "half-written", ""),     # in the recovery, that is
    ("example_notebook notes.hf write-long letter", "half-adopted", ""),
    ("example_notebook notes.hf list", None, "letter\nbread\nmilk\n3 notes\n"),
    ("example_notebook notes.hf tear-out", None, ""),
    ("example_notebook notes.hf list", None, "bread\nmilk\n2 notes\n"),
]


def main():
    programs = pathlib.Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory(prefix="holdfast-examples-") as folder:
        for command, crash, wanted in STEPS:
            name, *arguments = command.split()
            where = {"HOLDFAST_CRASH_AT": crash} if crash else {}
            ran = subprocess.run([programs / name, *arguments], cwd=folder, capture_output=True,
                                 text=True, env={**os.environ, **where}, timeout=30)
            ended = -signal.SIGKILL if crash else 0
            if (ran.returncode, ran.stdout) != (ended, wanted):
                print(f"$ {command}   (crash at: {crash})\nexpected {ended}: {wanted!r}\n"
                      f"found {ran.returncode}: {ran.stdout!r} {ran.stderr!r}")
                return 1
            print(f"$ {command}\n{'Killed' if crash else ran.stdout.rstrip()}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
