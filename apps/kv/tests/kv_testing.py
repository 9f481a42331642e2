# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the server's tests share: a server on a free port that is started, killed and stopped."""

import atexit
import contextlib
import functools
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
from typing import NamedTuple

import tls_tunnel


@functools.cache
def _certificate():
    folder = tempfile.mkdtemp(prefix="holdfast-kv-tls-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return tls_tunnel.make_certificate(folder)


def connect(address):
    """A client of a port, or of a Unix socket by its path."""
    if not isinstance(address, str):
        return socket.create_connection(address)
    client = socket.socket(socket.AF_UNIX)
    try:
        client.connect(address)
    except OSError:
        client.close()
        raise
    return client


class Server:
    """holdfast-kv on `pool`; ready when the constructor returns."""

    def __init__(self, program, pool, *options, unix=None, listens="127.0.0.1", crash_at=None, environment=None):
        where = ["-s", unix] if unix else ["-p", "-1", "-l", listens]
        mode = os.environ.get("KV_TEST_MODE")  # runs a test in another mode
        if mode and "--mode" not in options:
            where += ["--mode", mode]
        through_tls = not unix and os.environ.get("KV_TEST_TLS")  # of a test that knows nothing of it
        if through_tls:
            where += ["-Z", "-o", "ssl_chain_cert={},ssl_key={}".format(*_certificate())]
        self.process = subprocess.Popen(
            [program, "--pool", pool, "-u", "root", *where, *options],  # -u: lets root run the test
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env={**os.environ, **({"HOLDFAST_CRASH_AT": crash_at} if crash_at else {}), **(environment or {})})
        self.ready_line = self.process.stdout.readline()
        if not self.ready_line:
            raise RuntimeError(f"no server: {self.process.stderr.read()}")
        self.host, self.port = None, None
        if not unix:
            self.host, port = re.search(r"listening on ([\d.]+):(\d+),", self.ready_line).groups()
            self.port = int(port)
        if through_tls:
            tunnel = tls_tunnel.Tunnel((self.host, self.port), tls_tunnel.client_context(_certificate()[0]))
            self.host, self.port = tunnel.address
        self.address = unix or (self.host, self.port)

    def connect(self):
        return connect(self.address)

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self._wait()

    def stop(self):
        """SIGTERM; the exit status."""
        self.process.send_signal(signal.SIGTERM)
        return self._wait()

    def died(self):
        """Waits for a server that will die by itself; returns the signal that ended it."""
        return -self._wait()

    def _wait(self):
        self.process.communicate(timeout=60)
        return self.process.returncode

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.kill()


class Folder:
    """A temporary folder, in memory where that is possible."""

    def __enter__(self):
        memory = "/dev/shm"
        self.path = tempfile.mkdtemp(prefix="holdfast-kv-",
                                     dir=memory if os.access(memory, os.W_OK) else None)
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.path, ignore_errors=True)

    def __truediv__(self, name):
        return os.path.join(self.path, name)


class Memcached:
    """The real one, on a free port or a Unix socket, to compare with; nobody is connected when the constructor returns."""

    def __init__(self, *options, unix=None):
        where = ["-s", unix]
        self.address = unix
        if not unix:
            with socket.socket() as probe:
                probe.bind(("127.0.0.1", 0))
                self.address = probe.getsockname()
            where = ["-l", "127.0.0.1", "-p", str(self.address[1]), "-U", "0"]
        self.process = subprocess.Popen(["memcached", "-u", "root", *where, *options])
        while self.process.poll() is None:
            with contextlib.suppress(ConnectionRefusedError, FileNotFoundError), connect(self.address) as client:
                self._take_leave(client)
                return
            time.sleep(0.001)
        sys.exit("memcached did not start")

    @staticmethod
    def _take_leave(client):
        """Waits until the server has let go of it: watchers and statistics must not see this
        connection."""
        client.settimeout(60)
        with contextlib.suppress(ConnectionResetError, BrokenPipeError):
            client.sendall(b"quit\r\n")
            with contextlib.suppress(OSError):  # hung up already
                client.shutdown(socket.SHUT_WR)  # for one that takes no such word
            while client.recv(1000):
                pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()


def talk(address, request, bytewise):
    """The server's answer to these bytes until it hangs up."""
    with socket.create_connection(address) as client:
        client.settimeout(30)
        try:
            if bytewise:
                client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                for i in range(len(request)):
                    client.sendall(request[i:i + 1])
            else:
                client.sendall(request)
            client.shutdown(socket.SHUT_WR)
        except (BrokenPipeError, ConnectionResetError, OSError):
            pass  # the server hung up first: what it said counts
        answer = b""
        try:
            while piece := client.recv(1 << 16):
                answer += piece
        except ConnectionResetError:
            pass
        return answer


def packet(code, key=b"", value=b"", extras=b"", cas=0, opaque=0xdeadbeef):
    """A request of the binary protocol."""
    return struct.pack(">BBHBBHIIQ", 0x80, code, len(key), len(extras), 0, 0, len(extras) + len(key) + len(value), opaque,
                       cas) + extras + key + value


class Response(NamedTuple):
    code: int
    status: int
    opaque: int
    cas: int
    extras: bytes
    key: bytes
    value: bytes


def packets(answer):
    """The responses in these bytes of the binary protocol, and what follows the last whole one."""
    found = []
    while len(answer) >= 24 and answer[0] == 0x81:
        _, code, key, extras, _, status, body, opaque, cas = struct.unpack(">BBHBBHIIQ", answer[:24])
        if len(answer) < 24 + body:
            break
        at = 24 + extras
        found.append(Response(code, status, opaque, cas, answer[24:at], answer[at:at + key], answer[at + key:24 + body]))
        answer = answer[24 + body:]
    return found, answer


def check_pool(checker, pool):
    """Opens the pool, recovery included; what was found in it, by name."""
    run = subprocess.run([checker, pool], stdout=subprocess.PIPE, text=True, timeout=60)
    words = run.stdout.split()
    check(run.returncode == 0, f"a whole pool: {run.stdout}")
    return {name: int(number) for name, number in zip(words[::2], words[1::2])}


def needs(*programs):
    """Skips the test (exit status 77) when a program it drives is not installed."""
    for program in programs:
        if shutil.which(program) is None:
            print(f"skipped: {program} is not installed")
            sys.exit(77)


def check(condition, what):
    if not condition:
        print(f"FAILED: {what}")
        sys.exit(1)
