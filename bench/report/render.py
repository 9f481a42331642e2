#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Makes tables and plots of a run's bench.json once more, beside it."""
import argparse
import json
import pathlib
import sys

import tables


def write_tables(results, out):
    out.mkdir(parents=True, exist_ok=True)
    (out / "bench.json").write_text(json.dumps(results, indent=1) + "\n")
    (out / "bench.md").write_text(tables.text_of(results))


def draw(results, out):
    try:
        import plots
    except ImportError:
        print("plots are left out: they need python3-matplotlib", file=sys.stderr)
    else:
        plots.draw(results, out)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=pathlib.Path, help="folder with bench.json")
    options = parser.parse_args()
    results = json.loads((options.out / "bench.json").read_text())
    write_tables(results, options.out)
    draw(results, options.out)


if __name__ == "__main__":
    main()
