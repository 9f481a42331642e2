#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The command goes on where it was stopped, and says what failed. A program of two lines stands in for the benchmarks."""
import json
import pathlib
import subprocess
import sys
import tempfile

import figures

FLUSHES = {"instruction": "clwb", "at_once": [1, 16], "ns_a_line": [100, 25], "serial_percent": 20}


def command(build, out, *only):
    done = subprocess.run([sys.executable, "-B", figures.ROOT / "research/reproduce/reproduce.py", "--build", build, "--out", out,
                           "--size", "smoke", "--only", *only], capture_output=True, text=True, check=False)
    return done.returncode, done.stderr


def program(place, status, said):
    place.write_text(f"#!/bin/sh\necho run >>{place}.runs\necho '{json.dumps(said)}'\nexit {status}\n")
    place.chmod(0o755)


def runs(place):
    runs_file = pathlib.Path(f"{place}.runs")
    return runs_file.read_text().count("run") if runs_file.exists() else 0


def main():
    with tempfile.TemporaryDirectory() as folder:
        build, out = pathlib.Path(folder) / "build", pathlib.Path(folder) / "results"
        status, said = command(build, out, "classify")
        assert status == 2 and "no bin/holdfast" in said, said
        (build / "bin").mkdir(parents=True)
        classify, flushes = build / "bin/holdfast", build / "bin/bench_flushes"
        program(classify, 0, {"classes": []})
        program(flushes, 3, FLUSHES)
        status, said = command(build, out, "classify", "flushes")
        assert status == 1 and said.rstrip().endswith("failed: flushes mod-fig-4"), said
        page = (out / "index.html").read_text()
        assert page.count("<section") == len(list(figures.all_figures())) + 1 and "Not measured in this run" in page
        # Stopped while it wrote down a result: what is half there counts for nothing.
        (out / "studies/smoke/flushes.part").write_text('{"study":')
        program(flushes, 0, FLUSHES)
        assert command(build, out, "classify", "flushes")[0] == 0
        assert (runs(classify), runs(flushes)) == (1, 2), "a finished study was run again, or an unfinished one was not"
        record = out / "studies/smoke/flushes.json"
        record.write_text(json.dumps(json.loads(record.read_text()) | {"commit": "another"}))
        assert command(build, out, "flushes")[0] == 0
        assert (runs(classify), runs(flushes)) == (1, 3), "a result of another commit was taken"
    print("the command goes on, and says what failed")


if __name__ == "__main__":
    main()
