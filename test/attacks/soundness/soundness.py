#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random failure-atomic programs against the analysis.

Each program (compiler/test/oracle/Inputs/random_programs.py) is compiled for every build below, in
trace mode, linked with the oracle and explored. Every access of an uninterrupted run is judged byte
by byte. Then the section crashes at every store, log entry and allocation, with lines torn and
reordered, and is recovered. The pool, an image, must be as the same program leaves it when it is
compiled without the plugin. A failure names program and build, and the command that runs it alone.

Engine redo, and auto, take exceptions as well, and calls by address: each gets half as many programs more that throw, and half as many that
throw and call by address.

The mix of programs is judged as well: without true clobbers, candidates that refinement removes, loops
and the like the test shows nothing, and fails.
"""
import argparse
import collections
import concurrent.futures
import pathlib
import re
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[3]
ORACLE = ROOT / "compiler/test/oracle"
sys.path.insert(0, str(ORACLE / "Inputs"))
import random_programs  # noqa: E402

BUILDS = {
    "clobber-O0": ["-O0", "-mllvm", "-holdfast-engine=clobber"],
    "clobber-O1": ["-O1", "-mllvm", "-holdfast-engine=clobber"],
    "clobber-O2": ["-O2", "-mllvm", "-holdfast-engine=clobber"],
    "clobber-O3": ["-O3", "-march=native", "-mllvm", "-holdfast-engine=clobber"],
    "unrefined-O2": ["-O2", "-mllvm", "-holdfast-engine=clobber", "-mllvm", "-holdfast-refine=0"],
    "undo-O2": ["-O2", "-mllvm", "-holdfast-engine=undo"],
    "redo-O0": ["-O0", "-mllvm", "-holdfast-engine=redo"],
    "redo-O1": ["-O1", "-mllvm", "-holdfast-engine=redo"],
    "redo-O2": ["-O2", "-mllvm", "-holdfast-engine=redo"],
    "redo-O3": ["-O3", "-march=native", "-mllvm", "-holdfast-engine=redo"],
    "auto-O0": ["-O0", "-mllvm", "-holdfast-engine=auto"],
    "auto-O2": ["-O2", "-mllvm", "-holdfast-engine=auto"],
}
# The least share of programs that must have the property, as measured less a margin.
LEAST = {
    "true clobber": 0.85, "input read": 0.95, "entry that no input needed": 0.4,
    "candidate removed by refinement": 0.25, "fewer entries by refinement": 0.08, "loop": 0.3, "helper": 0.4,
    "recursion": 0.15, "memcpy": 0.3, "memmove": 0.15, "memset": 0.15, "switch": 0.1, "early return": 0.08,
    "pointer chasing": 0.4, "allocation": 0.25, "aliasing arguments": 0.4, "preserved input": 0.1,
    "bit-field": 0.2, "type change": 0.1, "pure call": 0.1}
LEAST_THROWING = {"throw": 0.5, "catch": 0.3, "left": 0.2}
LEAST_CALLING = {"call by address": 0.5, "virtual call": 0.5, "virtual call, local": 0.35, "virtual call, member": 0.35, "throw": 0.5,
                 "left": 0.2}
WRITERS = {"random": random_programs.Writer, "throwing": random_programs.ThrowingWriter, "calling": random_programs.CallingWriter}
COUNTS = {"programs": "random", "throwing": "throwing", "calling": "calling"} # option -> kind
RAN = re.compile(r"^((?:random|throwing|calling)_\d+_\d+) +(\d+) events +(\d+) logged +(\d+) clobbers +(\d+) inputs( left)?$")
COUNTED = re.compile(r"candidates (\d+) shadowed (\d+) unexposed (\d+)")


def run(command, processor_seconds=None, **options):
    """A program that takes more processor time than that is ended by SIGXCPU: what goes on with wrong values
    may go on forever."""
    limit = ["prlimit", f"--cpu={processor_seconds}:{processor_seconds + 1}"] if processor_seconds else []
    return subprocess.run([*limit, *map(str, command)], capture_output=True, text=True, check=False, **options)


def checked(command):
    done = run(command)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}")
    return done


class Soundness:
    def __init__(self, options):
        self.options = options
        self.work = pathlib.Path(options.work)
        self.work.mkdir(parents=True, exist_ok=True)
        self.plain = [options.clang, "-std=c++20", f"-I{ROOT}/include", f"-I{ORACLE}"]
        self.oracle = self.work / "oracle.o"
        self.has = collections.defaultdict(set)     # program -> properties
        self.entries = collections.defaultdict(dict)  # program -> build -> log entries
        self.failures, self.crashes, self.images = [], 0, 0

    def compile_oracle(self):
        checked([*self.plain, "-O2", "-c", ORACLE / "oracle.cpp", "-o", self.oracle])

    def linked(self, stem, build, options):
        """One source in one build: the program, and what the compiler said."""
        binary = f"{stem}.{build}"
        compiled = checked([*self.plain, "-w", *options, "-c", f"{stem}.cpp", "-o", f"{binary}.o"])
        checked([*self.plain, f"{binary}.o", self.oracle, "-o", binary])
        return binary, compiled.stderr

    def cleared(self, binary):
        for leftover in (binary, f"{binary}.o"):
            if not self.options.keep:
                pathlib.Path(leftover).unlink()

    def plain_images(self, stem):
        """The pool that each program leaves without an engine."""
        binary, _ = self.linked(stem, "plain", ["-O0", "-DHOLDFAST_UNINSTRUMENTED"])
        said = checked([binary, "--images"]).stdout.splitlines()
        self.cleared(binary)
        return said

    def batch(self, stem, build, plain):
        """Compiles and explores a source's programs in one build; returns what the oracle said, and which images differ."""
        plugin = [f"-fplugin={self.options.plugin}", f"-fpass-plugin={self.options.plugin}"]
        binary, account = self.linked(stem, build, [*plugin, *BUILDS[build], "-mllvm", "-holdfast-trace", "-mllvm", "-holdfast-account"])
        explored = run([binary, "--nested", self.options.nested], self.options.seconds)
        images = run([binary, "--images"], self.options.seconds).stdout.splitlines()
        self.cleared(binary)
        expected = plain.result()
        differ = [line.split()[0] for line in expected if line not in set(images)]
        return build, account, explored, len(expected), differ

    def learn(self, build, account, explored, images, differ):
        said = explored.stdout
        failed = {}
        for name, what in re.findall(r"^FAIL ((?:random|throwing|calling)_\w+): (.*)$", said, re.M):
            failed.setdefault(name, what)
        for name in differ:
            failed.setdefault(name, "another image than without an engine")
        self.images += images
        self.failures += [(name, build, what) for name, what in failed.items()]
        if explored.returncode != 0 and not failed:
            self.failures.append(("?", build, f"the oracle ended with {explored.returncode}: {said[-500:]}{explored.stderr[-500:]}"))
        for line in said.splitlines():
            if found := RAN.match(line):
                name, (events, logged, clobbers, inputs) = found[1], map(int, found.groups()[1:5])
                self.entries[name][build] = logged
                self.has[name].update(["left"] if found[6] else [])
                if build != "clobber-O2":
                    continue
                properties = {"true clobber": clobbers, "input read": inputs,
                              "entry that no input needed": logged > clobbers}
                self.has[name].update(p for p, there in properties.items() if there)
        if total := re.search(r"crashes=(\d+)", said):
            self.crashes += int(total[1])
        if build == "clobber-O2":
            self.learn_account(account)

    def learn_account(self, account):
        for line in account.splitlines():
            name, counts = re.search(r"random_\d+_\d+", line), COUNTED.search(line)
            if name and counts and (int(counts[2]) or int(counts[3])):
                self.has[name[0]].add("candidate removed by refinement")

    def write(self, kind, programs):
        """Sources of so many programs."""
        o = self.options
        for first in range(o.first, o.first + programs, o.batch):
            indices = list(range(first, min(first + o.batch, o.first + programs)))
            text, features = random_programs.write(o.seed, indices, WRITERS[kind])
            stem = self.work / f"{kind}_{o.seed}_{indices[0]}_{len(indices)}"
            stem.with_suffix(".cpp").write_text(text)
            for name, some in features.items():
                self.has[name].update(some)
            yield stem

    def all(self):
        o = self.options
        taken_back = [b for b in o.builds if b.startswith(("redo", "auto"))]
        work = [(stem, o.builds) for stem in self.write("random", o.programs)]
        if taken_back:
            work += [(stem, taken_back) for kind, programs in (("throwing", o.throwing), ("calling", o.calling)) for stem in self.write(kind, programs)]
        with concurrent.futures.ThreadPoolExecutor(o.jobs) as pool:
            plain = {stem: pool.submit(self.plain_images, stem) for stem, _ in work} # first: all others wait for them
            jobs = [pool.submit(self.batch, stem, build, plain[stem]) for stem, builds in work for build in builds]
            for job in concurrent.futures.as_completed(jobs):
                self.learn(*job.result())
                if o.stop_at_first and self.failures:
                    pool.shutdown(cancel_futures=True)
                    break
        for name, entries in self.entries.items():
            if entries.get("clobber-O2", 0) < entries.get("unrefined-O2", 0):
                self.has[name].add("fewer entries by refinement")

    def degenerate(self, kind, least):
        """Prints how many programs of a kind have each property; the properties that too few have."""
        programs = [properties for name, properties in self.has.items() if name.startswith(kind)]
        all_builds = set(self.options.builds) == set(BUILDS)
        low = []
        for what, share_min in least.items():
            share = sum(what in properties for properties in programs) / max(len(programs), 1)
            if len(programs) >= 50 and all_builds and share < share_min:
                low.append(what)
            print(f"  {what:28} {share:6.2f} {share_min:6.2f}{'  DEGENERATE' if what in low else ''}")
        return low

    def report(self):
        o = self.options
        for name, build, what in sorted(self.failures):
            kind, seed, index = name.split("_") if "_" in name else ("random", o.seed, o.first)
            counts = " ".join(f"--{option} {int(kind == its)}" for option, its in COUNTS.items())
            print(f"FAIL {name} {build}: {what}\n     alone: {sys.argv[0]} --plugin {o.plugin} --work {o.work} --seed {seed} "
                  f"--first {index} {counts} --builds {build} --keep")
        print(f"{'share of programs':36} {'least':>6}")
        degenerate = self.degenerate("random", LEAST) + self.degenerate("throwing", LEAST_THROWING) + self.degenerate("calling", LEAST_CALLING)
        print(f"soundness: seed={o.seed} programs={len(self.has)} builds={len(o.builds)} crashes={self.crashes} "
              f"images={self.images} failures={len(self.failures)} degenerate={len(degenerate)}")
        return 1 if self.failures or degenerate else 0


def parse():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--plugin", required=True)
    parser.add_argument("--clang", default="clang++-19")
    parser.add_argument("--work", required=True)
    parser.add_argument("--programs", type=int, default=100)
    parser.add_argument("--throwing", type=int, help="programs that throw; half as many, if not told")
    parser.add_argument("--calling", type=int, help="programs that throw and call by address; half as many, if not told")
    parser.add_argument("--first", type=int, default=0, help="index of the first program")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--builds", nargs="+", choices=BUILDS, default=list(BUILDS))
    parser.add_argument("--batch", type=int, default=50, help="programs a source file")
    parser.add_argument("--nested", type=int, default=3, help="crashes tried of each re-execution")
    parser.add_argument("--seconds", type=int, default=300,
                        help="processor time of one source's programs, in one build; the true ones take a few")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--keep", action="store_true", help="keep objects and programs")
    parser.add_argument("--stop-at-first", action="store_true")
    options = parser.parse_args()
    if options.throwing is None:
        options.throwing = options.programs // 2
    if options.calling is None:
        options.calling = options.programs // 2
    return options


def main():
    begin = time.monotonic()
    test = Soundness(parse())
    test.compile_oracle()
    test.all()
    result = test.report()
    print(f"{time.monotonic() - begin:.1f} s")
    return result


if __name__ == "__main__":
    sys.exit(main())
