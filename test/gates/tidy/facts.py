#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Facts about engines, modes and verbs stand once, in the code; the pages that repeat them agree with it.

usage: facts.py ROOT          compare, print what differs, exit 1 if anything does
       facts.py --write ROOT  put the code's facts into the pages
       facts.py --self-test

Engines are the rows of include/holdfast/abi/engines.def, modes those of 'enum class mode' in holdfast/options.hpp,
verbs those of 'enum class recovery_verb' in holdfast/recovery.hpp.

A page says <!-- engines --> on the line before a table whose first column names an engine in
backticks. The table has a row for each engine of the code, and in a column whose heading is one of
FACTS, its cells are the code's. The other columns are the page's own. <!-- modes --> is the same
for modes, which have no columns. A program in C gets the same report of a recovery (struct
hf_recovered) as one in C++, with a count for each verb.
"""
import pathlib
import re
import sys

TABLE = re.compile(r"^<!-- (engines|modes) -->\n((?:\|.*\n)+)", re.M)
PAGES = {"README.md": "engines", "docs/papers.md": "engines", "docs/guide/choosing-an-engine.md": "engines",
         "docs/guide/when-is-it-durable.md": "engines",
         "docs/internals/design.md": "modes", "docs/guide/durability-modes.md": "modes"}
FACTS = {  # the column's heading: what it says of a row of engines.def
    "what is logged": lambda row: row["logs"],
    "recovery verb": lambda row: row["verb"].replace("_", "-" if row["verb"] == "re_execute" else " "),
    "after a crash": lambda row: row["build"].replace("_", " "),
    "plugin": lambda row: {"none": "no", "steps": "yes, or by hand"}.get(row["sections"], "yes"),
}
COUNTED = {"discard": "discarded", "roll_back": "rolled_back", "replay": "replayed", "re_execute": "re_executed",
           "resume": "resumed"}


def engines(text):
    rows = re.findall(r'^HF_ENGINE_ROW\((\w+), (\w+), (\w+), (\w+), (\w+), "([^"]*)"\)$', text, re.M)
    return {row[0]: dict(zip(("name", "bit", "sections", "verb", "build", "logs"), row)) for row in rows}


def enumerators(text, name):
    body = re.search(rf"enum class {name}\b[^{{]*{{(.*?)}};", text, re.S)[1]
    return re.findall(r"\w+", re.sub(r"//[^\n]*|=[^,]*", "", body))


def fields(text, name):
    """The counts that 'struct name' has: its members of type uint32_t."""
    body = re.search(rf"struct {name} {{(.*?)^}};", text, re.M | re.S)[1]
    body = re.sub(r"//[^\n]*|/\*.*?\*/", "", body, flags=re.S)
    found = re.findall(r"^\s*(?:std::)?uint32_t ([^;(]*);", body, re.M)
    return [re.sub(r"\s*=.*", "", each).strip() for line in found for each in line.split(",")]


def cells(line):
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]


def named(cell):
    found = re.search(r"`(\w+)`", cell)
    return found and found[1]


def corrected(table, kind, known):
    """The table with the code's facts; what is wrong with it; the names of the code that it lacks or makes up."""
    lines = table.splitlines()
    heading = cells(lines[0])
    wrong, out, names = [], lines[:2], []
    for line in lines[2:]:
        row, name = cells(line), named(line)
        names.append(name)
        for column, title in enumerate(heading):
            if kind == "engines" and name in known and title in FACTS and row[column] != (want := FACTS[title](known[name])):
                wrong.append(f"{name}, {title}: expected '{want}', found '{row[column]}'")
                row[column] = want
        out.append("| " + " | ".join(row) + " |" if row != cells(line) else line)
    wrong_names = [f"no row for {name}" for name in known if name not in names]
    wrong_names += [f"a row for {name}, which the code does not have" for name in names if name not in known]
    return "\n".join(out) + "\n", wrong, wrong_names


def check_page(path, text, known):
    """The page with the code's facts, and findings: (text, whether --write mends it)."""
    findings, out, last = [], [], 0
    for table in TABLE.finditer(text):
        line = text.count("\n", 0, table.start()) + 1
        body, wrong, wrong_names = corrected(table[2], table[1], known[table[1]])
        findings += [(f"{path}:{line}: {each}", True) for each in wrong]
        findings += [(f"{path}:{line}: {each}", False) for each in wrong_names]
        out += [text[last:table.start(2)], body]
        last = table.end()
    if path in PAGES and f"<!-- {PAGES[path]} -->\n|" not in text:
        findings.append((f"{path}:1: expected a table of {PAGES[path]} (<!-- {PAGES[path]} -->), found none", False))
    return "".join(out) + text[last:], findings


def check_report(read):
    """A program in C learns of a recovery what one in C++ learns."""
    verbs = enumerators(read("include/holdfast/recovery.hpp"), "recovery_verb")
    report = fields(read("include/holdfast/recovery.hpp"), "recovery_report")
    counts = fields(read("include/holdfast/holdfast.h"), "hf_recovered")
    for where, found in (("recovery.hpp: recovery_report", report), ("holdfast.h: hf_recovered", counts)):
        for verb in verbs:
            if COUNTED.get(verb) not in found:
                yield f"include/holdfast/{where}: expected a count '{COUNTED.get(verb)}' for verb {verb}, found none"
    for each in sorted(set(report) ^ set(counts)):
        yield f"include/holdfast/holdfast.h: hf_recovered and recovery_report differ: '{each}' is in one only"


def check_papers(text):
    """Every paper of the list has its section."""
    for name in re.findall(r"^\| \*([\w-]+)\* \|", text, re.M):
        if not re.search(rf"^## {name}\b", text, re.M):
            yield f"docs/papers.md:1: paper {name} is in the list, and has no section"


def known_of(read):
    return {"engines": engines(read("include/holdfast/abi/engines.def")),
            "modes": dict.fromkeys(enumerators(read("include/holdfast/options.hpp"), "mode"))}


def self_test():
    rows = ('HF_ENGINE_ROW(one, 1, writes, roll_back, any_build, "old bytes")\n'
            'HF_ENGINE_ROW(two, 2, steps, re_execute, its_build, "a call")\n')
    known = {"engines": engines(rows), "modes": dict.fromkeys(enumerators("enum class mode : int {\n process, // a, b\n power\n};", "mode"))}
    assert list(known["modes"]) == ["process", "power"], known
    page = ("<!-- engines -->\n| engine | recovery verb | after a crash | plugin | mine |\n|---|---|---|---|---|\n"
            "| `one` | roll back | any build | yes | x |\n| [`two`](a.md) | re-execute | its build | yes, or by hand | y |\n\n"
            "<!-- modes -->\n| mode |\n|---|\n| `process` |\n| `power` |\n")
    assert check_page("p.md", page, known) == (page, []), check_page("p.md", page, known)
    bad = page.replace("its build", "any build")
    text, findings = check_page("p.md", bad, known)
    assert text == page and len(findings) == 1 and findings[0][1], findings
    for change in (("| `power` |\n", ""), ("| `power` |", "| `steam` |"), ("`one`", "`three`")):
        _, findings = check_page("p.md", page.replace(*change), known)
        assert findings and not any(mends for _, mends in findings), (change, findings)
    assert len(check_page("README.md", "", known)[1]) == 1
    header = "enum class recovery_verb : int { discard, resume };\nstruct recovery_report {\n    std::uint32_t discarded = 0;\n    std::uint32_t resumed = 0;\n};\n"
    read = {"include/holdfast/recovery.hpp": header, "include/holdfast/holdfast.h": "struct hf_recovered {\n    uint32_t discarded, resumed;\n};\n"}
    assert list(check_report(read.get)) == []
    read["include/holdfast/holdfast.h"] = "struct hf_recovered {\n    uint32_t discarded;\n};\n"
    assert len(list(check_report(read.get))) == 2
    assert len(list(check_papers("| *A* | x |\n| *B* | y |\n## A-C\n"))) == 1
    print("facts: self-test passed")


def main():
    if sys.argv[1:] == ["--self-test"]:
        return self_test()
    root = pathlib.Path(sys.argv[-1]).resolve()

    def read(name):
        return (root / name).read_text(encoding="utf-8")

    known = known_of(read)
    findings = list(check_report(read)) + list(check_papers(read("docs/papers.md")))
    for page in sorted(root.rglob("*.md")):
        name = page.relative_to(root)
        if name.parts[0] in ("build", "results", ".git"):
            continue
        text, found = check_page(str(name), page.read_text(encoding="utf-8"), known)
        if sys.argv[1] == "--write" and any(mends for _, mends in found):
            page.write_text(text, encoding="utf-8")
            found = [each for each in found if not each[1]]
        findings += [finding for finding, _ in found]
    print("\n".join(findings) if findings else "facts: nothing to report")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
