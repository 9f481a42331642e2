#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Broken twins of the runtime: the power-failure test must reject every one.

Each mutant replaces one place in the sources (mutants.json). A place that is not found exactly once is an
error, so that the list cannot rot. The core is built without the compiler plugin, once, in a directory of
its own; a mutant rebuilds what it touches.
"""
import argparse, json, pathlib, shutil, subprocess, sys, time

parser = argparse.ArgumentParser()
parser.add_argument("--source", type=pathlib.Path, required=True)
parser.add_argument("--build", type=pathlib.Path, required=True)
parser.add_argument("--compiler", default="clang++-19")
parser.add_argument("--c-compiler", default="clang-19")
arguments = parser.parse_args()

here = pathlib.Path(__file__).resolve().parent
copy, build = arguments.build / "source", arguments.build / "build"
if copy.exists():
    shutil.rmtree(copy)
copy.mkdir(parents=True)
for part in ("include", "src", "cmake"):
    shutil.copytree(arguments.source / part, copy / part)
shutil.copy(arguments.source / "CMakeLists.txt", copy)


def run(command, **options):
    return subprocess.run(command, capture_output=True, text=True, **options)


def built():
    return run(["cmake", "--build", str(build), "--target", "power_failure_test"])


def passes():
    try:
        return run([str(build / "bin" / "power_failure_test"), "--gtest_brief=1"], timeout=120)
    except subprocess.TimeoutExpired:
        return None


configured = run(["cmake", "-S", str(copy), "-B", str(build), "-G", "Ninja", "-DCMAKE_BUILD_TYPE=RelWithDebInfo",
                  "-DHOLDFAST_COMPILER=OFF", f"-DCMAKE_CXX_COMPILER={arguments.compiler}",
                  f"-DCMAKE_C_COMPILER={arguments.c_compiler}"])
if configured.returncode != 0:
    sys.exit(configured.stdout + configured.stderr)
if (first := built()).returncode != 0:
    sys.exit(first.stdout + first.stderr)
if (true_code := passes()) is None or true_code.returncode != 0:
    sys.exit("the true code is rejected:\n" + (true_code.stdout if true_code else "timed out"))
print("accepted: the true code", flush=True)

survivors, mutants = [], json.loads((here / "mutants.json").read_text())
for mutant in mutants:
    file = copy / mutant["file"]
    text = file.read_text()
    if text.count(mutant["old"]) != 1:
        sys.exit(f"{mutant['name']}: its place in {mutant['file']} is there {text.count(mutant['old'])} times")
    file.write_text(text.replace(mutant["old"], mutant["new"]))
    start = time.monotonic()
    if (made := built()).returncode != 0:
        sys.exit(f"{mutant['name']}: does not build\n{made.stdout}")
    built_at = time.monotonic()
    verdict = passes()
    rejected = verdict is None or verdict.returncode != 0
    print(f"{'rejected' if rejected else 'SURVIVED'} in {time.monotonic() - built_at:4.1f} s "
          f"(built in {built_at - start:4.1f} s): {mutant['name']}", flush=True)
    if not rejected:
        survivors.append(mutant["name"])
    file.write_text(text)
print(f"mutants: {len(mutants)} rejected: {len(mutants) - len(survivors)}")
sys.exit(1 if survivors else 0)
