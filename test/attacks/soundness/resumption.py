#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random programs with locks against the resumption of engines justdo and ido.

Each program (compiler/test/oracle/Inputs/random_programs.py) is compiled for every build below, in
trace mode, linked with the oracle of engine justdo and explored: it is stopped at every event,
resumes in what survives, and is stopped again. The pool must be as after a run without stops, and
as the same program leaves it when it is compiled without the plugin. In the builds 'unmarked' the
compiler finds the sections itself.

It also says how much code and time the engine takes: its objects' text and the compiler's seconds beside those of the same
source without the plugin, at the same level, not traced.
"""
import argparse
import concurrent.futures
import pathlib
import re
import resource
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[3]
ORACLE = ROOT / "compiler/test/oracle"
sys.path.insert(0, str(ORACLE / "Inputs"))
import random_programs  # noqa: E402

BUILDS = {"O0": ["-O0"], "O1": ["-O1"], "O2": ["-O2"], "O3": ["-O3", "-march=native"],
          "unmarked-O0": ["-O0"], "unmarked-O2": ["-O2"],
          "ido-O0": ["-O0"], "ido-O2": ["-O2"]}
UNMARKED = ["-DLOCKS_UNMARKED", "-mllvm", "-holdfast-between-locks"]
WRITER = random_programs.LockingWriter
LEAST = {"lock": 0.4, "lock: guard": 0.05, "lock: several": 0.05, "lock: tried": 0.05, "lock: hand over hand": 0.05,
         "lock: shared": 0.05, "lock: asked": 0.05, "loop": 0.2, "allocation": 0.15, "helper": 0.15, "recursion": 0.05}


def checked(command, **options):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, check=False, **options)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, command))}\n{done.stdout[-3000:]}{done.stderr[-3000:]}")
    return done.stdout


class Resumption:
    def __init__(self, options):
        self.options = options
        self.work = pathlib.Path(options.work)
        self.work.mkdir(parents=True, exist_ok=True)
        self.clang = [options.clang, "-std=c++20", f"-I{ROOT}/include", f"-I{ORACLE}", "-w"]
        self.plugin = [f"-fplugin={options.plugin}", f"-fpass-plugin={options.plugin}"]
        self.oracle = self.work / "oracle.o"
        self.failures, self.crashes, self.explored, self.features = [], 0, 0, {}

    def sources(self):
        """Stems of sources, the unmarked ones without programs that preserve."""
        o = self.options
        indices = list(range(o.first, o.first + o.programs))
        for at in range(0, len(indices), o.batch):
            some = indices[at:at + o.batch]
            text, features = random_programs.write(o.seed, some, WRITER)
            self.features.update(features)
            marked = self.work / f"locking_{o.seed}_{some[0]}"
            marked.with_suffix(".cpp").write_text(text)
            plain = [i for i in some if "vlog_preserve" not in random_programs.write(o.seed, [i], WRITER)[0]]
            unmarked = self.work / f"unmarked_{o.seed}_{some[0]}"
            unmarked.with_suffix(".cpp").write_text(random_programs.write(o.seed, plain, WRITER)[0])
            yield marked, unmarked

    def program(self, stem, build, flags):
        """Compiles and links; returns the program."""
        object_, program = f"{stem}.{build}.o", f"{stem}.{build}"
        checked([*self.clang, *flags, "-c", f"{stem}.cpp", "-o", object_])
        checked([self.options.clang, object_, self.oracle, "-o", program, "-lstdc++"])
        pathlib.Path(object_).unlink()
        return program

    def explore(self, marked, unmarked, build):
        stem = unmarked if build.startswith("unmarked") else marked
        name = "ido" if build.startswith("ido") else "justdo"
        engine = [*self.plugin, "-gline-tables-only", "-mllvm", f"-holdfast-engine={name}", "-mllvm", "-holdfast-trace"]
        program = self.program(stem, build, [*BUILDS[build], *engine, *(UNMARKED if stem is unmarked else [])])
        # At either level: what nobody can reach any more an optimiser need not store.
        plain = [self.program(stem, f"{build}-plain{level}", [level, "-DHOLDFAST_UNINSTRUMENTED"])
                 for level in {"-O0", BUILDS[build][0]}]
        done = subprocess.run([program, "--nested", str(self.options.nested)], capture_output=True, text=True, timeout=1200)
        failed = dict(reversed(re.findall(r"^FAIL (\w+): (.*)$", done.stdout, re.M)))
        image, *others = [set(checked([p, "--images"]).splitlines()) for p in (program, *plain)]
        failed.update({line.split()[0]: "another image than without an engine" for line in image.difference(*others)})
        total = re.search(r"scenarios=(\d+) crashes=(\d+)", done.stdout)
        if total is None or (done.returncode != 0 and not failed):
            failed["?"] = f"the oracle ended with {done.returncode}: {done.stdout[-300:]}{done.stderr[-300:]}"
        for made in (program, *plain):
            pathlib.Path(made).unlink()
        return build, failed, int(total[1]) if total else 0, int(total[2]) if total else 0

    def grown(self, stem):
        """(bytes of text, processor seconds) of a source: without the plugin, and with engine justdo."""
        found = []
        for flags in (["-DHOLDFAST_UNINSTRUMENTED"], [*self.plugin, "-mllvm", "-holdfast-engine=justdo"]):
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            checked([*self.clang, "-O2", *flags, "-c", f"{stem}.cpp", "-o", f"{stem}.grown.o"])
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            size = checked(["size", f"{stem}.grown.o"]).splitlines()[1].split()
            found.append((int(size[0]), after.ru_utime - before.ru_utime))
        return found

    def run(self):
        o = self.options
        checked([*self.clang, "-O2", "-c", ORACLE / "justdo_oracle.cpp", "-o", self.oracle])
        sources = list(self.sources())
        with concurrent.futures.ThreadPoolExecutor(o.jobs) as pool:
            jobs = [pool.submit(self.explore, *stems, build) for stems in sources for build in o.builds]
            for job in concurrent.futures.as_completed(jobs):
                build, failed, explored, crashes = job.result()
                self.failures += [(name, build, what) for name, what in failed.items()]
                self.explored += explored
                self.crashes += crashes
                print(f"{build}: explored={self.explored} crashes={self.crashes} failures={len(self.failures)}", file=sys.stderr)
        for name, build, what in sorted(self.failures):
            print(f"FAIL {name} {build}: {what}")
        low = []
        for what, least in LEAST.items():
            share = sum(what in some for some in self.features.values()) / max(len(self.features), 1)
            low += [what] if share < least and len(self.features) >= 50 else []
            print(f"  {what:24} {share:6.2f} {least:6.2f}{'  DEGENERATE' if what in low else ''}")
        if o.growth:
            (plain, plain_s), (ours, ours_s) = self.grown(sources[0][0])
            print(f"growth at -O2: text {plain} to {ours} bytes ({ours / plain:.2f}), compiler {plain_s:.2f} to {ours_s:.2f} s "
                  f"({ours_s / plain_s:.2f})")
        print(f"resumption: seed={o.seed} programs={len(self.features)} builds={len(o.builds)} explored={self.explored} "
              f"crashes={self.crashes} failures={len(self.failures)} degenerate={len(low)}")
        return 1 if self.failures or low else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--plugin", required=True)
    parser.add_argument("--clang", default="clang++-19")
    parser.add_argument("--work", required=True)
    parser.add_argument("--programs", type=int, default=40)
    parser.add_argument("--first", type=int, default=0, help="index of the first program")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--builds", nargs="+", choices=BUILDS, default=list(BUILDS))
    parser.add_argument("--batch", type=int, default=50, help="programs a source file")
    parser.add_argument("--nested", type=int, default=3, help="crashes tried of each resumption")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--growth", action="store_true", help="says how much code and time the engine takes")
    begin = time.monotonic()
    result = Resumption(parser.parse_args()).run()
    print(f"{time.monotonic() - begin:.1f} s")
    return result


if __name__ == "__main__":
    sys.exit(main())
