#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Broken twins of the library: the crash checker must reject every one.

A mutant (mutants.json in the folder of its module) replaces one place in the sources: in the function that it names, in whichever
file that is, and however the text is broken into lines there. A place that is not found exactly once is
an error, so that the list cannot rot. Works beside a finished build: the changed file goes to a directory
that is searched first, the objects of the library and of the crash program that depend on it are
compiled again by the build's own commands, and linked with all others as they are. Then the named
program must find a violation. The checker itself is never changed, and the true code comes first: on it
the same programs must find nothing. A mutant may name the option ('without') that leaves out the step of the checker that
it is there for: with that it must survive.
"""
import argparse
import collections
import concurrent.futures
import fcntl
import json
import os
import pathlib
import re
import shlex
import shutil
import signal
import statistics
import subprocess
import sys
import threading
import time

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parents[2]), str(pathlib.Path(__file__).resolve().parents[3] / "scripts")]
import compile_command  # noqa: E402
import source_text  # noqa: E402

# Folders in which mutants change something. The checker does not judge what it does not run, or
# itself.
SOURCES = ["src", "include", "examples", "research"]
NEVER_RUN = {"check", "verify"}
KINDS = [
    "missing flush", "missing fence", "flush before store", "flush of the wrong address",
    "flush too short", "valid mark before payload", "two-word update unlogged",
    "torn multi-word write", "split commit store", "missing log entry", "log after data",
    "log range short", "clobbered input not logged", "log truncated before data durable",
    "stale log replayed", "commit mark before entries", "recovery not idempotent",
    "recovery writes unflushed", "recovery skips a thread", "wrong replay direction",
    "allocated but unlinked", "linked before allocation durable", "double free on replay",
    "lock left held", "another thread's unpersisted value read", "acknowledged before durable",
    "counter rebuilt wrongly", "move loses or duplicates", "capacity before array",
    "early reuse of retired memory", "published memory changed in place"]
OPTIONAL = "crash_plain_"    # programs of bench/plain, whose packages may be missing
# The code that a mutant may change, by the directory of the objects in the build. Crash programs
# have all of a pool in hf_traced; the modules are those of tests, which judge what the checker does
# not see: the wait for a disk.
RECOMPILED = re.compile(r"/(hf_traced|crash_\w+|hf_sim|hf_slpmt|hf_clobber|hf_justdo|hf_log|hf_mod|hf_open|hf_pool|hf_section|hf_simpo)\.dir/")
# Processor time of one core for a verdict on a mutant, and on the true code.
MUTANT_SECONDS_MAX, TRUE_SECONDS_MAX = 30, 200
# A function's code may be put down to lines around the changed ones.
NEAR_LINES = 12
OTHERS = ["algorithm", "array", "atomic", "chrono", "csetjmp", "csignal", "cstdint", "cstdio", "cstdlib",
          "cstring", "functional", "map", "memory", "mutex", "new", "optional", "shared_mutex", "span",
          "string", "string_view", "thread", "unordered_map", "utility", "vector", "fmt/format.h"]
DWARFDUMP = shutil.which("llvm-dwarfdump-19")
LLD = shutil.which("ld.lld-19")
# The library's mutants, in traced code that is run for a moment: compiling takes most of the time.
TRACED_FLAGS = ["-O0", "-g0"]
# A file with as many mutants gets a precompiled header of its own.
PRECOMPILED_MIN = 4


def output_of(command, **options):
    done = subprocess.run(command, capture_output=True, text=True, **options)
    if done.returncode != 0:
        raise RuntimeError(f"{shlex.join(map(str, command))}\n{done.stdout}{done.stderr}")
    return done.stdout


class Build:
    """The commands and dependencies of a finished Ninja build."""

    def __init__(self, directory):
        self.directory = directory
        self.links, self.compiles = {}, {}  # program -> words; program -> {object: words}
        self.dependencies = self.read_dependencies()
        self.lines, self.lock = {}, threading.Lock()  # object -> file name -> lines with code

    def ninja(self, *arguments):
        """One process at a time: Ninja may write its logs anew, even where it is only asked."""
        with open(self.directory / ".ninja_tools", "w", encoding="utf-8") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            return output_of(["ninja", "-C", str(self.directory), "-t", *arguments])

    def read_dependencies(self):
        found, target = {}, None
        for line in self.ninja("deps").splitlines():
            if line and not line.startswith(" "):
                target = line.split(": #deps")[0]
                found[target] = set()
            elif line.strip() and target and RECOMPILED.search(target):
                found[target].add(str((self.directory / line.strip()).resolve()))
        return found

    def learn(self, program):
        if program in self.links:
            return
        commands = self.ninja("commands", program).splitlines()
        link = commands[-1].removeprefix(": && ").split(" && ")[0]  # behind it tests are listed
        self.links[program] = shlex.split(link)
        compiles = [compile_command.plain(c) for c in commands if " -c " in c and RECOMPILED.search(c)]
        self.compiles[program] = {words[words.index("-o") + 1]: words for words in compiles}

    def objects_of(self, program, file, lines):
        """Objects of a program that depend on a source file, in the order of the build. Of a header
        only those that have code from near these lines of it: the others would come out as they are."""
        found = [o for o in self.compiles[program] if str(file) in self.dependencies.get(o, ())]
        if file.suffix != ".hpp" or not DWARFDUMP:
            return found
        near = range(lines.start - NEAR_LINES, lines.stop + NEAR_LINES)
        return [o for o in found if any(l in near for l in self.lines_of(o).get(file.name, ()))]

    def lines_of(self, target):
        """File name -> its lines that an object has code from, by the object's line table."""
        with self.lock:
            if target in self.lines:
                return self.lines[target]
        names, lines, number = {}, collections.defaultdict(set), None
        for line in output_of([DWARFDUMP, "--debug-line", str(self.directory / target)]).splitlines():
            if found := re.match(r"file_names\[ *(\d+)\]:", line):
                number = int(found[1])
            elif number is not None and (found := re.match(r' +name: "(.*)"', line)):
                names[number] = pathlib.PurePath(found[1]).name
            elif found := re.match(r"0x[0-9a-f]+ +(\d+) +\d+ +(\d+) ", line):
                lines[names.get(int(found[2]))].add(int(found[1]))
        with self.lock:
            self.lines[target] = lines
        return lines


class Workshop:
    def __init__(self, arguments, build):
        self.source, self.build, self.work = arguments.source, build, arguments.work
        self.optimise = arguments.optimise
        self.precompiled, self.lock = {}, threading.Lock()  # stem -> path, when it is made
        self.mutants_of = collections.Counter()  # by file
        self.cache = ["ccache"] if shutil.which("ccache") else []
        self.environment = os.environ | {"CCACHE_SLOPPINESS": "pch_defines,time_macros"}

    def build_mutant(self, mutant):
        """Path of the mutated program; raises with the compiler's words when it does not build."""
        program = mutant["program"][0]
        place = self.work / re.sub(r"\W+", "-", mutant["name"])
        changed = place / mutant["file"]
        changed.parent.mkdir(parents=True, exist_ok=True)
        original = (self.source / mutant["file"]).resolve()
        true, begin, end = original.read_text(), mutant["begin"], mutant["end"]
        text = true[:begin] + mutant["new"].strip() + true[end:]
        if not changed.exists() or changed.read_text() != text:
            changed.write_text(text)
        first = true.count("\n", 0, begin) + 1
        lines = range(first, first + true.count("\n", begin, end) + 1)
        objects = self.build.objects_of(program, original, lines)
        if not objects:
            raise RuntimeError(f"nothing in {program} depends on {mutant['file']}")
        made = {}
        for number, target in enumerate(objects):
            made[target] = str(place / f"{number}.o")
            self.compile(self.build.compiles[program][target], original, changed, made[target], place)
        binary = place / program
        self.link(program, made, binary)
        for target in made.values():
            pathlib.Path(target).unlink()
        return binary

    def compile(self, words, original, changed, target, place):
        out, skip = [], 0
        for word in words:
            if skip:
                skip -= 1
            elif word in ("-MT", "-MF", "-o"):
                skip = 1
            elif word != "-MD":
                same = not word.startswith("-") and str((self.build.directory / word).resolve()) == str(original)
                out.append(str(changed) if same else word)
        first = next(i for i, word in enumerate(out) if word.startswith("-"))
        out[first:first] = [f"-I{place / part}" for part in ("src", "include", "research", ".")]
        flags = [*self.optimise, "-w"]
        if "/hf_traced.dir/" in shlex.join(words):
            flags = [*TRACED_FLAGS, "-w", "-include-pch", str(self.precompiled_for(words, original))]
        output_of([*self.cache, *out, *flags, "-o", target], cwd=self.build.directory, env=self.environment)

    def precompiled_for(self, words, original):
        """The headers of a source of the library, parsed once for all of its mutants. If it has few
        mutants, or for a header: the headers that it takes from elsewhere."""
        stem, text, stamps = "others", "".join(f"#include <{name}>\n" for name in OTHERS), []
        if original.suffix == ".cpp" and self.mutants_of[original] >= PRECOMPILED_MIN:
            stem = re.sub(r"\W+", "-", str(original.relative_to(self.source)))
            text = "".join(re.findall(r"^#include .*\n", original.read_text(), re.M))
            target = words[words.index("-o") + 1]
            stamps = [(f, os.stat(f).st_mtime_ns) for f in sorted(self.build.dependencies[target])
                      if f != str(original)]
        with self.lock:
            if stem not in self.precompiled:
                self.precompiled[stem] = self.precompile(words, self.work / f"{stem}.hpp", text, stamps)
            return self.precompiled[stem]

    def precompile(self, words, header, text, stamps):
        """Made anew, it would miss ccache for every mutant."""
        flags = [w for w in words if re.match(r"-(D|I|g|f(?!plugin|pass-plugin)|std)", w)]
        compiler = next(w for w in words if "clang++" in w)
        made, stamp = pathlib.Path(f"{header}.pch"), pathlib.Path(f"{header}.made_by")
        command = [compiler, *flags, *TRACED_FLAGS, "-fpch-instantiate-templates", "-x", "c++-header",
                   str(header), "-o", str(made)]
        made_by = f"{command} {os.stat(shutil.which(compiler)).st_mtime} {stamps}\n{text}"
        if made.exists() and stamp.exists() and stamp.read_text() == made_by:
            return made
        header.write_text(text)
        output_of(command, cwd=self.build.directory)
        stamp.write_text(made_by)
        return made

    def link(self, program, made, binary):
        """The mutated objects come first: what they define is not looked for in archives, and their
        copies of inline functions are the ones that stay."""
        words = list(self.build.links[program])
        words[words.index("-o") + 1] = str(binary)
        words = [word for word in words if word not in made]
        first = next(i for i, word in enumerate(words) if word.endswith((".o", ".a")))
        words[first:first] = made.values()
        if LLD:
            words += [f"--ld-path={LLD}", "-Wl,--threads=1"]
        output_of(words, cwd=self.build.directory)


def check(binary, arguments, seconds_max):
    """(exit status, seconds, what the checker said): 0 no violation, 1 violation, else no verdict."""
    start = time.monotonic()
    try:
        done = subprocess.run(["prlimit", f"--cpu={seconds_max}:{seconds_max + 1}", str(binary), *arguments],
                              capture_output=True, text=True, timeout=10 * seconds_max)
    except subprocess.TimeoutExpired:
        return None, time.monotonic() - start, "no verdict in time"
    seconds = time.monotonic() - start
    said = next((l.strip() for l in done.stdout.splitlines() if l.strip()), "")
    if done.returncode not in (0, 1):
        said = "no verdict in time" if done.returncode == -signal.SIGXCPU else \
            f"the checker ended with status {done.returncode}: {done.stderr[-300:]}"
    return done.returncode, seconds, said


def functions_by_name(source):
    """Name -> (file, text, function) of the sources that mutants may change."""
    found = collections.defaultdict(list)
    for folder in SOURCES:
        for path in sorted((source / folder).rglob("*.[ch]pp")):
            if not NEVER_RUN & set(path.relative_to(source).parts) and not path.stem.endswith(("_test", "_fuzz", "_program", "_sections")):
                text = path.read_text()
                for function in source_text.functions(text):
                    found[function.name].append((str(path.relative_to(source)), text, function))
    return found


def places(mutant, functions):
    """(file, begin, end) of every place in the mutant's function that reads as its 'old', except
    for white space between words."""
    pattern = re.compile(r"\s+".join(re.escape(word) for word in mutant["old"].split()))
    for file, text, function in functions[mutant["in"]]:
        for match in pattern.finditer(text, function.begin, function.end):
            yield file, match.start(), match.end()


def lists(source):
    """The modules' lists, each beside what it breaks."""
    return [path for folder in SOURCES for path in sorted((source / folder).rglob("mutants.json"))]


def read_mutants(files, source):
    mutants, names = [mutant for file in files for mutant in json.loads(file.read_text())], set()
    functions = functions_by_name(source)
    for mutant in mutants:
        if mutant["name"] in names:
            sys.exit(f"two mutants are called '{mutant['name']}'")
        names.add(mutant["name"])
        if mutant["kind"] not in KINDS:
            sys.exit(f"{mutant['name']}: unknown kind '{mutant['kind']}'")
        found = list(places(mutant, functions))
        if len(found) != 1:
            sys.exit(f"{mutant['name']}: its place in {mutant['in']} is there {len(found)} times: "
                     f"{len(functions[mutant['in']])} functions of that name")
        mutant["file"], mutant["begin"], mutant["end"] = found[0]
    return mutants


def one_in(share, mutants):
    """So many fewer, in the order of their executables, so that each that has as many keeps some."""
    return sorted(mutants, key=lambda m: m["program"][0])[::share]


def one_of_each_kind(mutants, part, parts):
    """In a source if possible: a header is compiled for many. Mutants that share an executable are
    in one part."""
    first = {}
    for mutant in sorted(mutants, key=lambda m: m["file"].endswith(".hpp")):
        first.setdefault(mutant["kind"], mutant)
    begin, end = (len(first) * n // parts for n in (part - 1, part))
    return one_in(1, first.values())[begin:end]


def unchanged(mutants):
    """A twin of the true code for each file and program of the mutants, built as they are."""
    twins = {(m["file"], *m["program"]): dict(m, name=f"{m['file']}, unchanged, in {m['program']}",
                                              begin=0, end=0, new="") for m in mutants}
    return list(twins.values())


def try_mutant(workshop, mutant):
    start = time.monotonic()
    try:
        binary = workshop.build_mutant(mutant)
    except RuntimeError as error:
        return dict(mutant, status=None, rejected=False, build_seconds=0, seconds=0,
                    said=f"does not build: {error}")
    build_seconds = time.monotonic() - start
    status, seconds, said = check(binary, mutant["program"][1:], MUTANT_SECONDS_MAX)
    if status == 1 and "without" in mutant:
        alone, _, text = check(binary, [*mutant["program"][1:], mutant["without"]], MUTANT_SECONDS_MAX)
        if alone != 0:
            status, said = None, f"is rejected, or no verdict in time, with {mutant['without']}, too: {text}"
    binary.unlink()
    return dict(mutant, status=status, rejected=status == 1, build_seconds=build_seconds, seconds=seconds,
                said=said)


def accept_true_code(build, programs, jobs):
    """Exits when the checker has anything to say about the true code."""
    def one(program):
        build_link = build.links[program[0]]
        binary = build.directory / build_link[build_link.index("-o") + 1]
        return program, check(binary, program[1:], TRUE_SECONDS_MAX)
    alarms = 0
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for program, (status, seconds, said) in pool.map(one, programs):
            if status != 0 or not said:
                alarms += 1
                print(f"FALSE ALARM in {seconds:.2f} s: {shlex.join(program)}: {said}", flush=True)
    print(f"true code: {len(programs)} programs, false alarms: {alarms}", flush=True)
    return alarms


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--source", type=pathlib.Path, required=True)
    parser.add_argument("--build", type=pathlib.Path, required=True, help="the finished build")
    parser.add_argument("--work", type=pathlib.Path, required=True, help="where mutants are built")
    parser.add_argument("--mutants", type=pathlib.Path, nargs="*", help="these lists alone")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", default="", help="part of the name")
    parser.add_argument("--kinds", nargs="*", default=KINDS)
    parser.add_argument("--one-in", type=int, default=1, help="every so manieth alone, of each program's")
    parser.add_argument("--programs", nargs="*", help="those of these executables alone")
    parser.add_argument("--one-of-each-kind", type=int, nargs=2, metavar=("K", "N"),
                        help="the first of each kind alone, and of those the K-th part of N")
    parser.add_argument("--unchanged", action="store_true",
                        help="the true code, built as mutants are: none may be rejected")
    parser.add_argument("--json", type=pathlib.Path, help="where the account goes")
    parser.add_argument("--optimise", nargs="*", default=["-O1"])
    arguments = parser.parse_args()
    arguments.source, arguments.work = arguments.source.resolve(), arguments.work.resolve()

    everything = read_mutants(arguments.mutants or lists(arguments.source), arguments.source)
    chosen = [m for m in everything if arguments.only in m["name"] and m["kind"] in arguments.kinds
              and (arguments.programs is None or m["program"][0] in arguments.programs)]
    mutants = one_in(arguments.one_in, [m for m in chosen if "equivalent" not in m])
    if arguments.one_of_each_kind:
        mutants = one_of_each_kind(mutants, *arguments.one_of_each_kind)
    if not mutants:
        sys.exit("no mutant is chosen")
    if arguments.unchanged:
        mutants = unchanged(mutants)
    build = Build(arguments.build.resolve())
    for program in sorted({m["program"][0] for m in mutants if m["program"][0].startswith(OPTIONAL)}):
        if not (arguments.build / "bin" / program).exists():
            print(f"{program} is not in this build; its mutants are left out", flush=True)
            mutants = [m for m in mutants if m["program"][0] != program]
    for mutant in mutants:
        build.learn(mutant["program"][0])
    programs = [list(p) for p in sorted({tuple(m["program"]) for m in mutants})]
    alarms = accept_true_code(build, programs, arguments.jobs)

    workshop, results = Workshop(arguments, build), []
    start = time.monotonic()
    arguments.work.mkdir(parents=True, exist_ok=True)
    workshop.mutants_of.update((arguments.source / m["file"]).resolve() for m in mutants)
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        for one in pool.map(lambda m: try_mutant(workshop, m), mutants):
            results.append(one)
            print(f"{'rejected' if one['rejected'] else 'SURVIVED'} in {one['seconds']:5.2f} s "
                  f"(built in {one['build_seconds']:4.1f} s): [{one['kind']}] {one['name']}: "
                  f"{one['said'][:600]}", flush=True)
    rejected = sum(r["rejected"] for r in results)
    seconds = [r["seconds"] for r in results] or [0]
    median, worst = statistics.median(seconds), max(seconds)
    kinds = collections.Counter(r["kind"] for r in results if r["rejected"])
    if arguments.json:
        arguments.json.write_text(json.dumps({
            "mutants": len(results), "rejected": rejected, "median_seconds": median,
            "worst_seconds": worst, "false_alarms": alarms, "true_programs": len(programs),
            "wall_seconds": time.monotonic() - start, "kinds": kinds,
            "equivalent": [{"name": m["name"], "why": m["equivalent"]}
                           for m in chosen if "equivalent" in m],
            "results": [{k: r[k] for k in ("name", "kind", "file", "program", "rejected", "seconds",
                                           "build_seconds", "said")} for r in results]}, indent=1))
    print(f"kinds: {len(kinds)} equivalent: {sum('equivalent' in m for m in chosen)} "
          f"wall_seconds={time.monotonic() - start:.0f}")
    print(f"mutants: {len(results)} rejected: {rejected} median_seconds={median:.2f} "
          f"worst_seconds={worst:.2f}")
    wanted = 0 if arguments.unchanged else 1
    sys.exit(0 if all(r["status"] == wanted for r in results) and alarms == 0 else 1)


if __name__ == "__main__":
    main()
