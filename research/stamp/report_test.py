#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The report has every engine's value in each figure, with the paper's beside it, and the engines agree.

usage: report_test.py BUILD
"""
import json
import pathlib
import subprocess
import sys
import tempfile

import report


def main():
    with tempfile.TemporaryDirectory() as out:
        done = subprocess.run([sys.executable, "-B", report.__file__, "--build", sys.argv[1], "--out", out, "--rounds", "1", "--quick",
                               "--figures", "11", "12", "13"], capture_output=True, text=True, timeout=240, check=False)
        assert done.returncode == 0, done.stderr
        found = json.loads((pathlib.Path(out) / "stamp.json").read_text())
        said = (pathlib.Path(out) / "stamp.md").read_text()
    sizes = report.Sizes(quick=True)
    assert len(found["rounds"][0]) == len(report.cells(sizes, {11, 12, 13})), "a cell is missing"
    for figure in ("Fig. 11", "Fig. 12", "Fig. 13"):
        assert f"## {figure}" in said, said
    for paper in ("+74 %", "+68 %", "+42 %", "+27 %", "+17 %"):
        assert paper in said, f"the paper's {paper} is missing"
    assert "for the same work: yes" in said, said
    for line in said.splitlines():
        assert "| - |" not in line, f"no value: {line}"
    print(f"{len(found['rounds'][0])} cells")


if __name__ == "__main__":
    main()
