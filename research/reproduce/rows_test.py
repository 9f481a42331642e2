#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Every row of what the papers describe has its code, test and guide in the tree and names figures that are on the page; every
figure and table of the papers is on the page; and what is not drawn does not grow."""
import json

import figures

ROWS = {"C": 17, "J": 13, "M": 10, "L": 11, "S": 13}
ROMAN = ("I", "II", "III")
# Figures and tables of each paper, as its captions count them.
OF_PAPER = {"Clobber": [f"Fig. {n}" for n in range(1, 15)], "JUSTDO": [f"Fig. {n}" for n in range(1, 12)],
            "MOD": [f"Fig. {n}" for n in range(1, 12)] + [f"Table {n}" for n in range(1, 4)],
            "SLPMT": [f"Fig. {n}" for n in range(1, 15)] + [f"Table {n}" for n in ROMAN],
            "SIMPO": [f"Fig. {n}" for n in range(1, 25)] + [f"Table {n}" for n in range(1, 9)]}
# This list may only shrink.
NOT_DRAWN = set()


def missing_in(rows, keys):
    """What a row lacks, a line each."""
    for name in (f"{letter}{n}" for letter, count in ROWS.items() for n in range(1, count + 1)):
        if name not in rows:
            yield f"research/rows.json has no row {name}: say where its code, test and guide are"
            continue
        row = rows[name]
        for part in ("code", "test", "guide"):
            if not row[part]:
                yield f"research/rows.json: {name} has no {part}"
            yield from (f"research/rows.json: {name}, {part}: no {place} in the tree" for place in row[part]
                        if not (figures.ROOT / place).exists())
        yield from (f"research/rows.json: {name}: no figure {key} on the page" for key in row["figure"] if key not in keys)


def check(rows, found):
    keys = {figure.key for figure in found}
    yield from missing_in(rows, keys)
    if len(keys) != len(found):
        yield "two figures have one name"
    for paper, names in OF_PAPER.items():
        there = [figure.name for figure in found if figure.paper == paper]
        yield from (f"{paper} has no {name} on the page" for name in names if name not in there)
    for figure in found:
        if figure.kind not in figures.KINDS:
            yield f"{figure.key} is {figure.kind}: one of {', '.join(figures.KINDS)} is expected"
        if (figure.draw is None) != (figure.kind in ("diagram", "setup", "not drawn")):
            yield f"{figure.key} is {figure.kind}, and {'nothing' if figure.draw is None else 'something'} draws it"
        if figure.kind in ("diagram", "setup") and not (figures.ROOT / figure.why).exists():
            yield f"{figure.key}: no {figure.why} in the tree"
    not_drawn = {figure.key for figure in found if figure.kind == "not drawn"}
    if not_drawn != NOT_DRAWN:
        yield f"not drawn: {sorted(not_drawn)}; the list, which may only shrink, has {sorted(NOT_DRAWN)}"


def main():
    rows = json.loads((figures.ROOT / "research/rows.json").read_text())
    found = list(figures.all_figures())
    assert not (faults := list(check(rows, found))), "\n".join(faults)
    # A row without an entry, or with a place that is gone, is found.
    without = {name: row for name, row in rows.items() if name != "S13"}
    assert [fault for fault in check(without, found) if "no row S13" in fault]
    assert list(check(rows | {"C1": rows["C1"] | {"test": ["src/gone_test.cpp"]}}, found))
    assert list(check(rows | {"C1": rows["C1"] | {"guide": []}}, found))
    assert list(check(rows, found[1:]))
    print(f"{len(rows)} rows, {len(found)} figures and tables, {len(NOT_DRAWN)} not drawn")


if __name__ == "__main__":
    main()
