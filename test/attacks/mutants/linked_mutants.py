#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Broken twins of what makes another file beside a pool's, gives space of that back, or waits for its disk: its tests must reject every one.

usage: linked_mutants.py --source DIRECTORY --build DIRECTORY --work DIRECTORY [--of copying|…] [--only TEXT]

A mutant (mutants_NAME.json in the folder of its module, src/pool/mutants_copying.json for one) replaces one place of a file; a place that is not found exactly once is an error. The changed file is
compiled by the finished build's own command and linked before its libraries. The true code comes first: it must pass.
Other processes and names of files are nothing that the crash checker can play: hence not in a mutants.json.
"""
import argparse
import json
import os
import pathlib
import shlex
import subprocess
import sys

# By what is mutated: the test program, and its arguments.
GTEST = ("--gtest_fail_fast", "--gtest_brief")
TESTS = {"copying": ("engines_test", *GTEST, "--gtest_filter=Copying.*"),
         "cache": ("mod_cache_test", *GTEST),
         "compaction": ("mod_compaction_test", *GTEST, "--gtest_filter=*Compaction.*/process"),
         "trim": ("mod_compaction_test", *GTEST, "--gtest_filter=*Trim.*/process"),
         "swapping": ("power_simpo",),
         "history": ("simpo_test", *GTEST, "--gtest_filter=*History*/process"),
         "kills": ("power_undo",),
         "batches": ("engines_test", *GTEST, "--gtest_filter=Batches.*"),
         "relocated": ("relocation_test_auto", *GTEST, "--gtest_filter=*Sections.*/pmem"),
         "groups": ("simpo_test", *GTEST, "--gtest_filter=*WhatAGroupOfAnotherThread*/power*"),
         "replicas": ("simpo_test", *GTEST, "--gtest_filter=*SimpoReplica*/process"),
         "sharing": ("simpo_test", *GTEST, "--gtest_filter=*SimpoShare.*/process:-*AnyBytes*"),
         "transactions": ("mod_c_test",),
         "syncs": ("pool_test", *GTEST, "--gtest_filter=PowerPool.NoThreadIsToldOfASync*")}
COPIES = "20"  # of each kind: a copy that is torn now and then is torn in one of them
SECONDS_MAX = 120


class Build:
    def __init__(self, directory, program):
        self.directory = directory
        listed = subprocess.run(["ninja", "-C", directory, "-t", "commands", program], check=True,
                                capture_output=True, text=True).stdout
        self.commands = [line for line in listed.splitlines() if " -o " in line]

    def one(self, ends):
        found = [line for line in self.commands if ends in line]
        if len(found) != 1:
            sys.exit(f"{len(found)} commands with {ends}")
        return shlex.split(found[0].removeprefix(": && ").split(" && ")[0])

    def run(self, words, output, before=()):
        at = words.index("-o")
        words = [*words[:at], "-o", str(output), *map(str, before), *words[at + 2:]]
        subprocess.run(words, cwd=self.directory, check=True)


def passes(program, arguments):
    try:
        done = subprocess.run([program, *arguments], timeout=SECONDS_MAX, stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL, env={**os.environ, "HOLDFAST_COPIES": COPIES})
    except subprocess.TimeoutExpired:
        return True  # no verdict
    return done.returncode == 0


def survivors_of(what, given):
    """How many of its mutants the tests accept."""
    target, *arguments = TESTS[what]
    work = given.work.resolve() / what
    work.mkdir(parents=True, exist_ok=True)
    source = given.source.resolve()
    build = Build(given.build.resolve(), target)

    def linked(file, text):
        changed, made, program = work / pathlib.Path(file).name, work / "changed.o", work / target
        changed.write_text(text)
        words = [str(changed) if w.endswith("/" + file) else w for w in build.one(f"/{file}")]
        first = words.index("-MD")  # what it depends on is the build's to know
        build.run(words[:first] + words[first + 5:], made)
        build.run(build.one(f"-o bin/{target}"), program, [made])
        return program

    survivors, judged = 0, set()
    for mutant in json.loads(next(source.glob(f"src/*/mutants_{what}.json")).read_text()):
        text = (source / mutant["file"]).read_text()
        if text.count(mutant["old"]) != 1:
            sys.exit(f"{mutant['name']}: its place is there {text.count(mutant['old'])} times")
        if given.only not in mutant["name"]:
            continue
        if mutant["file"] not in judged and not passes(linked(mutant["file"], text), arguments):
            sys.exit(f"{what}: the true code does not pass")
        judged.add(mutant["file"])
        lives = passes(linked(mutant["file"], text.replace(mutant["old"], mutant["new"])), arguments)
        survivors += lives
        print(f"{'SURVIVES' if lives else 'rejected'}: {mutant['name']}", flush=True)
    return survivors


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--source", type=pathlib.Path, required=True)
    options.add_argument("--build", type=pathlib.Path, required=True)
    options.add_argument("--work", type=pathlib.Path, required=True)
    options.add_argument("--of", choices=TESTS, help="default: all of them")
    options.add_argument("--only", default="")
    given = options.parse_args()
    survivors = sum(survivors_of(what, given) for what in ([given.of] if given.of else TESTS))
    sys.exit(1 if survivors else 0)


main()
