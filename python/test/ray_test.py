#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ray actors whose nodes are killed have made each call once: examples/python/fleet.py, with Ray from PyPI.

usage: ray_test.py --build FOLDER --installed SITE-PACKAGES [--kills N]

FOLDER keeps an environment with Ray for the next run. SITE-PACKAGES has the package, as wheel_test.py has installed it. Status
77: there is no package, or PyPI has no Ray for this Python, or cannot be reached.
"""
import argparse
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

EXAMPLE = pathlib.Path(__file__).resolve().parents[2] / "examples/python/fleet.py"


def skip(why):
    print(f"skipped: {why}")
    sys.exit(77)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", required=True, type=pathlib.Path)
    parser.add_argument("--installed", required=True, type=pathlib.Path)
    parser.add_argument("--kills", default="2")
    options = parser.parse_args()
    if not (options.installed / "holdfast").exists():
        skip(f"expected the package in {options.installed}: run the test python.wheel first")
    environment = options.build / "ray"
    python = environment / "bin/python"
    if not python.exists() or subprocess.run([python, "-c", "import ray"], stderr=subprocess.DEVNULL).returncode != 0:
        shutil.rmtree(environment, ignore_errors=True)
        subprocess.run([sys.executable, "-m", "venv", environment], check=True)
        if subprocess.run([python, "-m", "pip", "install", "--quiet", "--retries", "1", "--timeout", "20", "ray"]).returncode != 0:
            skip("pip cannot install ray")
    with tempfile.TemporaryDirectory(prefix="holdfast-ray-", dir="/dev/shm") as folder:
        ran = subprocess.run([python, "-B", EXAMPLE, "--kills", options.kills, folder], timeout=800,
                             env={**os.environ, "PYTHONPATH": str(options.installed), "RAY_DEDUP_LOGS": "1", "RAY_USAGE_STATS_ENABLED": "0"})
    sys.exit(ran.returncode)


main()
