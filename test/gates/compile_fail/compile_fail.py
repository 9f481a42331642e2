#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What must not build does not, and the message names the line.

usage: compile_fail.py FILE… -- COMPILER OPTION…

A file says '// error: text' on the line that must be refused, or '// error in a header: text' where
the message points to something that the line calls. No line is refused between '// [accepted]' and '// [/accepted]'.
"""
import pathlib
import re
import subprocess
import sys
import tempfile


def complaint(path, compiler, scratch):
    """What is wrong with the refusal; None when it is as the file says."""
    ran = subprocess.run([*compiler, "-c", path, "-o", scratch + "/object"], capture_output=True,
                         text=True)
    if ran.returncode == 0:
        return "compiles"
    accepted = False
    for number, line in enumerate(pathlib.Path(path).read_text().splitlines(), 1):
        if line in ("// [accepted]", "// [/accepted]"):
            accepted = line == "// [accepted]"
        if accepted and f"{pathlib.Path(path).name}:{number}:" in ran.stderr:
            return f"expected nothing in line {number}, found:\n{ran.stderr}"
        wanted = re.search(r"// error( in a header)?: (.+)", line)
        if not wanted:
            continue
        # Not in the line itself, which compilers show with its comment.
        where = r": error: " if wanted[1] else rf"{re.escape(pathlib.Path(path).name)}:{number}:"
        if not re.search(rf"{where}.*{re.escape(wanted[2])}", ran.stderr):
            return f"expected '{wanted[2]}' in line {number}, found:\n{ran.stderr}"
    return None


def main():
    files, compiler = (sys.argv[1:sys.argv.index("--")], sys.argv[sys.argv.index("--") + 1:])
    failed = 0
    with tempfile.TemporaryDirectory(prefix="holdfast-compile-fail-") as scratch:
        for path in files:
            if why := complaint(path, compiler, scratch):
                failed += 1
                print(f"{path}: {why}")
    print(f"{len(files) - failed} of {len(files)} are refused as they should be")
    return 1 if failed or not files else 0


if __name__ == "__main__":
    sys.exit(main())
