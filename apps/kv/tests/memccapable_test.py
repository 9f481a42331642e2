# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Goal: libmemcached's own conformance test passes. Method: run it, of the text protocol and of the binary one."""

import subprocess
import sys

from kv_testing import Folder, Server, check, needs


def main():
    needs("memccapable")
    with Folder() as folder, Server(sys.argv[1], folder / "pool.hf") as server:
        for protocol in ("-a", "-b"):
            run = subprocess.run(["memccapable", "-h", server.host, "-p", str(server.port), protocol],
                                 stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120)
            print(run.stdout)
            passed = run.stdout.count("[pass]")
            check(run.returncode == 0 and "All tests passed" in run.stdout, f"memccapable {protocol}")
            check(passed == 27, f"27 tests, {passed} passed")
        check(server.stop() == 0, "a clean stop")


main()
