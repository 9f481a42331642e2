#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tables of docs/numbers.md, made of what 'holdfast bench ... --json' printed. The prose around them is written by hand.

usage: number_tables.py ROOT                            compare the page with its data, print what differs, exit 1 if anything does
       number_tables.py --write ROOT                    put the data into the page
       number_tables.py --run NAME ROOT -- COMMAND...   run COMMAND, keep what it prints in docs/numbers/NAME.json, then --write
       number_tables.py --self-test

docs/numbers/NAME.json is a list of the bench's objects, each with the commit and the command that it is of. A run replaces
the object with the same name and mode. The page must name each commit.

A table's heading is the page's own; the comment on the line before it says what the rows below are:

    <!-- numbers: NAME FIELD -->                          'bench section': a row for each engine, a column for each case
    <!-- numbers: NAME FIELD: ENGINE A/B ...; FIELD: ENGINE ... -->
                                                          'bench compare': a row for each structure, a column for each engine;
                                                          A/B is a ratio
"""
import json
import pathlib
import re
import subprocess
import sys

PAGE = "docs/numbers.md"
TABLE = re.compile(r"^<!-- numbers: ([\w-]+) ([^>]+?) -->\n(\|.*\n\|[-|: ]+\n)((?:\|.*\n)*)", re.M)
NAMES = {"hashmap": "hash map", "bptree": "B+tree", "skiplist": "skip list", "rbtree": "red-black tree", "avl": "AVL tree"}
DECIMALS = {"cpu_ns_per_op": 0, "log_bytes_per_op": 0, "flushes_per_op": 1}  # else 2


def grouped(value, decimals):
    return f"{value:,.{int(decimals)}f}".replace(",", " ")


def section_rows(measured, field):
    for i, row in enumerate(measured["rows"]):
        cells = []
        for case in row["cases"].values():
            if (value := case[field]) is not None:  # instructions of two threads are not counted
                ratio = case["ratio_to_first"]
                of_first = f" ({grouped(ratio, ratio < 10)})" if i and field == "ns" else ""
                cells.append(grouped(value, field == "ns" and value < 10) + of_first)
        yield [row["engine"], *cells]


def compared_rows(measured, columns):
    """'columns' is 'FIELD: ENGINE A/B ...; ...'."""
    wanted = [(field.strip(), each) for part in columns.split(";") for field, _, engines in [part.partition(":")]
              for each in engines.split()]
    for compared in measured:
        runs = {run["engine"]: run for run in compared["runs"]}
        cells = []
        for field, each in wanted:
            above, _, below = each.partition("/")
            value = runs[above][field] / (runs[below][field] if below else 1)
            cells.append(grouped(value, 2 if below else DECIMALS.get(field, 2)))
        name = compared["name"].removeprefix("compare ")
        yield [NAMES.get(name, name), *cells]


def rows(measured, what):
    return list(compared_rows(measured, what) if ":" in what else section_rows(measured[0], what))


def check(page, data_of):
    """The page with its data, and findings."""
    findings = []

    def made(found):
        name, what, heading, body = found.groups()
        line = page.count("\n", 0, found.start()) + 1
        measured = data_of(name)
        findings.extend(f"{PAGE}:{line}: expected the commit of docs/numbers/{name}.json, {commit}, in the text; found none"
                        for commit in sorted({each["commit"] for each in measured}) if commit not in page)
        now = rows(measured, what)
        if any(len(row) != heading.split("\n")[0].count("|") - 1 for row in now):
            findings.append(f"{PAGE}:{line}: the heading and docs/numbers/{name}.json differ in their number of columns")
        table = "".join("| " + " | ".join(row) + " |\n" for row in now)
        if table != body:
            findings.append(f"{PAGE}:{line}: the table is not what docs/numbers/{name}.json says (number_tables.py --write mends it)")
        return f"<!-- numbers: {name} {what} -->\n{heading}{table}"

    return TABLE.sub(made, page), findings


def dump(measured):
    """One line for each row, so that a change of a number is a change of its line."""
    text = json.dumps(measured, ensure_ascii=False)
    return re.sub(r'(\[|, )(?=\{"(?:engine|name|commit)")', lambda at: at[1].rstrip() + "\n", text) + "\n"


def run(path, root, command):
    printed = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    commit = subprocess.run(["git", "describe", "--always", "--dirty"], cwd=root, check=True, capture_output=True, text=True)
    kept = json.loads(path.read_text(encoding="utf-8")) if path.exists() else []
    same = [i for i, each in enumerate(kept) if (each["name"], each.get("mode")) == (printed["name"], printed.get("mode"))]
    at = same[0] if same else len(kept)
    kept[at:at + 1] = [{"commit": commit.stdout.strip(), "command": " ".join(command), **printed}]
    path.parent.mkdir(exist_ok=True)
    path.write_text(dump(kept), encoding="utf-8")


def self_test():
    case = {"ns": 1234.5, "ratio_to_first": 10.4, "instructions": None}
    files = {"cost": [{"commit": "abc", "name": "section", "rows": [
                {"engine": "none", "cases": {"a": case | {"instructions": 2}, "b": case}},
                {"engine": "undo", "cases": {"a": case, "b": case | {"ns": 1.62, "ratio_to_first": 0.44, "instructions": 9}}}]}],
             "maps": [{"commit": "abc", "name": "compare bptree", "runs": [
                 {"engine": "redo", "cpu_ns_per_op": 1000, "fences_per_op": 1}, {"engine": "undo", "cpu_ns_per_op": 1500.4, "fences_per_op": 3}]}]}
    page = ("Of commit abc.\n\n<!-- numbers: cost ns -->\n| | a | b |\n|---|---|---|\n| none | 1 234 | 1 234 |\n"
            "| undo | 1 234 (10) | 1.6 (0.4) |\n\n"
            "<!-- numbers: cost instructions -->\n| | one |\n|---|---|\n| none | 2 |\n| undo | 9 |\n\n"
            "<!-- numbers: maps cpu_ns_per_op: undo undo/redo; fences_per_op: redo -->\n| | x | y | z |\n|---|---|---|---|\n"
            "| B+tree | 1 500 | 1.50 | 1.00 |\n")
    assert check(page, files.get) == (page, []), check(page, files.get)
    for change in (("1.50", "1.60"), ("| undo | 9 |\n", "")):
        text, findings = check(page.replace(*change), files.get)
        assert text == page and len(findings) == 1, (change, findings)
    assert len(check(page.replace("commit abc", "some commit"), files.get)[1]) == 3
    assert len(check(page.replace("| | one |", "| | one | c |"), files.get)[1]) == 1
    assert json.loads(dump(files)) == files
    print("numbers: self-test passed")


def main():
    if sys.argv[1:] == ["--self-test"]:
        return self_test()
    if not sys.argv[1:] or (sys.argv[1].startswith("-") and sys.argv[1] not in ("--run", "--write")):
        sys.exit(__doc__)
    root = pathlib.Path(sys.argv[3] if sys.argv[1] == "--run" else sys.argv[-1]).resolve()
    folder, page = root / "docs/numbers", root / PAGE
    if sys.argv[1] == "--run":
        run(folder / f"{sys.argv[2]}.json", root, sys.argv[sys.argv.index("--") + 1:])
    read = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in folder.glob("*.json")}
    text, findings = check(page.read_text(encoding="utf-8"), read.__getitem__)
    findings += [f"docs/numbers/{name}.json: no table of {PAGE} is made of it" for name in read if f"<!-- numbers: {name} " not in text]
    if sys.argv[1] in ("--run", "--write"):
        page.write_text(text, encoding="utf-8")
        findings = [each for each in findings if "mends it" not in each]
    print("\n".join(findings) if findings else "numbers: nothing to report")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
