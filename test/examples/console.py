#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a page of the guide shows in its console blocks is what the programs print.

usage: console.py BIN PAGE      run the page's commands, in order, in an empty folder
       console.py --self-test   require that a wrong line is found

In a block marked `console`, a line that begins with '$ ' is a command, what follows is its output,
standard output only. '…' stands for any text within a line; '$?' is the last command's exit status.
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile


def steps(page):
    """Yields (command, expected output) of all console blocks."""
    for block in re.findall(r"^```console\n(.*?)^```$", page, re.S | re.M):
        for part in re.split(r"^\$ ", block, flags=re.M)[1:]:
            command, _, output = part.partition("\n")
            yield command, output


def agrees(expected, found):
    pattern = ".*".join(re.escape(piece) for piece in expected.split("…"))
    return re.fullmatch(pattern, found) is not None     # '.' ends with the line


def first_fault(page, path):
    status = 0
    with tempfile.TemporaryDirectory(prefix="holdfast-console-") as folder:
        for command, expected in steps(page):
            ran = subprocess.run(["bash", "-c", command.replace("$?", str(status))], cwd=folder, text=True,
                                 capture_output=True, env={**os.environ, "PATH": path}, timeout=240)
            status = ran.returncode
            if not agrees(expected, ran.stdout):
                return f"$ {command}\nexpected: {expected!r}\nfound:    {ran.stdout!r} {ran.stderr!r}"
    return None


def self_test():
    good = "```console\n$ echo a b\na …\n$ false\n$ echo $?\n1\n```\n"
    assert first_fault(good, os.environ["PATH"]) is None
    for wrong in (good.replace("a …", "b …"), good.replace("\n1\n", "\n0\n"), good.replace("a …\n", "")):
        assert first_fault(wrong, os.environ["PATH"]) is not None, wrong
    assert len(list(steps(good))) == 3
    print("console: self-test found all planted faults")
    return 0


def main():
    if sys.argv[1:] == ["--self-test"]:
        return self_test()
    programs, page = str(pathlib.Path(sys.argv[1]).resolve()), pathlib.Path(sys.argv[2]).read_text(encoding="utf-8")
    fault = first_fault(page, programs + os.pathsep + os.environ["PATH"])
    print(fault or f"console: {len(list(steps(page)))} commands print what the page shows")
    return 1 if fault or not list(steps(page)) else 0


if __name__ == "__main__":
    sys.exit(main())
