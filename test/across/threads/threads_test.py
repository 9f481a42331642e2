#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What ThreadSanitizer says of program.cpp: threads_test.py PROGRAM."""
import os
import re
import subprocess
import sys
import tempfile

FOUND = 66  # the sanitizer's exit status


def main():
    program = sys.argv[1]
    failures = []
    with tempfile.TemporaryDirectory(dir="/dev/shm", prefix="hf_threads.") as folder:
        for mode in ("process", "pmem", "power"):
            for what in ("race", "locked", "shared", "blocks", "handed"):
                ran = subprocess.run([program, mode, f"{folder}/{mode}.{what}.hf", what], capture_output=True, text=True,
                                     timeout=60, env={**os.environ, "TSAN_OPTIONS": f"exitcode={FOUND}"})
                said = f"{mode}, {what}: exit status {ran.returncode}\n{ran.stdout}{ran.stderr}"
                if what == "race":
                    # The program's own store, with its place in the source, and no alarm of the library's.
                    where = re.findall(r"SUMMARY: ThreadSanitizer: data race (.*)", ran.stderr)
                    good = ran.returncode == FOUND and where and re.search(r"program\.cpp:\d+.* in .*\badd\(", where[0])
                else:
                    good = ran.returncode == 0 and "ThreadSanitizer" not in ran.stderr
                if not good:
                    failures.append(said)
    if failures:
        sys.exit("\n".join(failures))
    print("the race is found, and nothing else is reported")


if __name__ == "__main__":
    main()
