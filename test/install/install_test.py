#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""An installed Holdfast builds a program: by find_package, and by the wrapper with pkg-config.

The README's program is taken out of the tree, built against an install tree that has been moved once,
killed halfway, and must be whole again. A crash program is built and run, too.
"""
import argparse
import os
import pathlib
import shlex
import shutil
import signal
import subprocess
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


def main():
    parser = argparse.ArgumentParser()
    for name in ("cmake", "build", "compiler", "source", "flags"):
        parser.add_argument(f"--{name}", required=True)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="holdfast-install-") as scratch:
        folder = pathlib.Path(scratch)
        run(options.cmake, "--install", options.build, "--prefix", folder / "first")
        prefix = (folder / "first").rename(folder / "moved")
        shutil.copytree(pathlib.Path(options.source) / "test/install/project", folder / "project")
        for example in ("numbers.cpp", "queue.hpp", "crash_queue.cpp"):
            shutil.copy(pathlib.Path(options.source) / "examples" / example, folder / "project")

        run(options.cmake, "-G", "Ninja", "-S", folder / "project", "-B", folder / "build",
            f"-DCMAKE_PREFIX_PATH={prefix}", f"-DCMAKE_CXX_COMPILER={options.compiler}",
            f"-DCMAKE_CXX_FLAGS={options.flags}")
        run(options.cmake, "--build", folder / "build")
        check_program(folder / "build/numbers_clobber", folder)

        found = run("pkg-config", "--cflags", "--libs", "holdfast",
                    env={**os.environ, "PKG_CONFIG_PATH": f"{prefix}/lib/pkgconfig"})
        run(prefix / "bin/holdfast-clang++", "-std=c++20", "-O2", *shlex.split(options.flags),
            "--holdfast-engine=clobber", folder / "project/numbers.cpp",
            "-o", folder / "numbers_wrapper", *shlex.split(found))
        check_program(folder / "numbers_wrapper", folder)
        run(prefix / "bin/holdfast-kv", "--version")
        print(run(prefix / "bin/holdfast", "crash", folder / "build/crash_queue", "--depth", "1"), end="")


if __name__ == "__main__":
    main()
