# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Goal: a server in a container that has a boot identifier of its own, as systemd-nspawn and LXC give it, is killed and
started again as anywhere: the machine has not been down. Where that is not known, its pool is refused as torn.

Method: an identifier is mounted over the kernel's, another one for each start. It takes root; else nothing is tried.
"""
import os
import stat
import subprocess
import sys
import uuid

from kv_testing import Folder, Server, check, talk

PROGRAM = sys.argv[1]


def container(folder, name, *more):
    """A program that runs the server in a container with an identifier of its own."""
    identifier = folder / f"{name}.id"
    with open(identifier, "w", encoding="ascii") as file:
        file.write(f"{uuid.uuid4()}\n")
    program = folder / name
    with open(program, "w", encoding="ascii") as file:
        file.write("#!/bin/sh\n"
                   f"exec unshare -m {' '.join(more)} sh -c 'mount --bind {identifier} /proc/sys/kernel/random/boot_id "
                   f"&& exec {PROGRAM} \"$@\"' sh \"$@\"\n")
    os.chmod(program, stat.S_IRWXU)
    return program


def allowed(folder):
    tried = subprocess.run([container(folder, "try"), "--version"], capture_output=True, text=True, check=False)
    return tried.returncode == 0


def main():
    with Folder() as folder:
        if os.geteuid() != 0 or not allowed(folder):
            print("left out: nothing may be mounted here")
            return
        pool = folder / "pool.hf"
        with Server(container(folder, "first"), pool) as server:
            check(talk(server.address, b"set a 0 0 1\r\n1\r\n", False) == b"STORED\r\n", "set")
            server.kill()
        with Server(container(folder, "second"), pool) as server:
            check(talk(server.address, b"get a\r\n", False) == b"VALUE a 0 1\r\n1\r\nEND\r\n", "another identifier")
            server.kill()
        shifted = container(folder, "shifted", "-T", "--boottime", "1000", "--fork")
        refused = subprocess.run([shifted, "--pool", pool, "-u", "root", "-p", "-1", "-l", "127.0.0.1", "--when-torn=refuse"],
                                 capture_output=True, text=True, timeout=60, check=False)
        check(refused.returncode != 0 and "torn" in refused.stderr, f"of clocks that are shifted: {refused}")
        with Server(PROGRAM, pool) as server:
            check(talk(server.address, b"get a\r\n", False) == b"VALUE a 0 1\r\n1\r\nEND\r\n", "beside the container")
            check(server.stop() == 0, "a clean stop")
    print("killed in a container and started again, it is as it was")


main()
