#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A search killed at random instants finds what one finds that nobody disturbs.

usage: kill_test.py PATH-OF-HOLDFAST-BFS [--engine mod] [--kills 12] [--seed 1]
"""
import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time

GRAPH = ["--nodes", "150000", "--edges", "1800000", "--seed", "4"]


def start(program, pool, engine, mode):
    return subprocess.Popen([program, pool, "--engine", engine, "--mode", mode, *GRAPH],
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def finish(process):
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, f"exit {process.returncode}: {err}"
    return json.loads(out.splitlines()[-1])


def search(program, engine, mode, kills, dice):
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        undisturbed = finish(start(program, os.path.join(folder, "whole"), engine, mode))
        pool = os.path.join(folder, "killed")
        hit = 0
        for _ in range(kills):
            process = start(program, pool, engine, mode)
            line = process.stdout.readline()
            assert line in ("begins\n", "continues\n"), process.stderr.read()
            time.sleep(dice.random() * undisturbed["seconds"] * 1.4 / kills)
            process.kill()
            process.communicate()
            hit += process.returncode != 0
        last = finish(start(program, pool, engine, mode))
        for fact in ("reached", "depth", "checksum"):
            assert last[fact] == undisturbed[fact], (fact, last, undisturbed)
        assert last["pushed"] < undisturbed["pushed"], "began anew"
        return hit


def main():
    parse = argparse.ArgumentParser()
    parse.add_argument("program")
    parse.add_argument("--engine", action="append")
    parse.add_argument("--kills", type=int, default=12)
    parse.add_argument("--seed", type=int, default=1)
    given = parse.parse_args()
    for engine in given.engine or ["mod", "pmdk"]:
        for mode in ("process", "pmem"):
            dice = random.Random(given.seed)
            hit = search(given.program, engine, mode, given.kills, dice)
            print(f"{engine} {mode}: {hit} of {given.kills} kills hit the search; seed {given.seed}")
            if hit < given.kills // 3:
                sys.exit("too few kills hit: nothing was shown")


if __name__ == "__main__":
    main()
