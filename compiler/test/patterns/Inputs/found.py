#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Counts the stores of src/selective/{kernels,kv_kernels}.hpp that the compiler needs no log for, or calls lazy, by the remarks of
-Rpass=holdfast (standard input), and compares them with what the simulator proves and measures.

usage: found.py FOUND_BY_COMPILER_HPP KERNELS... <REMARKS

A store is found if that is said of every line that bears its name, and of every instance of the line in the code.
"""
import collections
import pathlib
import re
import sys

LOG_FREE, LOGGED, LAZY = "needs no log", "its old bytes are logged", "could be hf::lazy"


def main():
    table, *sources = map(pathlib.Path, sys.argv[1:])
    said = collections.defaultdict(set)     # by file and line
    for line in sys.stdin:
        if found := re.search(rf"([\w.]+):(\d+):\d+: remark: ({LOG_FREE}|{LOGGED}|{LAZY})", line):
            said[found[1], int(found[2])].add(found[3])
    lines = collections.defaultdict(list)   # by structure and name
    for source in sources:
        for number, line in enumerate(source.read_text().splitlines(), 1):
            if found := re.search(r"// ((?:hashtable|rbtree|heap|avl|kv-\w+|, )+): (.+)$", line):
                for structure in found[1].split(", "):
                    lines[structure, found[2]].append((source.name, number))
    assert len(lines) == 63, len(lines)
    log_free = [store for store, at in lines.items() if all(said[n] == {LOG_FREE} for n in at)]
    lazy = [store for store, at in lines.items() if all(said[n] == {LOGGED, LAZY} for n in at)]
    rows = [f'    {{"{structure}", "{name}", {how}}},' for how, stores in (("log_free", log_free), ("lazy_logged", lazy))
            for structure, name in stores]
    written = re.findall(r'^    \{".*\},$', table.read_text(), re.M)
    print(*rows, sep="\n")
    if rows != written:
        sys.exit(f"{table} says something else; the compiler finds the rows above")
    print(f"{len(log_free)} log-free, {len(lazy)} lazy")


if __name__ == "__main__":
    main()
