#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Unsound twins of the compiler's analysis: each must be rejected.

A mutant (analysis_mutants.json) brings one known unsound rule back, by replacing text of one or two
sources. Text that is not found exactly once is an error, so that the list cannot rot. A mutant is
about engine clobber, or the engine it names. The build's own commands compile its objects, and the
plugin is linked from them and the unchanged others. The adversarial functions
(compiler/test/oracle/adversarial.cpp) judge first, at several levels, then 100 random programs;
--all always runs both, and reports which of them rejects what. Before all others comes the one
function that a mutant names ("by"), compiled alone, which takes a third of the time. A mutant that
changes no log is judged by the test of the compiler that it names ("lit", a file in compiler/test).
The true plugin comes first: with it nothing may fail.

Common work is done once: LLVM's headers are parsed once for all sources, the adversarial functions
once for each level, up to the first pass.
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import shlex
import shutil
import signal
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "scripts"))
import compile_command  # noqa: E402
from soundness import run  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
ORACLE = ROOT / "compiler/test/oracle"
LEVELS = ["-O2", "-O1", "-O0"]
RANDOM_BUILDS = {"clobber": ["clobber-O2", "clobber-O1"], "redo": ["redo-O2", "redo-O3", "redo-O0"],
                 "auto": ["auto-O2", "auto-O0"], "justdo": [], "ido": []}
ORACLES = {"justdo": "justdo_oracle.cpp", "ido": "justdo_oracle.cpp"}  # of the others oracle.cpp
PLUGIN_FOLDERS = ("compiler/analysis", "compiler/transform")
DEFINITIONS = {"justdo": ["-DORACLE_FRAMES"], "ido": ["-DORACLE_FRAMES"]}
LIT = pathlib.Path("/usr/lib/llvm-19/build/utils/lit/lit.py")
RESUMED = [ROOT / f"test/attacks/stepping/{name}.cpp" for name in ("locks", "recursion", "constants")]
SOURCES = {"justdo": RESUMED, "ido": RESUMED, "redo": [ORACLE / "indirect.cpp"], "auto": [ORACLE / "indirect.cpp"]}  # besides adversarial.cpp
# A mutated source runs for a moment; what it includes, LLVM's headers, is parsed once for all.
FLAGS = ["-O0", "-g0", "-w"]
LLD = shutil.which("ld.lld-19")
PROCESSOR_SECONDS = 20  # the true programs take less than 1
COMPILER_SECONDS = 300  # likewise 2


def checked(command, **options):
    done = run(command, COMPILER_SECONDS, **options)
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
        self.plain = [options.clang, "-std=c++20", "-DCOPIES_WITHIN_POOL", f"-I{ROOT}/include", f"-I{ORACLE}"]
        self.true_oracles, self.unoptimised = {}, {}

    def compile(self, file, edits, directory):
        """The mutated object, and the build's own that it replaces."""
        command = self.compiles[str(ROOT / file)]
        source = directory / pathlib.Path(file).name
        text = mutated(file, edits)
        if not source.exists() or source.read_text() != text:
            source.write_text(text)
        words = compile_command.plain(command["command"])
        original = words[words.index("-o") + 1]
        object_ = directory / (source.name + ".o")
        words[words.index("-o") + 1] = str(object_)
        words[words.index("-c") + 1] = str(source)
        checked([*self.cache, *words, *FLAGS, "-include-pch", self.precompiled], cwd=self.build,
                env=os.environ | {"CCACHE_SLOPPINESS": "pch_defines,time_macros"})
        return original, str(object_)

    def precompile(self, files):
        """The headers of these sources; their commands differ in their names only."""
        lines = {line for file in files for line in re.findall(r"^#include .*\n", (ROOT / file).read_text(), re.M)}
        header = self.work / "included.hpp"
        header.write_text("".join(sorted(lines)))
        words = compile_command.plain(self.compiles[str(ROOT / files[0])]["command"])
        self.precompiled = f"{header}.pch"
        checked([*words[:words.index("-o")], *FLAGS, "-fpch-instantiate-templates", "-x", "c++-header", header, "-o",
                 self.precompiled], cwd=self.build)

    def parse(self, engines):
        """The adversarial functions as no pass has seen them, for each engine and level."""
        for engine in engines:
            for level in LEVELS:
                codes = self.unoptimised[engine, level] = []
                for source in [ORACLE / "adversarial.cpp", *SOURCES.get(engine, [])]:
                    codes.append(self.work / f"{source.stem}-{engine}{level}.bc")
                    checked([*self.plain, level, *DEFINITIONS.get(engine, []), "-Xclang", "-disable-llvm-passes",
                             "-emit-llvm", "-c", source, "-o", codes[-1]])

    def make_plugin(self, mutant, directory):
        parts = [mutant, *mutant.get("more", [])]
        objects = dict(self.compile(p["file"], p["edits"], directory) for p in parts
                       if p["file"].startswith(PLUGIN_FOLDERS))
        if not objects:
            return self.plugin
        plugin = directory / "libholdfast-plugin.so"
        words = [objects.get(w, w) for w in shlex.split(self.link)]
        words[words.index("-o") + 1] = str(plugin)
        checked([*words, *([f"--ld-path={LLD}"] if LLD else [])], cwd=self.build)
        beside = directory / "libholdfast-syntax.so"
        if not beside.exists():
            beside.symlink_to(self.plugin.parent / beside.name)
        return plugin

    def make_oracle(self, mutant, directory, engine):
        own = mutant["file"].endswith("oracle.cpp")
        if engine in self.true_oracles and not own:
            return self.true_oracles[engine]
        true = ORACLE / ORACLES.get(engine, "oracle.cpp")
        text = mutated(mutant["file"], mutant["edits"]) if own else true.read_text()
        (directory / "oracle.cpp").write_text(text)
        checked([*self.plain, "-O2", "-c", directory / "oracle.cpp", "-o", directory / "oracle.o"])
        return directory / "oracle.o"

    def failing(self, code, plugin, oracle, directory, engine):
        """Functions of this code that fail."""
        program = directory / f"adversarial-{engine}"
        built = run([self.options.clang, f"-fplugin={plugin}", f"-fpass-plugin={plugin}", "-mllvm", "-holdfast-trace",
                     "-mllvm", f"-holdfast-engine={engine}", *code, oracle, "-o", program], COMPILER_SECONDS)
        if built.returncode != 0:
            raise RuntimeError(f"the mutant does not compile its tests:\n{built.stderr[-2000:]}")
        done = run([program, "--nested", "2"], PROCESSOR_SECONDS)
        failed = re.findall(r"^FAIL (\w+):", done.stdout, re.M)
        # Code that goes on with wrong values may end anywhere, or never.
        if done.returncode < 0:
            failed.append("no end" if done.returncode == -signal.SIGXCPU else "a signal")
        return failed

    def adversarial(self, plugin, oracle, directory, engine, by=None):
        """Functions that fail, with the level; 'by' first."""
        failed = {}
        if by and not self.options.all:
            code = [*self.plain[1:], LEVELS[0], *DEFINITIONS.get(engine, []), f'-DORACLE_ONLY="{by}"', ORACLE / "adversarial.cpp"]
            failed = {name: LEVELS[0] for name in self.failing(code, plugin, oracle, directory, engine)}
        for level in LEVELS:
            if failed and not self.options.all:
                break
            code = [level, *self.unoptimised[engine, level]]
            for name in self.failing(code, plugin, oracle, directory, engine):
                failed.setdefault(name, level)
        return failed

    def random(self, plugin, directory, engine):
        done = run([sys.executable, HERE / "soundness.py", "--plugin", plugin, "--clang", self.options.clang,
                    "--work", directory / "random", "--seed", self.options.seed, "--programs", self.options.programs,
                    "--builds", *RANDOM_BUILDS[engine], "--jobs", 1, "--seconds", 3 * PROCESSOR_SECONDS, *([] if self.options.all else ["--stop-at-first"])])
        return len(set(re.findall(r"^FAIL (\S+)", done.stdout, re.M)))  # "?": what ended otherwise

    def lit(self, test, plugin, directory):
        """The test's name if it fails."""
        done = run([sys.executable, LIT, "--param", f"plugin={plugin}", "--param", f"exec_root={directory}",
                    self.build / "compiler/test", "--filter", re.escape(test) + "$"], COMPILER_SECONDS)
        if not re.search(r"^(  )?(Passed|Failed) *: *1 ", done.stdout, re.M):
            raise RuntimeError(f"not one test is called {test}:\n{done.stdout}{done.stderr}")
        return {test: "lit"} if done.returncode != 0 else {}

    def judge(self, number, mutant):
        directory = self.work / f"{number:02}"
        directory.mkdir(exist_ok=True)
        plugin = self.make_plugin(mutant, directory)
        if "lit" in mutant:
            return mutant, self.lit(mutant["lit"], plugin, directory), 0
        engine = mutant.get("engine", "clobber")
        oracle = self.make_oracle(mutant, directory, engine)
        functions = self.adversarial(plugin, oracle, directory, engine, mutant.get("by"))
        programs = 0
        if plugin != self.plugin and RANDOM_BUILDS[engine] and (self.options.all or not functions):
            programs = self.random(plugin, directory, engine)
        return mutant, functions, programs

    def check_true_plugin(self, engines, lit_tests):
        for number, test in enumerate(lit_tests):
            directory = self.work / f"true-lit-{number}"
            directory.mkdir(exist_ok=True)
            if self.lit(test, self.plugin, directory):
                raise RuntimeError(f"the true plugin fails {test}")
        for engine in engines:
            directory = self.work / f"true-{engine}"
            directory.mkdir(exist_ok=True)
            oracle = self.true_oracles[engine] = self.make_oracle({"file": "", "edits": []}, directory, engine)
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
    parser.add_argument("--one-in", type=int, default=1, help="every so manieth alone, of each file's")
    parser.add_argument("--json", type=pathlib.Path)
    return parser.parse_args()


def main():
    options, begin = parse(), time.monotonic()
    mutants = [m for m in json.loads((HERE / "analysis_mutants.json").read_text())
               if not options.only or options.only in m["name"]]
    mutants = sorted(mutants, key=lambda m: m["file"])[::options.one_in]
    judge = Judge(options)
    engines = sorted({m.get("engine", "clobber") for m in mutants if "lit" not in m})
    judge.parse(engines)
    judge.precompile(sorted({p["file"] for m in mutants for p in [m, *m.get("more", [])]
                             if p["file"].startswith(PLUGIN_FOLDERS)}))
    judge.check_true_plugin(engines, sorted({m["lit"] for m in mutants if "lit" in m}))
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
