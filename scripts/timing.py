#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Where a build's and a test run's time went, and which module exceeds its budget: `make timing`.

Prints the ten dearest build steps and tests, and what each module took of both. Budgets stand in a table of
CONTRIBUTING.md. Seconds are the clock's: they mean something of a build from nothing on an idle machine with two
cores. How many sources a module compiles does not depend on a machine: the test "budgets" checks that.

usage: timing.py [--build build/release]     the account; exit status 1 where a module exceeds its budget
       timing.py --count [--build ...]       the compilations of 'make test' alone
       timing.py --self-test
"""
import argparse
import collections
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
# A row of the table: module, compilations, seconds of the build, seconds of the tests.
ROW = re.compile(r"^\| `?([A-Za-z_/ ]+?)`? \| (\d+) \| (\d+) \| (\d+) \|$", re.MULTILINE)
OTHERS = "each other"
Budget = collections.namedtuple("Budget", "compilations build tests")


def steps(build):
    """(seconds, output) of each step of the last build of every output."""
    last = {}
    for line in (build / ".ninja_log").read_text().splitlines()[1:]:
        begin, end, _, output, command = line.split("\t")
        if not output.startswith("/") and "CMakeFiles/quick_" not in output:  # a by-product, named once more; tests
            last[begin, end, command] = (int(end) - int(begin)) / 1000, output
    return list(last.values())


def compilations(build):
    """The outputs that are compiled of a C or C++ source."""
    return re.findall(r"^build (\S+\.o)[ :].*?\bCX?X?_COMPILER__", (build / "build.ninja").read_text(), re.MULTILINE)


def of_make_test(build):
    """The compilations of 'make test', which a tree that builds more is configured for once more, in a folder of its own."""
    if is_of_make_test(build):
        return compilations(build)
    with tempfile.TemporaryDirectory() as folder:
        options = [f"-DHOLDFAST_{part}={state}" for part, state in (("TESTS", "ON"), ("VERIFY", "OFF"), ("BENCHMARKS", "OFF"))]
        subprocess.run(["cmake", "--preset", "release", "-B", folder, *options], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
        return compilations(pathlib.Path(folder))


def tests(build):
    """(seconds, name) of each test of the last run."""
    log = build / "Testing/Temporary/LastTest.log"
    if not log.exists():
        return []
    found = re.findall(r"^\d+/\d+ Testing: (.*?)$.*?^Test time = +([0-9.]+) sec", log.read_text(errors="replace"),
                       re.MULTILINE | re.DOTALL)
    return [(float(seconds), name) for name, seconds in found]


def folder_of_tests(build):
    """The folder, from the build's top, of each test; not of those that tests build in folders of their own."""
    inner = [cache.parent for cache in build.rglob("CMakeCache.txt") if cache.parent != build]
    where = {}
    for file in build.rglob("*.cmake"):
        if (file.name == "CTestTestfile.cmake" or file.name.endswith("_tests.cmake")) and \
                not any(folder in file.parents for folder in inner):
            for name in re.findall(r"^ *add_test\(\s*\[=*\[(.*?)\]=*\]", file.read_text(), re.MULTILINE):
                where[name] = str(file.parent.relative_to(build))
    return where


def module_of(path):
    """src/NAME, test/WING/NAME, and the first folder of everything else."""
    parts = pathlib.PurePath(path).parts
    if parts[0] in ("src", "test") and len(parts) > 1:
        return "/".join(parts[:3 if parts[0] == "test" else 2])
    return "linking" if parts[0] in ("bin", "lib") else parts[0]


def spent(build):
    """What each module compiles, and what it took: three counters, as in Budget."""
    where, taken = folder_of_tests(build), Budget(*(collections.Counter() for _ in Budget._fields))
    taken.compilations.update(module_of(output) for output in compilations(build))
    for seconds, output in steps(build):
        taken.build[module_of(output)] += seconds
    for seconds, name in tests(build):
        taken.tests[module_of(where.get(name, "unknown"))] += seconds
    return taken


def is_of_make_test(build):
    """Whether it has no more than 'make test' builds, which the budgets are for."""
    return not re.search(r"^HOLDFAST_(?:VERIFY|BENCHMARKS):BOOL=ON", (build / "CMakeCache.txt").read_text(), re.MULTILINE)


def exceeded(taken, table):
    """A sentence for each budget that is exceeded."""
    budgets = {name: Budget(*map(int, numbers)) for name, *numbers in ROW.findall(table)}
    for what, counter in taken._asdict().items():
        for module, amount in counter.most_common():
            budget = getattr(budgets.get(module, budgets[OTHERS]), what)
            if amount > budget:
                yield (f"{module}: {amount:.0f} {'' if what == 'compilations' else 's of '}{what}, budget {budget}: make it "
                       "cheaper, or raise its budget in CONTRIBUTING.md and say why in the commit")


def print_account(build, taken):
    for title, rows in (("steps", steps(build)), ("tests", tests(build))):
        print(f"the dearest {title}:")
        for seconds, name in sorted(rows, reverse=True)[:10]:
            print(f"  {seconds:8.1f}  {name}")
    print(f"\n{'module':<20} {'compilations':>12} {'build':>8} {'tests':>8}   seconds")
    for module in sorted(set().union(*taken), key=lambda name: -taken.build[name] - taken.tests[name]):
        print(f"{module:<20} {taken.compilations[module]:>12} {taken.build[module]:>8.1f} {taken.tests[module]:>8.1f}")
    print(f"{'all':<20} {taken.compilations.total():>12} {taken.build.total():>8.1f} {taken.tests.total():>8.1f}")


def self_test():
    table = "| `src/a` | 2 | 9 | 5 |\n| each other | 1 | 4 | 1 |\n"
    with tempfile.TemporaryDirectory() as folder:
        build = pathlib.Path(folder)
        (build / "src/a/inner").mkdir(parents=True)
        (build / "Testing/Temporary").mkdir(parents=True)
        objects = ["src/a/CMakeFiles/one.o", "src/a/CMakeFiles/two.o", "src/b/CMakeFiles/three.o"]
        (build / "build.ninja").write_text("".join(f"build {name}: CXX_COMPILER__x_unscanned_ x.cpp\n" for name in objects))
        (build / ".ninja_log").write_text("# ninja log v5\n" + "".join(f"0\t4000\t1\t{name}\t{name}\n" for name in objects))
        (build / "src/a/CTestTestfile.cmake").write_text("add_test([=[t]=] x)\n")
        (build / "src/a/inner/CMakeCache.txt").touch()
        for of_test, option in ((True, "TESTS:BOOL=ON"), (True, "VERIFY:BOOL=OFF"), (False, "VERIFY:BOOL=ON"), (False, "BENCHMARKS:BOOL=ON")):
            (build / "CMakeCache.txt").write_text(f"CMAKE:X=y\nHOLDFAST_{option}\n")
            assert is_of_make_test(build) == of_test, option
        (build / "src/a/inner/CTestTestfile.cmake").write_text("add_test([=[t]=] x)\n")
        (build / "Testing/Temporary/LastTest.log").write_text("1/1 Testing: t\nTest time =   5.00 sec\n")
        taken = spent(build)
        assert taken == Budget({"src/a": 2, "src/b": 1}, {"src/a": 8, "src/b": 4}, {"src/a": 5}), taken
        assert not list(exceeded(taken, table))
        for less in ("| `src/a` | 1 | 9 | 5 |", "| `src/a` | 2 | 7 | 5 |", "| `src/a` | 2 | 9 | 4 |"):
            found = list(exceeded(taken, table.replace("| `src/a` | 2 | 9 | 5 |", less)))
            assert len(found) == 1 and found[0].startswith("src/a: "), (less, found)
        assert len(list(exceeded(taken, table.replace("other | 1", "other | 0")))) == 1
    assert OTHERS in [row[0] for row in ROW.findall((ROOT / "CONTRIBUTING.md").read_text())]
    print("timing: self-test found every budget that was exceeded")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/release")
    parser.add_argument("--count", action="store_true", help="check the compilations of make test alone")
    parser.add_argument("--self-test", action="store_true")
    options = parser.parse_args()
    if options.self_test:
        return self_test()
    if options.count:
        taken = Budget(collections.Counter(map(module_of, of_make_test(options.build))), collections.Counter(), collections.Counter())
    else:
        taken = spent(options.build)
        print_account(options.build, taken)
        if not is_of_make_test(options.build):
            print(f"budgets are not checked: {options.build} has more than make test builds; run make test in a new tree")
            return 0
    over = list(exceeded(taken, (ROOT / "CONTRIBUTING.md").read_text()))
    print("\n".join(over) if over else "no module exceeds its budget")
    return 1 if over else 0


if __name__ == "__main__":
    sys.exit(main())
