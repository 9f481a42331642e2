#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""SIMPO's applications leave the same natively, persistently, and cut short and gone on with; they learn something.

usage: applications_test.py PROGRAM NAME...
"""
import gzip
import json
import pathlib
import random
import subprocess
import sys
import tempfile

program, names = sys.argv[1], sys.argv[2:]


def write_digits(path):
    """Images of two kinds in the form of the real ones, which no build has to have."""
    draw = random.Random(1)
    with gzip.open(path, "wt") as out:
        for i in range(200):
            shows = i % 2
            pixels = [min(16, max(0, (12 if (p % 8 < 4) == (shows == 0) else 3) + draw.randint(-3, 3))) for p in range(64)]
            out.write(",".join(map(str, [*pixels, shows])) + "\n")


def run(name, *more):
    done = subprocess.run([program, name, "--rounds", "1", "--log-bytes", "4096", *more], capture_output=True, text=True,
                          check=False)
    assert done.returncode == 0, (name, done.stderr)  # what is left is compared there
    return json.loads(done.stdout)


with tempfile.TemporaryDirectory() as folder:
    digits, text = pathlib.Path(folder) / "digits.csv.gz", pathlib.Path(folder) / "text"
    write_digits(digits)
    text.write_text("".join(f"line {i * i}\n" for i in range(30000)))
    more = {"logistic": ["--data", digits, "--size", "3"], "rbm": ["--data", digits, "--size", "2"],
            "autoencoder": ["--data", digits, "--size", "4"],
            "bzip2": ["--data", text, "--size", "1"], "linpack": ["--size", "6"], "floyd": []}
    for name in names:
        if name == "stock_level":  # all of them count the same, or it says so
            found = run(name, "--size", "5")
            assert all(found[kind][store] > 0 for kind in ("get", "put") for store in ("simpo", "bdb", "bdb_ft")), found
            continue
        if name == "recovery":  # it compares what is left
            found = run(name, "--size", "20000")
            assert all(0 < one["kept_calls"] <= one["calls"] for kind in ("short", "long") for one in found[kind]), found
            continue
        found = run(name, *map(str, more.get(name, ["--size", "3000"])))
        assert found["hybrid_over_native"] > 0, found
        print(f"{name}: {found['steps']} steps, overhead {found['overhead_percent']:.0f} %")
        if name == "logistic":
            assert found["accuracy_on_what_it_learnt"] > 0.9, found
        if name in ("rbm", "autoencoder"):
            assert found["error_after"] < found["error_before"] / 2, found
    done = subprocess.run([program, "rbm", "--data", "/gone"], capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "python3-sklearn" in done.stderr, done.stderr
