#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Holdfast configures as a newcomer configures it, and builds no more than was asked for.

Four ways: without tests; for the demonstration alone, without the packages of peers and tests; with
tests and benchmarks, if packages of the peers are missing; and inside another project, which has
C++ alone and gets libraries and plugin, no tests, no programs. A target that has not been built is
not installed, and the message says what to do. Ninja lists what would be built, so nothing is
built; --build, for the long form, builds the other project and runs its program.

usage: configure_test.py --cmake … --compiler … --c-compiler … --source … --work … [--build]
"""
import argparse
import os
import pathlib
import re
import shutil
import signal
import subprocess


def run(*command, status=0, **how):
    ran = subprocess.run(list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **how)
    assert ran.returncode == status, (command, ran.returncode, ran.stdout)
    return ran.stdout


def configured(options, name, source, *more, **how):
    return configuring(options, name, source, *more, **how)[0]


def configuring(options, name, source, *more, **how):
    """(build folder, what CMake said)"""
    build = options.work / name
    return build, run(options.cmake, "-S", source, "-B", build, "-G", "Ninja", f"-DCMAKE_CXX_COMPILER={options.compiler}", *more,
                      **how)


def targets(build):
    return {line.split(":")[0] for line in run("ninja", "-C", build, "-t", "targets", "all").splitlines()}


def built_by_all(build):
    """The files that a build without a target makes or reads, of the libraries' sources down to programs."""
    return run("ninja", "-C", build, "-t", "inputs", "all")


def check_without_tests(options):
    build = configured(options, "without_tests", options.source, "-DHOLDFAST_TESTS=OFF",
                       f"-DCMAKE_C_COMPILER={options.c_compiler}")
    plan = built_by_all(build)
    assert "/holdfast-kv-mod.dir/" in plan and "/example_numbers.dir/" in plan, plan
    assert "_test.dir/" not in plan and "/crash_clobber.dir/" not in plan, plan
    said = run(options.cmake, "--install", build, "--prefix", options.work / "nowhere", status=1)
    assert "not built yet" in said and "make build" in said, said
    assert not (options.work / "nowhere").exists()


def check_demonstration(options):
    """It neither looks for nor compiles anything that only tests, benchmarks and their peers
    need."""
    unneeded = [f"-DCMAKE_DISABLE_FIND_PACKAGE_{name}=ON" for name in ("GTest", "Boost")]
    build = configured(options, "demonstration", options.source, "-DHOLDFAST_TESTS=OFF", "-DHOLDFAST_BENCHMARKS=OFF",
                       f"-DCMAKE_C_COMPILER={options.c_compiler}", *unneeded,
                       env={**os.environ, "PKG_CONFIG_LIBDIR": str(options.work)})  # knows no package
    there = targets(build)
    for wanted in ("bin/holdfast-kv", "bin/example_bank", "bin/example_bank_undo", "bin/example_numbers", "bin/holdfast"):
        assert wanted in there, wanted
    assert not any("bench" in name for name in there if name.startswith(("bin/", "lib/"))), there
    # 'make demo' builds the engines that it runs and compiles no other one first.
    asked = re.search(r"--target (holdfast-kv .*)", (options.source / "Makefile").read_text())[1].split()
    plan = run("ninja", "-C", build, "-t", "inputs", *asked)
    for unwanted in ("hf_mod.dir", "hf_simpo.dir", "hf_justdo.dir", "hf_selective.dir", "hf_c.dir", "hf_verify.dir", "_test.dir"):
        assert unwanted not in plan, (unwanted, plan)


def check_missing_peers(options):
    """Without a package exactly what the package serves is left out and named."""
    packages = options.work / "pkgconfig"
    packages.mkdir()

    def without(name, *more):
        return configuring(options, name, options.source, f"-DCMAKE_C_COMPILER={options.c_compiler}", "-DHOLDFAST_BENCHMARKS=ON", "-DBERKELEYDB=",
                           *more, env={**os.environ, "PKG_CONFIG_LIBDIR": str(packages)})

    build, said = without("no_pmdk", "-DCMAKE_DISABLE_FIND_PACKAGE_Boost=ON")
    there = targets(build)
    assert "'holdfast bench' is left out, and its tests: it needs libpmemobj-dev libboost-dev" in said, said
    assert "holdfast-vacation and holdfast-bfs are left out: they need libpmemobj-dev" in said, said
    assert {"bin/holdfast", "bin/slpmt_study", "bin/simpo_applications", "bin/engines_test", "bin/crash_clobber"} <= there, there
    assert not {"bin/bench_map_test", "bin/holdfast-bfs", "lib/libhf_bench.a"} & there, there
    for folder in run("pkg-config", "--variable=pc_path", "pkg-config").strip().split(":"):
        for path in pathlib.Path(folder).glob("*.pc"):
            if path.stem not in ("lmdb", "rocksdb") and not (packages / path.name).exists():
                (packages / path.name).symlink_to(path)
    if not {"libpmemobj.pc", "sqlite3.pc"} <= {path.name for path in packages.iterdir()}:
        return      # they are missing indeed
    build, said = without("no_peers")
    assert "Engine lmdb is left out of 'holdfast bench': it needs liblmdb-dev" in said, said
    assert "Engine bdb is left out of 'holdfast bench': it needs libdb-dev" in said and "Engine sqlite" not in said, said
    plan = run("ninja", "-C", build, "-t", "inputs", "bin/holdfast")
    assert "/peers/sqlite_map.cpp" in plan and "/peers/lmdb_map.cpp" not in plan and "/peers/bdb_map.cpp" not in plan, plan


def check_embedded(options):
    source = options.source / "test/gates/install/embedding"
    build = configured(options, "embedding", source, f"-DFETCHCONTENT_SOURCE_DIR_HOLDFAST={options.source}",
                       "-DCMAKE_BUILD_TYPE=RelWithDebInfo")
    cache = (build / "CMakeCache.txt").read_text()
    assert "CMAKE_C_COMPILER:" not in cache, "C was asked for"
    plan = built_by_all(build)
    assert "libholdfast-plugin.so" in plan and "CMakeFiles/numbers.dir/" in plan, plan
    for unwanted in ("_test.dir", "bench", "holdfast-kv", "example_", "hf_traced.dir", "hf_verify.dir"):
        assert unwanted not in plan, (unwanted, plan)
    tests = run("ctest", "--test-dir", build, "-N")
    assert "Total Tests: 0" in tests, tests
    if options.build:
        run("ninja", "-C", build)
        check_numbers(build / "numbers", options.work / "numbers.hf")


def check_numbers(program, pool):
    pool.unlink(missing_ok=True)
    run(program, pool)
    run(program, pool, status=-signal.SIGKILL, env={**os.environ, "HOLDFAST_CRASH_AT": "half-pushed"})
    assert run(program, pool) == "3 numbers, sum 6\n"


def main():
    parser = argparse.ArgumentParser()
    for name in ("cmake", "compiler", "c-compiler"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--source", required=True, type=pathlib.Path)
    parser.add_argument("--work", required=True, type=pathlib.Path)
    parser.add_argument("--build", action="store_true")
    options = parser.parse_args()
    shutil.rmtree(options.work, ignore_errors=True)
    options.work.mkdir(parents=True)
    check_without_tests(options)
    check_demonstration(options)
    check_missing_peers(options)
    check_embedded(options)
    print("configured without tests, for the demonstration, without peers, and inside another project")


if __name__ == "__main__":
    main()
