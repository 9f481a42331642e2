# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the server's tests share: a server on a free port that is started, killed and stopped."""

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile


class Server:
    """holdfast-kv on `pool`; ready when the constructor returns."""

    def __init__(self, program, pool, *options, unix=None, crash_at=None):
        where = ["-s", unix] if unix else ["-p", "-1", "-l", "127.0.0.1"]
        self.process = subprocess.Popen(
            [program, "--pool", pool, *where, *options],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env={**os.environ, "HOLDFAST_CRASH_AT": crash_at} if crash_at else None)
        self.ready_line = self.process.stdout.readline()
        if not self.ready_line:
            raise RuntimeError(f"no server: {self.process.stderr.read()}")
        self.host, self.port = None, None
        if not unix:
            self.host, port = re.search(r"listening on ([\d.]+):(\d+),", self.ready_line).groups()
            self.port = int(port)
        self.address = unix or (self.host, self.port)

    def connect(self):
        if isinstance(self.address, str):
            client = socket.socket(socket.AF_UNIX)
            client.connect(self.address)
            return client
        return socket.create_connection(self.address)

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self._wait()

    def stop(self):
        """SIGTERM; the exit status."""
        self.process.send_signal(signal.SIGTERM)
        return self._wait()

    def died(self):
        """Waits for the end of a server that was to die by itself; the signal that ended it."""
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
