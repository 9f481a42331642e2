#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A refinement that is killed again and again is whole each time, and ends with the mesh that nothing has disturbed.

usage: kill_test.py PATH-OF-HOLDFAST-YADA [--engine undo]... [--kills 4] [--points 1000] [--seed 1]

After a kill the mesh has all elements that were answered for, and one more at most. It is the one that engine none makes in
as many steps. Every third kill lands inside a section for certain (hf::crash_point), the others anywhere.
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

ENGINES = ["undo", "clobber", "redo", "auto", "justdo", "ido"]
MODES = ["process", "pmem"]


class Mesh:
    def __init__(self, program, folder, points):
        self.program, self.points = program, points
        self.pool = os.path.join(folder, "pool")
        self.other = os.path.join(folder, "other")
        self.journal = os.path.join(folder, "journal")
        self.known = {}

    def command(self, pool, engine, mode, *options):
        return [self.program, pool, "--engine", engine, "--mode", mode, "--points", str(self.points), "--angle", "30",
                *map(str, options)]

    def answered(self):
        with open(self.journal, "rb") as file:
            return struct.unpack("<Q", file.read(8))[0]

    def kill(self, engine, mode, seconds):
        """Kills a run after so many seconds, or inside a section (None). False: it had ended before."""
        environment = dict(os.environ)
        if seconds is None:
            environment["HOLDFAST_CRASH_AT"] = "joined"
        process = subprocess.Popen(self.command(self.pool, engine, mode, "--journal", self.journal), text=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment)
        line = process.stdout.readline()
        assert line == "opens\n", process.stderr.read()
        if seconds is not None:
            time.sleep(seconds)
            process.kill()
        _, said = process.communicate(timeout=120)
        assert process.returncode in (0, -9), said
        return process.returncode == -9

    def run(self, pool, engine, mode, *options):
        """Checks the mesh, too: the program fails when an invariant is broken."""
        done = subprocess.run(self.command(pool, engine, mode, *options), capture_output=True, text=True, timeout=120,
                              check=False)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout.splitlines()[-1])

    def undisturbed(self, *options):
        """The digest of engine none's mesh, made anew."""
        if options not in self.known:
            if os.path.exists(self.other):
                os.remove(self.other)
            self.known[options] = self.run(self.other, "none", "process", *options)["after"]["digest"]
        return self.known[options]

    def start_again(self):
        for path in (self.pool, self.journal):
            if os.path.exists(path):
                os.remove(path)


def check(mesh, engine, mode, kills, dice):
    """Returns how many steps the refinements took together."""
    steps = landed = 0
    whole = mesh.undisturbed()
    while landed < kills:
        mesh.start_again()
        seconds = mesh.run(mesh.pool, engine, mode)["seconds"]
        mesh.start_again()
        known = 0
        while landed < kills and mesh.kill(engine, mode, None if landed % 3 == 0 else dice.random() * seconds):
            landed += 1
            found = mesh.run(mesh.pool, engine, mode, "--steps", 0)["after"]
            answered = max(mesh.answered(), known)
            known = found["processed"]
            assert known - answered in (0, 1), (found, answered)
            assert found["digest"] == mesh.undisturbed("--steps", known), found
        end = mesh.run(mesh.pool, engine, mode)["after"]
        assert end["digest"] == whole and end["bad"] == 0, end
        steps += end["processed"]
    return steps


def refuses_an_angle_that_is_no_number(mesh):
    done = subprocess.run([mesh.program, mesh.pool, "--points", "3", "--angle", "nan"], capture_output=True, text=True,
                          timeout=120, check=False)
    if done.returncode == 0 or "nan is not a number" not in done.stderr or os.path.exists(mesh.pool):
        sys.exit(f"--angle nan: {done.stderr or 'accepted'}")


def main():
    parse = argparse.ArgumentParser()
    parse.add_argument("program")
    parse.add_argument("--engine", action="append")
    parse.add_argument("--kills", type=int, default=4, help="of each engine in each mode")
    parse.add_argument("--points", type=int, default=1000)
    parse.add_argument("--seed", type=int, default=1)
    given = parse.parse_args()
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        mesh = Mesh(given.program, folder, given.points)
        refuses_an_angle_that_is_no_number(mesh)
        total = 0
        for engine in given.engine or ENGINES:
            for mode in MODES:
                try:
                    steps = check(mesh, engine, mode, given.kills, random.Random(given.seed))
                except AssertionError as wrong:
                    sys.exit(f"{engine} {mode}, seed {given.seed}: {wrong}")
                total += given.kills
                print(f"{engine} {mode}: {given.kills} kills, refined in {steps} steps; seed {given.seed}", flush=True)
        print(f"all: {total} kills, 0 lost; seed {given.seed}")


if __name__ == "__main__":
    main()
