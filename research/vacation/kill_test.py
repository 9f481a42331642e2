#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""An agency killed at random instants holds what exactly the answered requests make, or one more.

usage: kill_test.py PATH-OF-HOLDFAST-VACATION [--engine mod] [--engine undo/avl] [--kills 4] [--seed 1]

A pool is killed KILLS_PER_POOL times at most: all of its requests are repeated to judge each.
"""
import argparse
import json
import os
import random
import struct
import subprocess
import sys
import tempfile
import time

KILLS_PER_POOL = 8
SIZE = ["--relations", "2000", "--queries", "8"]
ENGINES = ["mod", "pmdk"] + [f"{engine}/{tree}" for engine in ("undo", "clobber", "redo", "auto", "justdo", "ido")
                             for tree in ("rb", "avl")]


class Agency:
    def __init__(self, program, folder, engine, mode):
        self.program, self.engine, self.mode = program, engine, mode
        self.pool = os.path.join(folder, "pool")
        self.journal = os.path.join(folder, "journal")

    def command(self, engine, *options):
        name, _, tree = engine.partition("/")
        return [self.program, self.pool, "--engine", name, "--tree", tree or "rb", "--mode", self.mode, *SIZE, *options]

    def answered(self):
        if not os.path.exists(self.journal):
            return 0
        with open(self.journal, "rb") as file:
            return struct.unpack("<Q", file.read(8))[0]

    def kill_after(self, seconds, first):
        process = subprocess.Popen(
            self.command(self.engine, "--first", str(first), "--requests", "100000000",
                         "--journal", self.journal),
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        line = process.stdout.readline()
        assert line == "opens\n", process.stderr.read()
        time.sleep(seconds)
        process.kill()
        process.communicate()
        assert process.returncode == -9, process.returncode

    def digest(self, engine, requests):
        """The totals of the books after 'requests' more; checks on the way that they balance."""
        done = subprocess.run(self.command(engine, "--requests", str(requests)),
                              capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout.splitlines()[-1])["digest"]


def check(program, engine, mode, kills, dice):
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        agency = Agency(program, folder, engine, mode)
        done = 0
        for kill in range(kills):
            # The first of them while the maps are filled.
            agency.kill_after(dice.random() * (0.01 if kill < 2 else 0.15), done)
            answered = max(agency.answered(), done)
            found = agency.digest(engine, 0)
            for done in (answered, answered + 1):
                if found == agency.digest("volatile", done):
                    break
            else:
                sys.exit(f"{engine} {mode}: not what {answered} answered requests make")
        return done


def main():
    parse = argparse.ArgumentParser()
    parse.add_argument("program")
    parse.add_argument("--engine", action="append")
    parse.add_argument("--kills", type=int, default=4, help="of each engine in each mode")
    parse.add_argument("--seed", type=int, default=1)
    given = parse.parse_args()
    total = 0
    for engine in given.engine or ENGINES:
        for mode in ("process", "pmem"):
            dice, done = random.Random(given.seed), 0
            for first in range(0, given.kills, KILLS_PER_POOL):
                done += check(given.program, engine, mode, min(KILLS_PER_POOL, given.kills - first), dice)
            total += given.kills
            print(f"{engine} {mode}: {done} requests, {given.kills} kills; seed {given.seed}", flush=True)
            if done < 100:
                sys.exit("too few requests: nothing was shown")
    print(f"all: {total} kills, 0 lost; seed {given.seed}")


if __name__ == "__main__":
    main()
