#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""An installed Holdfast builds a program: by find_package, and by the wrapper with pkg-config, in C++ and in C.

The README's program is taken out of the tree, built against an install tree that has been moved once,
killed halfway, and must be whole again. A crash program is built and run, too. The projects ask for no
standard of C++, nor, where they are written in C, for a C++ compiler.
"""
import argparse
import concurrent.futures
import os
import pathlib
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile


def run(*command, **how):
    ran = subprocess.run(command, capture_output=True, text=True, **how)
    if ran.returncode != 0:
        raise SystemExit(f"{shlex.join(map(str, command))}\n{ran.stdout}{ran.stderr}")
    return ran.stdout


def check_program(program, folder):
    """Pushes once, is killed in the second push, must complete it before the third."""
    pool = folder / f"{program.name}.hf"
    crash = {**os.environ, "HOLDFAST_CRASH_AT": "half-pushed"}
    run(program, pool)
    killed = subprocess.run([program, pool], env=crash)
    assert killed.returncode == -signal.SIGKILL, killed
    after = run(program, pool)
    assert after == "3 numbers, sum 6\n", (program, after)
    print(f"{program.name}: {after}", end="")


def check_c(options, prefix, folder, environment):
    """By CMake with C alone, by pkg-config with the system's compiler, by the wrapper: a container, and a section."""
    shutil.copytree(pathlib.Path(options.source) / "test/gates/install/c_project", folder / "c")
    shutil.copy(pathlib.Path(options.source) / "examples/counter.c", folder / "c")
    run(options.cmake, "-G", "Ninja", "-S", folder / "c", "-B", folder / "c-build", f"-DCMAKE_PREFIX_PATH={prefix}",
        f"-DCMAKE_C_COMPILER={options.c_compiler}", f"-DCMAKE_C_FLAGS={options.flags}")
    run(options.cmake, "--build", folder / "c-build")
    linked = shlex.split(run("pkg-config", "--cflags", "--libs", "holdfast", env=environment))
    flags = shlex.split(options.flags)
    run(*([options.c_compiler] if flags else ["cc"]), *flags, folder / "c/prices.c", "-o", folder / "prices", *linked)
    run(prefix / "bin/holdfast-clang", "-O2", *flags, "--holdfast-engine=clobber", folder / "c/counter.c",
        "-o", folder / "counter", *linked)
    for by, programs in (("cmake", folder / "c-build"), ("pkg-config", folder)):
        answer = run(programs / "prices", folder / f"prices-{by}.hf")
        assert answer == "1.20\n", answer
        pool = folder / f"counter-{by}.hf"
        run(programs / "counter", pool)
        killed = subprocess.run([programs / "counter", pool], env={**os.environ, "HOLDFAST_CRASH_AT": "half-added"})
        assert killed.returncode == -signal.SIGKILL, killed
        after = run(programs / "counter", pool)
        assert after.split() == ["completed", "what", "was", "cut", "short", "15"], after
    print("in C: prices and counter, by CMake, pkg-config and the wrapper")


def check_headers(options, prefix):
    """The headers for applications and for authors of structures: each compiles alone, those for C
    in C, too.

    Left out are the headers that need another library's.
    """
    root = prefix / "include"
    headers = [path for path in sorted(root.glob("holdfast/**/*.h*")) if not {"detail", "abi"} & set(path.parts) and path.name not in ("zstd.hpp", "redis.hpp")]
    calls = [(options.compiler, "-std=c++20", "-x", "c++", path) for path in headers]
    calls += [(options.c_compiler, "-x", "c", path) for path in headers if path.suffix == ".h"]

    def compile_alone(call):
        run(*call[:-1], *shlex.split(options.flags), "-Wall", "-Werror", "-fsyntax-only", f"-I{root}", "-", input=f"#include <{call[-1].relative_to(root)}>\n")

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(compile_alone, calls))
    authors = [path for path in headers if root / "holdfast/author" in path.parents]
    assert authors and len(authors) < len(headers), headers
    print(f"{len(headers)} public headers compile alone, {len(authors)} of them for authors of structures")


def check_programs(prefix):
    """The package's programs answer for themselves, and every engine of the server is there."""
    said = run(prefix / "bin/holdfast", "--version")
    assert said.startswith("holdfast 0."), said
    for engine in ("auto", "mod"):
        run(prefix / "bin/holdfast-kv", "--engine", engine, "--pool", "unused", "--version")
        assert (prefix / "bin" / ("holdfast-kv" + ("" if engine == "auto" else "-" + engine))).exists()


def check_documents(prefix):
    """The guide is there where its pages can be made, no reference of it is dead, and the examples are those of the tree."""
    documents, site = prefix / "share/doc/holdfast", pathlib.Path(__file__).resolve().parents[3] / "scripts/site.py"
    assert (documents / "examples/numbers.cpp").is_file() and (documents / "examples/project/CMakeLists.txt").is_file()
    here = sorted((documents / "examples").glob("*.*"))
    needed = {name for path in here if path.is_file() for name in re.findall(r'^#include (?:"|<examples/)([^">]+)', path.read_text(), re.M)}
    missing = needed - {path.name for path in here} - {"histogram_calls.hpp"}   # which holdfast classify makes
    assert not missing and not any(path.name.startswith(".") for path in here), (missing, here)
    checked = subprocess.run([sys.executable, "-B", site, "--check", documents], capture_output=True, text=True)
    assert checked.returncode == 0 or checked.returncode == 77 and not (documents / "html").exists(), checked
    print(checked.stdout or checked.stderr, end="")


def main():
    parser = argparse.ArgumentParser()
    for name in ("cmake", "build", "compiler", "c-compiler", "source", "flags"):
        parser.add_argument(f"--{name}", required=True)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="holdfast-install-") as scratch:
        folder = pathlib.Path(scratch)
        run(options.cmake, "--install", options.build, "--prefix", folder / "first")
        prefix = (folder / "first").rename(folder / "moved")
        shutil.copytree(pathlib.Path(options.source) / "test/gates/install/project", folder / "project")
        for example, name in (("numbers.cpp",) * 2, ("queue.hpp",) * 2, ("crash_queue.cpp", "my_crash.cpp")):
            shutil.copy(pathlib.Path(options.source) / "examples" / example, folder / "project" / name)

        run(options.cmake, "-G", "Ninja", "-S", folder / "project", "-B", folder / "build",
            f"-DCMAKE_PREFIX_PATH={prefix}", f"-DCMAKE_CXX_COMPILER={options.compiler}",
            f"-DCMAKE_CXX_FLAGS={options.flags}")
        run(options.cmake, "--build", folder / "build")
        check_program(folder / "build/numbers_clobber", folder)

        environment = {**os.environ, "PKG_CONFIG_PATH": f"{prefix}/lib/pkgconfig"}
        found = run("pkg-config", "--cflags", "--libs", "holdfast", env=environment)
        run(prefix / "bin/holdfast-clang++", "-std=c++20", "-O2", *shlex.split(options.flags),
            "--holdfast-engine=clobber", folder / "project/numbers.cpp",
            "-o", folder / "numbers_wrapper", *shlex.split(found))
        check_program(folder / "numbers_wrapper", folder)
        check_c(options, prefix, folder, environment)
        check_headers(options, prefix)
        check_programs(prefix)
        check_documents(prefix)
        print(run(prefix / "bin/holdfast", "crash", folder / "build/my_crash", "--depth", "1"), end="")


if __name__ == "__main__":
    main()
