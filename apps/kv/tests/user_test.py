#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Goal: the server runs as root only if its command line says so. Before it changes to another user,
it opens what that user could not: the PID file and the port.

Method: as root, without -u (refused as by memcached, nothing made); with -u of a user that may
write the pool's folder but not the PID file's and not bind the port; with a user that may not write
the pool's folder; and with an unknown name.

usage: user_test.py holdfast-kv
"""

import os
import pwd
import shutil
import socket
import subprocess
import sys

from kv_testing import Folder, Server, check, talk

PROGRAM = sys.argv[1]
USER = "nobody"


def refused(folder, *options, says):
    pool, pid = folder / "refused.hf", folder / "refused.pid"
    ran = subprocess.run([PROGRAM, "--pool", pool, "-p", "-1", "-l", "127.0.0.1", "-P", pid, *options],
                         capture_output=True, text=True, timeout=60)
    check(ran.returncode > 0 and ran.stderr.count("\n") == 1 and says in ran.stderr, f"{options}: {ran}")
    check(not os.path.exists(pool), f"{options}: a pool was made")
    # A process that has become another user cannot remove the file again.
    check(not os.path.exists(pid) or os.stat(pid).st_size == 0, f"{options}: a number was left")


def memcached_refuses():
    """In the same words."""
    if shutil.which("memcached") is None:
        return
    ran = subprocess.run(["memcached", "-p", "0"], capture_output=True, text=True, timeout=60)
    check(ran.returncode > 0 and "can't run as root without the -u switch" in ran.stderr, f"memcached: {ran}")


def privileged_port():
    """A free port that only root binds, or None where everybody may."""
    with open("/proc/sys/net/ipv4/ip_unprivileged_port_start", encoding="ascii") as file:
        first_for_all = int(file.read())
    for port in range(first_for_all - 1, 0, -1):
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
                return port
            except OSError:
                continue
    return None


def serves_as(user, folder):
    theirs = folder / "theirs"
    os.mkdir(theirs)
    os.chown(theirs, user.pw_uid, user.pw_gid)
    os.chmod(folder.path, 0o755)
    pool, pid = os.path.join(theirs, "kv.hf"), folder / "kv.pid"
    port = privileged_port()
    for _ in range(2):  # the second finds a pool that the first has made
        with Server(PROGRAM, pool, "-u", USER, "-P", pid, *(["-p", str(port)] if port else [])) as server:
            number = server.process.pid
            with open(f"/proc/{number}/status", encoding="ascii") as file:
                ids = {line.split(":")[0]: line.split()[1:] for line in file}
            check(set(ids["Uid"]) == {str(user.pw_uid)} and set(ids["Gid"]) == {str(user.pw_gid)}, f"runs as {ids}")
            check("0" not in ids["Groups"], f"in root's groups: {ids['Groups']}")
            check(os.stat(pool).st_uid == user.pw_uid, "the pool is its server's")
            with open(pid, encoding="ascii") as file:
                check(file.read() == f"{number}\n", "the PID file")
            check(talk(server.address, b"set a 0 0 1\r\nx\r\n", False) == b"STORED\r\n", "serves")
            check(server.stop() == 0, "a clean stop")
        # The folder is root's, and the server is root no more: the file stays, and names no
        # process.
        check(os.stat(pid).st_size == 0, "an old number is left")


def main():
    if os.geteuid() != 0:
        print("skipped: who is not root cannot be refused as root, nor become another")
        sys.exit(77)
    try:
        user = pwd.getpwnam(USER)
    except KeyError:
        print(f"skipped: there is no user {USER}")
        sys.exit(77)
    memcached_refuses()
    with Folder() as folder:
        refused(folder, says="can't run as root without the -u switch")
        refused(folder, "-u", "no-such-user", says="no such user: no-such-user")
        refused(folder, "-u", USER, says="ermission")  # the folder is root's
        ran = subprocess.run([PROGRAM, "--version"], capture_output=True, timeout=60)
        check(ran.returncode == 0, "--version asks for no user")
        serves_as(user, folder)


main()
