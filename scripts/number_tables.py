#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tables of docs/numbers.md, made of what benchmarks printed, each with its command, commit, machine and load. No table is written by hand.

usage: number_tables.py ROOT                            compare the page with its data, print what differs, exit 1 if anything does
       number_tables.py --write ROOT                    put the data into the page
       number_tables.py --run NAME ROOT -- COMMAND...   run COMMAND, keep what it prints in docs/numbers/NAME.json, then --write
       number_tables.py --self-test

docs/numbers/NAME.json is a list of what commands printed (--json). A run replaces the object with the same name, engine, mode and batch. A
program that prints no JSON has an object with `rows`, each a list of cells. Where each row is of another command, the cells say so.

A table's heading is the page's own; the comment on the line before it says what the rows below are:

    <!-- numbers: NAME -->                                the cells as they are kept
    <!-- numbers: NAME FIELD -->                          'bench section': a row for each engine, a column for each case
    <!-- numbers: NAME FIELD: ENGINE A/B ...; FIELD: ENGINE ... -->
                                                          'bench compare' and 'bench plain': a row for each structure, a column
                                                          for each engine; A/B is a ratio. 'bench restart': a row for each
                                                          engine, with one column, "each"
"""
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys

PAGE = "docs/numbers.md"
TABLE = re.compile(r"^<!-- numbers: ([\w-]+)(?: ([^>]+?))? -->\n(\|.*\n\|[-|: ]+\n)((?:\|.*\n)*)(\n`.*\n)?", re.M)
BY_HAND = re.compile(r"(?<!-->\n)^\|.*\n\|[-|: ]+$", re.M)
NAMES = {"hashmap": "hash map", "bptree": "B+tree", "skiplist": "skip list", "rbtree": "red-black tree", "avl": "AVL tree"}
DECIMALS = {"cpu_ns_per_op": 0, "ops_per_second": 0, "ns": 0, "log_bytes_per_op": 0, "flushes_per_op": 1, "lost": 0}  # else 2
MANY_ROWS = 12  # from here on the medians stand below
BUSY = 1.5  # processes that wanted a core when the run began


def grouped(value, decimals):
    return f"{value:,.{int(decimals)}f}".replace(",", " ")


def section_rows(measured, field):
    for i, row in enumerate(measured["rows"]):
        cells = []
        for case in row["cases"].values():
            if (value := case.get(field)) is not None:  # instructions of two threads are not counted
                ratio = case["ratio_to_first"]
                of_first = f" ({grouped(ratio, ratio < 10)})" if i and field == "ns" else ""
                cells.append(grouped(value, field == "ns" and value < 10) + of_first)
        yield [row["engine"], *cells]


def compared(measured):
    """(structure, or length of batches, and engine -> its figures) of each."""
    batches = len({each.get("batch") for each in measured}) > 1
    for each in measured:
        if "runs" in each:
            name = grouped(each["batch"], 0) if batches else each["name"].removeprefix("compare ")
            yield name, {run["engine"]: run for run in each["runs"]}
        elif "engine" in each:
            yield f"`{each['engine']}`, `{each['mode']}`", {"each": each}
        else:
            yield from ((row["name"], row) for row in each["rows"])


def compared_rows(measured, columns):
    """'columns' is 'FIELD: ENGINE A/B ...; ...'."""
    wanted = [(field.strip(), *each.partition("/")) for part in columns.split(";") for field, _, engines in [part.partition(":")]
              for each in engines.split()]
    made = []
    for name, runs in compared(measured):
        values = [None if above not in runs or (below and below not in runs) else runs[above][field] / (runs[below][field] if below else 1)
                  for field, above, _, below in wanted]
        made.append([NAMES.get(name, name), *values])
    if len(made) >= MANY_ROWS:
        made.append(["**median**", *(statistics.median(column) for column in list(zip(*made))[1:])])
    for name, *values in made:
        yield [name, *("" if value is None else grouped(value, 2 if below else DECIMALS.get(field, 2))
                       for value, (field, _, _, below) in zip(values, wanted))]


def rows(measured, what):
    if not what:
        return [row for each in measured for row in each["rows"]]
    return list(compared_rows(measured, what) if ":" in what else section_rows(measured[0], what))


def conditions(measured):
    """How the figures came about: of several runs, what differs between them is left out of the command."""
    if "command" not in measured[0]:
        return ""
    words = [each["command"].removesuffix(" --json").split() for each in measured]
    command = words[0]
    if len({len(each) for each in words}) == 1:
        command = [same.pop() if len(same) == 1 else "…" for same in map(set, zip(*words))]
    else:  # as for what one run alone has besides
        command = [word if all(word in each for each in words) else "…" for word in words[0]]
    commits = ", ".join(f"`{commit}`" for commit in dict.fromkeys(each["commit"] for each in measured))
    load = max(each["load"] for each in measured)
    machine = ", ".join(dict.fromkeys(each["machine"] for each in measured))
    return f"`{' '.join(command)}`, commit {commits}, {machine}, " + (f"**busy** (load {load:.0f})" if load > BUSY else "idle") + ".\n"


def check(page, data_of):
    """The page with its data, and findings."""
    findings = []

    def made(found):
        name, what, heading, body, said = found.groups()
        line = page.count("\n", 0, found.start()) + 1
        measured = data_of(name)
        now = rows(measured, what)
        if any(len(row) != heading.split("\n")[0].count("|") - 1 for row in now):
            findings.append(f"{PAGE}:{line}: the heading and docs/numbers/{name}.json differ in their number of columns")
        table = "".join("| " + " | ".join(row) + " |\n" for row in now)
        how = conditions(measured)
        below = how and "\n" + how
        if (table, below) != (body, said or ""):
            findings.append(f"{PAGE}:{line}: the table is not what docs/numbers/{name}.json says (number_tables.py --write mends it)")
        return f"<!-- numbers: {name}{' ' + what if what else ''} -->\n{heading}{table}{below}"

    findings += [f"{PAGE}:{page.count(chr(10), 0, found.start()) + 1}: expected a table that is made of docs/numbers, found one by hand"
                 for found in BY_HAND.finditer(page)]
    return TABLE.sub(made, page), findings


def kept(printed):
    """Without the single rounds, what was not measured, and what the command says of a run."""
    if isinstance(printed, list):
        return [kept(each) for each in printed]
    if not isinstance(printed, dict):
        return printed
    if "cpu_ns_per_op" in printed:
        printed = {key: value for key, value in printed.items() if key in ("engine", "ops_per_second") or key.endswith("_per_op")}
    if "fences_per_section" in printed:
        printed = {key: printed[key] for key in ("ns_of_rounds", "fences_per_section", "log_entries_per_section")}
    if "ns_of_rounds" in printed:
        printed = {"ns": statistics.median(printed["ns_of_rounds"]), **printed}
    return {key: round(value, 4) if isinstance(value, float) else kept(value) for key, value in printed.items()
            if value is not None and not key.endswith(("_of_rounds", "_each")) and "_over_" not in key}


def dump(measured):
    """One line for each row, so that a change of a number is a change of its line."""
    text = json.dumps(measured, ensure_ascii=False)
    return re.sub(r'(\[|, )(?=\{"(?:engine|name|commit)"|\["[^"]*", )', lambda at: at[1].rstrip() + "\n", text) + "\n"


def of(printed):
    return tuple(printed.get(key) for key in ("name", "engine", "mode", "batch"))


def put(path, root, command, load, printed):
    commit = subprocess.run(["git", "describe", "--always", "--dirty"], cwd=root, check=True, capture_output=True, text=True)
    model = re.search(r"model name\s*: (.*)", pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8"))
    machine = f"{os.cpu_count()}-core {model[1] if model else 'machine'}"
    if "runs" in printed:
        printed = {"mode": printed["runs"][0].get("mode"), "batch": printed["runs"][0].get("batch", 1), **printed}
    all_kept = json.loads(path.read_text(encoding="utf-8")) if path.exists() else []
    same = [i for i, each in enumerate(all_kept) if of(each) == of(printed)]
    at = same[0] if same else len(all_kept)
    all_kept[at:at + 1] = [{"commit": commit.stdout.strip(), "command": " ".join(command), "machine": machine, "load": load, **kept(printed)}]
    path.parent.mkdir(exist_ok=True)
    path.write_text(dump(all_kept), encoding="utf-8")


def run(path, root, command):
    load = round(os.getloadavg()[0], 1)
    put(path, root, command, load, json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout))


def self_test():
    case = {"ns": 1234.5, "ratio_to_first": 10.4}
    how = {"commit": "abc", "command": "holdfast bench section --json", "machine": "2 cores", "load": 0.4}
    files = {"cost": [how | {"name": "section", "rows": [
                {"engine": "none", "cases": {"a": case | {"instructions": 2}, "b": case}},
                {"engine": "undo", "cases": {"a": case, "b": case | {"ns": 1.62, "ratio_to_first": 0.44, "instructions": 9}}}]}],
             "maps": [how | {"name": "compare bptree", "command": "bench bptree", "load": 7.6, "runs": [
                 {"engine": "redo", "cpu_ns_per_op": 1000, "fences_per_op": 1}, {"engine": "undo", "cpu_ns_per_op": 1500.4, "fences_per_op": 3}]},
                      how | {"name": "compare avl", "command": "bench avl", "runs": [
                          {"engine": "redo", "cpu_ns_per_op": 1, "fences_per_op": 1}]}],
             "given": [how | {"name": "kv", "rows": [["sets", "1.28"]]}], "single": [{"name": "kills", "rows": [["a", "1", "abc"]]}]}
    below = "\n`holdfast bench section`, commit `abc`, 2 cores, idle.\n"
    page = ("<!-- numbers: cost ns -->\n| | a | b |\n|---|---|---|\n| none | 1 234 | 1 234 |\n"
            f"| undo | 1 234 (10) | 1.6 (0.4) |\n{below}\n"
            f"<!-- numbers: cost instructions -->\n| | one |\n|---|---|\n| none | 2 |\n| undo | 9 |\n{below}\n"
            "<!-- numbers: maps cpu_ns_per_op: undo undo/redo; fences_per_op: redo -->\n| | x | y | z |\n|---|---|---|---|\n"
            "| B+tree | 1 500 | 1.50 | 1.00 |\n| AVL tree |  |  | 1.00 |\n\n`bench …`, commit `abc`, 2 cores, **busy** (load 8).\n\n"
            f"<!-- numbers: given -->\n| client | ratio |\n|---|---|\n| sets | 1.28 |\n{below}\n"
            "<!-- numbers: single -->\n| | | commit |\n|---|---|---|\n| a | 1 | abc |\n")
    assert check(page, files.get) == (page, []), check(page, files.get)
    for change in (("1.50", "1.60"), ("| undo | 9 |\n", ""), ("load 8", "load 1")):
        text, findings = check(page.replace(*change), files.get)
        assert text == page and len(findings) == 1, (change, findings)
    assert len(check(page + "\n| by | hand |\n|---|---|\n", files.get)[1]) == 1
    assert len(check(page.replace("| | one |", "| | one | c |"), files.get)[1]) == 1
    assert json.loads(dump(files)) == files
    assert kept({"name": "a", "rows": [{"b": None, "ns_of_rounds": [3.0, 1.0, 2.0]}]}) == {"name": "a", "rows": [{"ns": 2.0}]}
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
