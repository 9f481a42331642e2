#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Every figure and table of the five papers on one page: `make reproduce`, results/index.html.

Runs the studies (studies.py) whose results for this commit are not there, then writes the page (page.py). A run that was
stopped goes on with the study that it was stopped in. Results lie in OUT/studies/SIZE/NAME.json.
"""
import argparse
import hashlib
import json
import os
import pathlib
import platform
import subprocess
import sys
import tempfile
import time

import page
import studies
from figures import ROOT

from compile_time import spent_by_children  # in bench/report, where figures.py looks


def git(*arguments):
    return subprocess.run(["git", "-C", ROOT, *arguments], capture_output=True, text=True, check=False).stdout


def commit():
    """The commit, and if the tree differs from it, a digest of how."""
    name = git("rev-parse", "--short", "HEAD").strip() or "unknown"
    changes = git("diff", "HEAD")
    return name if not changes else f"{name}+{hashlib.sha256(changes.encode()).hexdigest()[:8]}"


def machine():
    with open("/proc/cpuinfo") as lines:
        cpu = next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.machine())
    return f"{cpu}, {os.cpu_count()} processors, Linux {platform.release()}"


def run(study, size, build):
    """What the study says, or None, and whether it succeeded: one that did not may have left a part."""
    with tempfile.TemporaryDirectory() as out:
        line = list(map(str, study.command(size, build, pathlib.Path(out))))
        log = subprocess.run(line, capture_output=True, text=True, check=False, cwd=ROOT)
        if log.returncode != 0:
            print(f"failed: {' '.join(line)}\n{log.stdout[-1000:]}{log.stderr[-2000:]}", file=sys.stderr)
        left = pathlib.Path(out) / study.result
        text = left.read_text() if left.is_file() else "" if study.result or log.returncode != 0 else log.stdout
    return json.loads(text) if text else None, log.returncode == 0


def kept(file, at):
    """A finished study's record, if it is of this commit."""
    if not file.exists():
        return None
    record = json.loads(file.read_text())
    return record if record["commit"] == at and record["finished"] else None


def keep(file, record):
    """Whole or not at all, however the run ends."""
    file.parent.mkdir(parents=True, exist_ok=True)
    beside = file.with_suffix(".part")
    beside.write_text(json.dumps(record) + "\n")
    beside.replace(file)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, required=True, help="build/release")
    parser.add_argument("--out", type=pathlib.Path, required=True, help="where the page goes")
    parser.add_argument("--size", choices=studies.SIZES, default="whole", help="quick: a quarter of an hour; smoke: that it works")
    parser.add_argument("--only", nargs="*", choices=studies.STUDIES, default=list(studies.STUDIES), help="these studies; none: only the page")
    given = parser.parse_args()
    if not (given.build / "bin/holdfast").exists():
        parser.error(f"{given.build} has no bin/holdfast: build the programs, or say 'make reproduce'")
    size, at, records, began = studies.SIZES[given.size], commit(), {}, time.monotonic()
    build, out = given.build.resolve(), given.out.resolve()
    for name, study in studies.STUDIES.items():
        file = out / "studies" / size.name / f"{name}.json"
        record = kept(file, at)
        if record is None and name in given.only:
            print(f"{time.monotonic() - began:5.0f} s  {name}", file=sys.stderr, flush=True)
            load, start, spent = f"{os.getloadavg()[0]:.1f}", time.monotonic(), spent_by_children()
            said, finished = run(study, size, build)
            if said is None:
                continue
            record = {"study": name, "size": size.name, "commit": at, "machine": machine(), "processors": os.cpu_count(),
                      "load": load, "seconds": round(time.monotonic() - start),
                      "processor_seconds": round(spent_by_children() - spent), "finished": finished, "said": said}
            keep(file, record)
        if record:
            records[name] = record
    failed = page.write(records, out)
    print(f"{out / 'index.html'}: {len(records)} of {len(studies.STUDIES)} studies, {time.monotonic() - began:.0f} s")
    if failed:
        print("not drawn:", *(f"{figure.key}: {why}" for figure, why in failed), sep="\n", file=sys.stderr)
    # What was not asked for may be missing.
    bad = [name for name in given.only if not records.get(name, {}).get("finished")]
    bad += [figure.key for figure, _ in failed if set(figure.studies) <= set(given.only)]
    sys.exit(f"failed: {' '.join(bad)}" if bad else 0)


if __name__ == "__main__":
    main()
