#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Every C++, C and CMake block of the documentation is cut from a source that a test compiles, or configures.

usage: snippets.py ROOT         compare, print what differs, exit 1 if anything does
       snippets.py --fix ROOT   paste the programs' text into the pages
       snippets.py --self-test

A page says <!-- examples/numbers.cpp:push --> on the line before ```cpp, ```c or ```cmake; the source marks the region with
// [push] and // [/push], or with # where it is CMake's. Without ':push' the whole file is meant, licence line left out.
"""
import pathlib
import re
import sys
import textwrap

BLOCK = re.compile(r"(?:^<!-- (?P<source>\S+?\.(?:[ch]pp|[ch]|txt))(?::(?P<region>[\w-]+))? -->\n)?"
                   r"^```c(?:pp|make)?\n(?P<body>.*?)^```$", re.M | re.S)


def region_of(text, region):
    """The marked region, unindented and without other regions' marks; None if it is not there."""
    if region is None:
        body = re.sub(r"\A(//|#) SPDX[^\n]*\n(\1\n)?", "", text)
    else:
        found = re.search(rf"^[ \t]*(?://|#) \[{region}\]\n(.*?)^[ \t]*(?://|#) \[/{region}\]$", text, re.M | re.S)
        if not found:
            return None
        body = found[1]
    return textwrap.dedent(re.sub(r"^[ \t]*(?://|#) \[/?[\w-]+\]\n", "", body, flags=re.M))


def compare(page, text, read):
    """Yields (finding, match, wanted text or None) for every block that is not what it should be."""
    for block in BLOCK.finditer(text):
        where = f"{page}:{text.count(chr(10), 0, block.start()) + 1}"
        if block["source"] is None:
            yield f"{where}: block that names no source", block, None
            continue
        source = read(block["source"])
        wanted = source and region_of(source, block["region"])
        if wanted is None:
            yield f"{where}: no region {block['region']} in {block['source']}", block, None
        elif wanted != block["body"]:
            yield f"{where}: differs from {block['source']}; run snippets.py --fix", block, wanted


def self_test():
    source = "// SPDX x\n// [a]\nint a;\n    // [b]\n    int b;\n    // [/b]\n// [/a]\n"
    read = {"x.cpp": source, "CMakeLists.txt": "# SPDX x\nfirst()\n# [a]\nsecond()\n# [/a]\n"}.get
    page = "<!-- x.cpp:{} -->\n```cpp\n{}```\n"
    good = page.format("b", "int b;\n") + page.format("a", "int a;\n    int b;\n")
    good += "<!-- CMakeLists.txt:a -->\n```cmake\nsecond()\n```\n<!-- CMakeLists.txt -->\n```cmake\nfirst()\nsecond()\n```\n"
    assert list(compare("p", good, read)) == []
    for bad in [page.format("b", "int c;\n"), page.format("c", "int b;\n"),
                "```cpp\nint b;\n```\n", "```cmake\nfirst()\n```\n", page.replace("x.cpp", "y.cpp").format("b", "int b;\n")]:
        assert len(list(compare("p", bad, read))) == 1, bad
    print("snippets: self-test passed")


def main():
    if sys.argv[1:] == ["--self-test"]:
        return self_test()
    root = pathlib.Path(sys.argv[-1]).resolve()
    findings = []

    def read(name):
        path = root / name
        return path.read_text(encoding="utf-8") if path.is_file() else None

    for path in sorted(root.rglob("*.md")):
        name = path.relative_to(root)
        if name.parts[0] in ("build", "results", ".git"):
            continue
        text = path.read_text(encoding="utf-8")
        found = list(compare(name, text, read))
        if sys.argv[1] == "--fix":
            for _, block, wanted in reversed([each for each in found if each[2]]):
                text = text[:block.start("body")] + wanted + text[block.end("body"):]
            if any(each[2] for each in found):
                path.write_text(text, encoding="utf-8")
            found = [each for each in found if not each[2]]
        findings += [each[0] for each in found]
    print("\n".join(findings) if findings else "snippets: nothing to report")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
