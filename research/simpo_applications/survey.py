#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which functions of classes in Debian's libraries `holdfast classify` would defer, in place of SIMPO's Table 4 (BigDataBench).

A function that only lacks the word noexcept counts apart: the author of a persistent class writes that word.
Libraries whose headers are not there are left out.

usage: survey.py --bin BIN [--out FILE]
"""
import argparse
import collections
import json
import pathlib
import re
import subprocess
import sys
import tempfile

LLVM = "/usr/lib/llvm-19/include"
# The library, the header to read, the class, and an instantiation where it is a template.
CLASSES = [
    ("CLI11", "/usr/include/CLI/Option.hpp", "Option", ""),
    ("CLI11", "/usr/include/CLI/App.hpp", "App", ""),
    ("fmt", "/usr/include/fmt/color.h", "text_style", ""),
    ("fmt", "/usr/include/fmt/format.h", "basic_memory_buffer", "template class fmt::basic_memory_buffer<char, 500>;"),
    ("nlohmann json", "/usr/include/nlohmann/json.hpp", "basic_json", "template class nlohmann::basic_json<>;"),
    ("LLVM", f"{LLVM}/llvm/ADT/BitVector.h", "BitVector", ""),
    ("LLVM", f"{LLVM}/llvm/ADT/APInt.h", "APInt", ""),
    ("CGAL", "/usr/include/CGAL/Bbox_3.h", "Bbox_3", ""),
    ("Boost", "/usr/include/boost/random/mersenne_twister.hpp", "mersenne_twister_engine",
     "template class boost::random::mersenne_twister_engine<unsigned, 32, 624, 397, 31, 0x9908b0df, 11, 0xffffffff, 7, 0x9d2c5680, 15, "
     "0xefc60000, 18, 1812433253>;"),
    ("Boost", "/usr/include/boost/rational.hpp", "rational", "template class boost::rational<int>;"),
]
# What stands behind "FILE:LINE: ": the first that fits.
CAUSES = [("returns something", r"^returns "), ("no noexcept", r"^is not noexcept"), ("const", r"^is const"),
          ("addresses", r"address|pointer|reference|virtual"), ("allocates or frees", r"alloc|operator new|operator delete|free\("),
          ("throws, ends or asserts", r"throw|end the process|assert"), ("body not visible", r"body|not visible"), ("other", r"")]


def cause_of(what):
    return next(name for name, pattern in CAUSES if re.search(pattern, what))


def classified(program, header, name, instantiation):
    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(header)
        if instantiation:
            source = pathlib.Path(folder) / "used.cpp"
            source.write_text(f"#include <{header}>\n{instantiation}\n")
        done = subprocess.run([program, source, "--class", name, "--json", "--", "-std=c++20", f"-I{LLVM}"], capture_output=True,
                              text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{header}: {name}: {done.stderr}")
    return [function for one in json.loads(done.stdout)["classes"] for function in one["functions"]]


def survey(program):
    out = {}
    for library, header, name, instantiation in CLASSES:
        if not pathlib.Path(header).exists():
            print(f"left out: {library} has no {header} here", file=sys.stderr)
            continue
        its = out.setdefault(library, {"classes": [], "functions": 0, "deferrable": 0, "but_for_noexcept": 0, "causes": {}})
        its["classes"].append(name)
        causes = collections.Counter(its["causes"])
        for function in classified(program, header, name, instantiation):
            found = {cause_of(reason["what"]) for reason in function["reasons"]}
            its["functions"] += 1
            its["deferrable"] += function["type"] == "deferrable"
            its["but_for_noexcept"] += found == {"no noexcept"}
            causes.update(found)
        its["causes"] = dict(causes.most_common())
    return out


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bin", type=pathlib.Path, required=True)
    parser.add_argument("--out", type=pathlib.Path)
    given = parser.parse_args()
    said = json.dumps(survey(given.bin / "holdfast-classify"), indent=1)
    if given.out:
        given.out.write_text(said)
    print(said)


main()
