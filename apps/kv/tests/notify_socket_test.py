#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The server reports to a service manager when clients can connect, and when it ends; without one
nothing happens.

usage: notify_socket_test.py holdfast-kv
"""
import os
import pathlib
import socket
import sys
import tempfile

from kv_testing import Server


def check(name, folder):
    manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    manager.settimeout(20)
    manager.bind("\0" + name[1:] if name.startswith("@") else name)
    os.environ["NOTIFY_SOCKET"] = name
    with Server(sys.argv[1], folder / "kv.hf") as server:
        assert manager.recv(100) == b"READY=1"
        server.connect().close()
        assert server.stop() == 0
    assert manager.recv(100) == b"STOPPING=1"


def main():
    with tempfile.TemporaryDirectory(prefix="holdfast-manager-") as scratch:
        folder = pathlib.Path(scratch)
        check(str(folder / "notify"), folder)
        check(f"@holdfast-{os.getpid()}", folder)
        # Nobody listens, or there is nothing to listen at.
        for name in (str(folder / "gone"), "relative", "/", "", "/" + "x" * 200):
            os.environ["NOTIFY_SOCKET"] = name
            with Server(sys.argv[1], folder / "kv.hf") as server:
                assert server.stop() == 0


main()
