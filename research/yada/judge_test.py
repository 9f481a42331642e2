#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""CGAL finds the refined mesh Delaunay, and rejects one in which an edge was turned or an element is missing.

usage: judge_test.py PATH-OF-HOLDFAST-YADA PATH-OF-YADA_JUDGE
"""
import os
import subprocess
import sys
import tempfile

SKIPPED = 77


def judged(judge, path, angle):
    done = subprocess.run([judge, path, str(angle)], capture_output=True, text=True, timeout=120, check=False)
    return done.returncode == 0, done.stdout + done.stderr


def turned(lines):
    """The elements with the edge between two neighbours turned, if they stay in order."""
    def corners(line):
        n = list(map(int, line.split()))
        return [(n[0], n[1]), (n[2], n[3]), (n[4], n[5])]

    def area(a, b, c):
        return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])

    first = corners(lines[0])
    for i, line in enumerate(lines[1:], 1):
        other = corners(line)
        shared = [p for p in first if p in other]
        if len(shared) != 2:
            continue
        apex = next(p for p in first if p not in shared)
        across = next(p for p in other if p not in shared)
        left = first[(first.index(apex) + 1) % 3]
        right = first[(first.index(apex) + 2) % 3]
        if area(apex, left, across) > 0 and area(apex, across, right) > 0:
            made = [(apex, left, across), (apex, across, right)]
            return [" ".join(f"{x} {y}" for x, y in one) for one in made] + lines[1:i] + lines[i + 1:]
    raise AssertionError("no edge can be turned")


def main():
    program, judge = sys.argv[1:]
    if not os.path.exists(judge):
        print("skipped: yada_judge is not built, it needs libcgal-dev")
        sys.exit(SKIPPED)
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        elements = os.path.join(folder, "elements")
        for engine, angle in (("none", 15), ("auto", 25), ("clobber", 30)):
            subprocess.run([program, os.path.join(folder, f"pool{angle}"), "--engine", engine, "--angle", str(angle), "--points", "3000",
                            "--elements", elements], check=True, stdout=subprocess.DEVNULL, timeout=120)
            good, said = judged(judge, elements, angle)
            assert good, said
            print(f"{engine}, {angle} degrees: {said.strip()}")
        with open(elements, encoding="ascii") as file:
            lines = file.read().splitlines()
        for wrong, why in ((lines[1:], "another number"), (turned(lines), "not Delaunay"), (lines, "too small")):
            with open(elements, "w", encoding="ascii") as file:
                file.write("\n".join(wrong) + "\n")
            good, said = judged(judge, elements, 40 if why == "too small" else 30)
            assert not good and why in said, said


if __name__ == "__main__":
    main()
