#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The study gives the same bytes whatever runs beside what, finds no violation, and its bands hold but
for those that the report explains."""
import pathlib
import subprocess
import sys
import tempfile

import report


def main():
    program = sys.argv[1]
    with tempfile.TemporaryDirectory() as folder:
        texts = []
        for jobs in ("1", "2"):
            file = pathlib.Path(folder) / f"{jobs}.json"
            subprocess.run([program, "--jobs", jobs, "--out", file], check=True)
            texts.append(file.read_text())
    assert texts[0] == texts[1], "two runs differ"
    study = report.Study(texts[0])
    assert all(p["violations"] == 0 and p["crashes"] > 0 for p in study.json["proofs"])
    assert len(study.json["mutants"]) >= 50 and all(m["rejected"] for m in study.json["mutants"])
    missed = report.render_bands(study)[1]
    assert not any("not explained" in line for line in missed), missed
    known = ("hashtable, LZ", "hashtable: least step", "rbtree: least step", "avl: least step")
    assert all(line.startswith(tuple(f"- {name}" for name in known)) for line in missed), missed
    assert study.json["area"]["cache_bytes_if_both_first_levels_have_the_fields"] == 3968
    print(f"{len(study.cells)} cells, {len(study.json['proofs'])} proofs, {len(missed)} misses, all explained")


if __name__ == "__main__":
    main()
