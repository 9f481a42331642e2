#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The study gives the same bytes in any order and beside any other work, and finds no violation.
Its bands hold except for those that the report explains. The duration of a run is in one file of
the report's, in two lines."""
import json
import pathlib
import subprocess
import sys
import tempfile

import report


SUMMARY = ["slpmt_over_fg", "traffic_reduction", "over_atom", "over_ede", "line_granularity", "seconds",
           "accesses_per_second", "crash_points", "violations", "mutants", "mutants_rejected"]


# This list may only shrink.
MISSED = {"SLPMT/ATOM", "SLPMT/EDE", "FG/ATOM", "FG/EDE", "hashtable, LZ", "hashtable, LG", "kv, SLPMT/EDE, 16 B values",
          "kv-ctree, SLPMT/EDE", "kv-rtree, SLPMT/EDE", "hashtable's growth with the latency over the others'",
          *(f"{w}: least step of the gain with value size" for w in ("hashtable", "rbtree", "avl"))}


def check_latency(study):
    """Fig. 12: flat where insertions follow each other, because all of the time is the latency; not flat with a caller between."""
    for workload in report.KERNELS:
        assert abs(report.growth(study, workload, 0) - 1) < 0.01, workload
        assert report.growth(study, workload, 4000) > 1.05, workload
        for technique in ("FG", "SLPMT"):
            part, error = report.of_latency(study, workload, technique, 0)
            assert part > 0.95 and error < 0.01, (workload, technique, part, error)
    assert report.growth_over_others(study, 4000) > 1.02 and report.growth(study, "hashtable", 8000) > 1.2


def check_files(study, folder):
    """Runs that took different times leave the same figures; scripts find the summary first, with the times."""
    told = []
    for seconds in (7.5, 9.25):
        report.write_json(folder, study, {"seconds": seconds, "accesses_per_second": 1e8 / seconds})
        told.append([(folder / name).read_text() for name in ("slpmt.figures.json", "slpmt.json")])
    assert told[0][0] == told[1][0], "the figures depend on how long the run took"
    (figures, with_times), other = told[0], told[1][1].splitlines()
    assert list(json.loads(with_times))[:len(SUMMARY)] == SUMMARY, list(json.loads(with_times))
    lines = with_times.splitlines()
    assert len(lines) == len(other) and sum(a != b for a, b in zip(lines, other)) == 2
    assert [line for line in lines if not line.startswith((' "seconds"', ' "accesses_per_second"'))] == figures.splitlines()


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
        check_files(study, pathlib.Path(folder))
    assert all(p["violations"] == 0 and p["crashes"] > 0 for p in study.json["proofs"])
    assert len(study.json["mutants"]) >= 50 and all(m["rejected"] for m in study.json["mutants"])
    missed = report.render_bands(study)[1]
    assert not any("not explained" in line for line in missed.values()), missed
    assert missed.keys() == MISSED, missed.keys() ^ MISSED
    check_latency(study)
    assert study.json["area"]["cache_bytes_if_both_first_levels_have_the_fields"] == 3968
    print(f"{len(study.cells)} cells, {len(study.json['proofs'])} proofs, {len(missed)} misses, all explained")


if __name__ == "__main__":
    main()
