#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Unsound twins of the compiler's analysis: each must be rejected.

A mutant (analysis_mutants.json) brings one known unsound rule back, by replacing text of one or two
sources; text that is not found exactly once is an error, so that the list cannot rot. It is about engine
clobber, or the one it names. Its objects are
compiled by the build's own commands and the plugin is linked from them and the others as they are. The
adversarial functions (compiler/test/oracle/adversarial.cpp) judge first, at several levels, then 100
random programs; --all runs both, always, and tells who rejects what. The true plugin comes first: with
it nothing may fail.
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
ORACLE = ROOT / "compiler/test/oracle"
LEVELS = ["-O2", "-O1", "-O0"]
RANDOM_BUILDS = {"clobber": ["clobber-O2", "clobber-O1"], "redo": ["redo-O2", "redo-O3", "redo-O0"]}
# A mutated source runs for a moment; what it includes, LLVM's headers, is parsed once for all.
FLAGS = ["-O0", "-g0", "-w"]
LLD = shutil.which("ld.lld-19")


def run(command, **options):
    return subprocess.run([str(c) for c in command], capture_output=True, text=True, check=False, **options)


def checked(command, **options):
    done = run(command, **options)
    if done.returncode != 0:
        raise RuntimeError(f"{shlex.join(map(str, command))}\n{done.stdout}{done.stderr}")
    return done.stdout


def mutated(file, edits):
    text = (ROOT / file).read_text()
    for old, new in edits:
        if text.count(old) != 1:
            raise RuntimeError(f"{file}: found {text.count(old)} times, not once:\n{old}")
        text = text.replace(old, new)
    return text


class Judge:
    def __init__(self, options):
        self.options = options
        self.build = pathlib.Path(options.build).resolve()
        self.work = pathlib.Path(options.work).resolve()
        self.work.mkdir(parents=True, exist_ok=True)
        self.plugin = self.build / "lib/libholdfast-plugin.so"
        commands = json.loads((self.build / "compile_commands.json").read_text())
        self.compiles = {c["file"]: c for c in commands}
        link = checked(["ninja", "-C", self.build, "-t", "commands", "-s", "lib/libholdfast-plugin.so"]).splitlines()[-1]
        self.link = re.sub(r"^.*?&& | && :$", "", link)
        self.cache = ["ccache"] if shutil.which("ccache") and "ccache" not in self.link else []
        self.plain = [options.clang, "-std=c++20", f"-I{ROOT}/include", f"-I{ORACLE}"]
        self.precompiled, self.lock, self.true_oracle = {}, threading.Lock(), None

    def compile(self, file, edits, directory):
        """The mutated object, and the build's own that it stands for."""
        command = self.compiles[str(ROOT / file)]
        source = directory / pathlib.Path(file).name
        text = mutated(file, edits)
        if not source.exists() or source.read_text() != text:
            source.write_text(text)
        words = shlex.split(command["command"])
        original = words[words.index("-o") + 1]
        with self.lock:
            if file not in self.precompiled:
                self.precompiled[file] = self.precompile(file, words)
        object_ = directory / (source.name + ".o")
        words[words.index("-o") + 1] = str(object_)
        words[words.index("-c") + 1] = str(source)
        checked([*self.cache, *words, *FLAGS, "-include-pch", self.precompiled[file]], cwd=self.build,
                env=os.environ | {"CCACHE_SLOPPINESS": "pch_defines,time_macros"})
        return original, str(object_)

    def precompile(self, file, words):
        header = self.work / (re.sub(r"\W", "-", file) + ".hpp")
        header.write_text("".join(re.findall(r"^#include .*\n", (ROOT / file).read_text(), re.M)))
        flags = words[:words.index("-o")]
        checked([*flags, *FLAGS, "-fpch-instantiate-templates", "-x", "c++-header", header, "-o",
                 f"{header}.pch"], cwd=self.build)
        return f"{header}.pch"

    def make_plugin(self, mutant, directory):
        parts = [mutant, *mutant.get("more", [])]
        objects = dict(self.compile(p["file"], p["edits"], directory) for p in parts
                       if p["file"].startswith(("compiler/analysis", "compiler/transform")))
        if not objects:
            return self.plugin
        plugin = directory / "libholdfast-plugin.so"
        words = [objects.get(w, w) for w in shlex.split(self.link)]
        words[words.index("-o") + 1] = str(plugin)
        checked([*words, *([f"--ld-path={LLD}"] if LLD else [])], cwd=self.build)
        return plugin

    def make_oracle(self, mutant, directory):
        own = mutant["file"].endswith("oracle.cpp")
        if self.true_oracle and not own:
            return self.true_oracle
        text = mutated(mutant["file"], mutant["edits"]) if own else (ORACLE / "oracle.cpp").read_text()
        (directory / "oracle.cpp").write_text(text)
        checked([*self.plain, "-O2", "-c", directory / "oracle.cpp", "-o", directory / "oracle.o"])
        return directory / "oracle.o"

    def adversarial(self, plugin, oracle, directory, engine):
        """Functions that fail, with the level."""
        failed = {}
        for level in LEVELS:
            program = directory / f"adversarial-{engine}{level}"
            built = run([*self.plain, level, f"-fplugin={plugin}", f"-fpass-plugin={plugin}", "-mllvm", "-holdfast-trace",
                         "-mllvm", f"-holdfast-engine={engine}", ORACLE / "adversarial.cpp", oracle, "-o", program])
            if built.returncode != 0:
                raise RuntimeError(f"the mutant does not compile its tests:\n{built.stderr[-2000:]}")
            said = run([program, "--nested", "2"], timeout=300).stdout
            for name in re.findall(r"^FAIL (\w+):", said, re.M):
                failed.setdefault(name, level)
            if failed and not self.options.all:
                break
        return failed

    def random(self, plugin, directory, engine):
        done = run([sys.executable, HERE / "soundness.py", "--plugin", plugin, "--clang", self.options.clang,
                    "--work", directory / "random", "--seed", self.options.seed, "--programs", self.options.programs,
                    "--builds", *RANDOM_BUILDS[engine], "--jobs", 1, *([] if self.options.all else ["--stop-at-first"])])
        return len(set(re.findall(r"^FAIL (\w+)", done.stdout, re.M)))

    def judge(self, number, mutant):
        directory = self.work / f"{number:02}"
        directory.mkdir(exist_ok=True)
        plugin = self.make_plugin(mutant, directory)
        oracle = self.make_oracle(mutant, directory)
        engine = mutant.get("engine", "clobber")
        functions = self.adversarial(plugin, oracle, directory, engine)
        programs = 0
        if plugin != self.plugin and (self.options.all or not functions):
            programs = self.random(plugin, directory, engine)
        return mutant, functions, programs

    def check_true_plugin(self):
        directory = self.work / "true"
        directory.mkdir(exist_ok=True)
        oracle = self.true_oracle = self.make_oracle({"file": "", "edits": []}, directory)
        for engine in RANDOM_BUILDS:
            if failed := self.adversarial(self.plugin, oracle, directory, engine):
                raise RuntimeError(f"the true plugin fails {failed} with engine {engine}")


def tell(mutant, functions, programs):
    verdict = "rejected" if functions or programs else "MISSED"
    some = ", ".join(f"{name} ({level})" for name, level in list(functions.items())[:3])
    more = f" and {len(functions) - 3} more" if len(functions) > 3 else ""
    by = "; ".join(filter(None, [some + more, f"{programs} random programs" if programs else ""]))
    print(f"{verdict}: {mutant['name']}: {by or 'nothing failed'}", flush=True)


def parse():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", required=True)
    parser.add_argument("--work", required=True)
    parser.add_argument("--clang", default="clang++-19")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--programs", type=int, default=100)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--all", action="store_true", help="let functions and programs judge every mutant")
    parser.add_argument("--only", help="mutants whose name contains this")
    parser.add_argument("--json", type=pathlib.Path)
    return parser.parse_args()


def main():
    options, begin = parse(), time.monotonic()
    mutants = [m for m in json.loads((HERE / "analysis_mutants.json").read_text())
               if not options.only or options.only in m["name"]]
    judge = Judge(options)
    judge.check_true_plugin()
    missed, account = 0, []
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        jobs = [pool.submit(judge.judge, number, mutant) for number, mutant in enumerate(mutants)]
        for job in jobs:
            mutant, functions, programs = job.result()
            tell(mutant, functions, programs)
            missed += not functions and not programs
            account.append({"name": mutant["name"], "functions": functions, "programs": programs})
    if options.json:
        options.json.write_text(json.dumps(account, indent=1))
    print(f"analysis mutants: {len(mutants)}, {len(mutants) - missed} rejected; {time.monotonic() - begin:.0f} s")
    return 1 if missed or not mutants else 0


if __name__ == "__main__":
    sys.exit(main())
