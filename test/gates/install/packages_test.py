#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""scripts/install-packages asks for the packages of the given purposes alone, and an optional one may be out of reach.

dpkg-query, apt-cache and apt-get are scripts of this test. The first two answer which packages are installed and which there
are. The third records which packages it is asked for, and fails on a conflict.

usage: packages_test.py --source ROOT
"""
import argparse
import os
import pathlib
import re
import subprocess
import tempfile

DPKG_QUERY = """#!/bin/sh
for package; do grep -qx -- "$package" "$STATE/installed" && echo "installed $package"; done; true
"""
APT_CACHE = """#!/bin/sh
! grep -qx -- "$2" "$STATE/unknown"
"""
APT_GET = """#!/bin/sh
for word; do [ "$word" = install ] && asked=yes && continue; case $word in -*) ;; *) [ -z "$asked" ] || set_="$set_ $word" ;; esac; done
[ -n "$asked" ] || exit 0
echo "$set_" >>"$STATE/asked"
for package in $set_; do ! grep -qx -- "$package" "$STATE/conflicting" || exit 100; done
for package in $set_; do echo "$package" >>"$STATE/installed"; done
"""


def lists_of(text):
    """purpose -> {package: whether it is optional}"""
    lists, current = {}, None
    for line in re.sub(r"#.*", "", text).splitlines():
        if heading := re.match(r"\[(\w+)\]", line):
            current = lists.setdefault(heading[1], {})
        elif words := line.split():
            assert words[1:] in ([], ["optional"]), line
            current[words[0].partition("|")[0]] = len(words) == 2
    return lists


class Machine:
    """Runs install-packages on a machine that has some packages, and where others conflict."""
    def __init__(self, source, folder, installed=(), conflicting=(), unknown=()):
        self.source, self.folder = source, folder
        for name, text in (("dpkg-query", DPKG_QUERY), ("apt-cache", APT_CACHE), ("apt-get", APT_GET), ("sleep", "#!/bin/sh\n"), ("id", "#!/bin/sh\necho 0\n")):
            (folder / name).write_text(text)
            (folder / name).chmod(0o755)
        for name, packages in (("installed", installed), ("conflicting", conflicting), ("unknown", unknown), ("asked", ())):
            (folder / name).write_text("".join(f"{package}\n" for package in packages))

    def install(self, *purposes):
        """(exit status, what it said, the sets that it asked apt-get for)"""
        ran = subprocess.run([self.source / "scripts/install-packages", *purposes], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                             text=True, timeout=60, env={"PATH": f"{self.folder}:{os.environ['PATH']}", "STATE": str(self.folder)})
        return ran.returncode, ran.stdout, [set(line.split()) for line in (self.folder / "asked").read_text().splitlines()]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--source", type=pathlib.Path, required=True)
    source = parser.parse_args().source.resolve()
    lists = lists_of((source / "packages.txt").read_text())

    def machine(**has):
        return Machine(source, pathlib.Path(tempfile.mkdtemp(dir=folder)), **has)

    with tempfile.TemporaryDirectory(prefix="holdfast-packages-") as folder:
        # Every command of the Makefile names purposes that there are.
        commands = re.findall(r"\$\(PACKAGES\) (.*)", (source / "Makefile").read_text())
        assert len(commands) > 10 and all(name in lists for line in commands for name in line.split()), commands
        # A recipe that builds tests installs their packages, all tests' or one module's.
        for_tests = re.findall(r"(?:PACKAGES\)|install-packages) ([a-z ]+?)(?: && |\n\t@)cmake --preset release \$\(TESTS\)",
                               (source / "Makefile").read_text())
        assert len(for_tests) == 2 and len(set(for_tests)) == 1, for_tests
        # A bare machine is asked for the packages of the purposes, and for no others.
        wanted = {**lists["build"], **lists["site"], **lists["packages"]}
        status, said, asked = machine().install("build", "site", "packages")
        assert status == 0 and set().union(*asked) == set(wanted), (said, asked)
        assert not set().union(*asked) & (set(lists["test"]) | set(lists["bench"]) | set(lists["demo"])), asked
        # A newcomer's first command waits for no package that only other programs need.
        status, said, asked = machine().install("build", "demo")
        assert status == 0 and not set().union(*asked) & (set(lists["programs"]) | set(lists["test"])), asked
        # If all are there, apt-get is not called.
        assert machine(installed=wanted).install("build", "site", "packages") == (0, "", [])
        # What is there of one LLVM is not mixed with another.
        status, said, asked = machine(installed=["clang-21"]).install("build")
        assert status == 0 and "llvm-21-dev" in set().union(*asked) and "llvm-19-dev" not in set().union(*asked), asked
        status, said, asked = machine(installed=["clang-19", "clang-21"]).install("build")
        assert status == 0 and "llvm-19-dev" in set().union(*asked) and "llvm-21-dev" not in set().union(*asked), asked
        # An optional package that conflicts costs itself alone.
        status, said, asked = machine(conflicting=["librocksdb-dev"]).install("build", "bench")
        assert status == 0 and "librocksdb-dev cannot be installed; what it serves is left out" in said, said
        assert {"liblmdb-dev"} in asked and {"librocksdb-dev"} in asked, asked
        # One that nothing works without is an error.
        status, said, asked = machine(conflicting=["clang-19"]).install("build")
        assert status != 0, said
        # Where either of two will do, apt-get is asked for the first that it knows. If one is there, that is enough.
        first = {name for name in wanted if "-19" in name}
        assert len(first) == 2, first
        others = {name.replace("-19", "-21") for name in first}
        status, said, asked = machine(unknown=first).install("build", "site", "packages")
        assert status == 0 and set().union(*asked) == set(wanted) - first | others, (said, asked)
        assert machine(installed=set(wanted) - first | others).install("build", "site", "packages") == (0, "", [])
        # A package of another purpose may conflict as it likes.
        assert machine(conflicting=["libgtest-dev", "librocksdb-dev"]).install("build", "packages")[0] == 0
        status, said, asked = machine().install("nosuch")
        assert status == 2 and "no [nosuch]" in said and not asked, said
    print(f"packages: {len(lists)} purposes, each installs its own, and one optional package costs nothing but itself")


if __name__ == "__main__":
    main()
