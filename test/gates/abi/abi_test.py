#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What compiled programs rely on: abi_test.py --source . --lib BUILD/lib --clang clang-19 [--write].

The functions with C linkage that the libraries define, which sections and C programs call, and the sizes and
offsets of the structs of the C headers, as interface.txt has them. A line that comes is no harm to a program
that is compiled already; one that goes or changes breaks it: then programs are compiled anew, CHANGELOG says
so, and HF_ABI_VERSION (holdfast_abi.h) grows where the plugin's code would not fit any more.
"""
import argparse
import difflib
import pathlib
import re
import subprocess
import sys

GOLDEN = pathlib.Path(__file__).with_name("interface.txt")
HEADERS = ["holdfast/holdfast.h", "holdfast/mod.h", "holdfast/abi/holdfast_abi.h", "holdfast/abi/justdo_abi.h",
           "holdfast/abi/relocate_abi.h", "holdfast/abi/trace_abi.h"]
NOT_THEIRS = re.compile(r"libhf_(traced|check|crash|bench|pool_commands|slpmt_trace_mode)")  # no program links these


def output_of(command, **options):
    return subprocess.run(command, check=True, capture_output=True, text=True, **options).stdout


def functions(folder):
    archives = [a for a in sorted(folder.glob("libhf_*.a")) if not NOT_THEIRS.match(a.name)]
    if not archives:
        sys.exit(f"{folder} has no libhf_*.a: build first")
    defined = re.findall(r"^\S+ T (hf_\w+)$", output_of(["nm", "-g", "--defined-only", *map(str, archives)]), re.M)
    return sorted(f"function {name}" for name in set(defined))


def layouts(clang, include):
    text = "".join(f"#include <{header}>\n" for header in HEADERS)
    dumped = output_of([clang, "-x", "c", "-std=c11", "-fsyntax-only", f"-I{include}", "-Xclang",
                        "-fdump-record-layouts-complete", "-"], input=text)
    found = {}
    for block in dumped.split("*** Dumping AST Record Layout\n")[1:]:
        lines = [line for line in block.splitlines() if "|" in line]
        name = re.search(r"\| (?:struct |union )?(\w+)", lines[0])
        if name is None or not name[1].startswith("hf_"):
            continue
        members = [re.match(r" *(\S*) \| *(.*?) *$", line) for line in lines[1:]]
        size = re.search(r"sizeof=(\d+), align=(\d+)", block)
        found[name[1]] = [f"struct {name[1]} {size[1]} bytes, aligned to {size[2]}"]
        found[name[1]] += [f"struct {name[1]} at {m[1]}: {m[2]}" for m in members if m[1]]
    return [line for name in sorted(found) for line in found[name]]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--source", type=pathlib.Path, required=True)
    parser.add_argument("--lib", type=pathlib.Path, required=True)
    parser.add_argument("--clang", required=True)
    parser.add_argument("--write", action="store_true", help="make interface.txt what it is now")
    options = parser.parse_args()
    now = functions(options.lib) + layouts(options.clang, options.source / "include")
    if options.write:
        GOLDEN.write_text("\n".join(now) + "\n")
        return
    difference = [line for line in difflib.unified_diff(GOLDEN.read_text().splitlines(), now, "interface.txt", "now",
                                                        lineterm="", n=0) if not line.startswith("@@")]
    if difference:
        print("\n".join(difference))
        sys.exit(__doc__.split("\n\n")[1] + "\n'--write' makes interface.txt what it is now.")


if __name__ == "__main__":
    main()
