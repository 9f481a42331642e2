# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Goal: behind twemproxy every acknowledged write is there, whichever shard is killed, and the other shards answer meanwhile.

Method: three servers behind nutcracker with the configuration of docs/guide/sharding.md, and clients that write keys of their
own through it and note what was acknowledged. Again and again a shard gets SIGKILL under load, stays away until the others
have acknowledged more, and is started again on its pool. A write that was refused may have happened or not. In the end each
key has its acknowledged value, on one shard alone; so it has when the proxy was started again.

usage: sharding_test.py HOLDFAST-KV CHECKER [--kills N] [--seed N]
"""
import argparse
import os
import pathlib
import random
import re
import socket
import subprocess
import threading
import time

from kv_testing import Folder, Server, check, check_pool, connect, needs

SHARDS, CLIENTS, KEYS = 3, 4, 200
PAGE = pathlib.Path(__file__).resolve().parents[3] / "docs/guide/sharding.md"
WAIT_S = 120


class Proxy:
    """nutcracker as the guide configures it, with these shards in place of the guide's."""

    def __init__(self, folder, shards):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        text = re.search(r"```yaml\n(.*?)```", PAGE.read_text(), re.S)[1]
        text, listening = re.subn(r"listen: \S+", f"listen: 127.0.0.1:{self.port}", text)
        servers = "".join(f"    - {address}:1 {name}\n" for name, address in shards.items())
        text, replaced = re.subn(r"(  servers:\n)(?:    - .*\n)+", rf"\g<1>{servers}", text)
        check(listening == 1 and replaced == 1, f"the guide has a configuration: {text}")
        self.file = folder / "nutcracker.yml"
        pathlib.Path(self.file).write_text(text)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.statistics = probe.getsockname()[1]
        self.start()

    def start(self):
        self.process = subprocess.Popen(["nutcracker", "-c", self.file, "-a", "127.0.0.1", "-s", str(self.statistics)],
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        end = time.monotonic() + WAIT_S
        while True:
            try:
                self.connect().close()
                return
            except ConnectionRefusedError:
                check(time.monotonic() < end and self.process.poll() is None, "nutcracker listens")
                time.sleep(0.01)

    def connect(self):
        return socket.create_connection(("127.0.0.1", self.port))

    def stop(self):
        self.process.kill()
        self.process.wait()


class Connection:
    def __init__(self, to):
        self.socket = to
        self.socket.settimeout(WAIT_S)
        self.lines = self.socket.makefile("rb")

    def ask(self, request):
        self.socket.sendall(request)
        answer = self.lines.readline()
        if answer == b"":
            raise ConnectionResetError
        return answer

    def get(self, key):
        """None: it is not there. Raises OSError: its shard is away."""
        first = self.ask(b"get %s\r\n" % key)
        if first.startswith(b"SERVER_ERROR"):
            raise OSError(first)
        if first == b"END\r\n":
            return None
        value = self.lines.read(int(first.split()[3]) + 2)[:-2]
        check(self.lines.readline() == b"END\r\n", "an answer's end")
        return value

    def close(self):
        self.lines.close()
        self.socket.close()


class Writer(threading.Thread):
    def __init__(self, number, seed, proxy, stop):
        super().__init__(daemon=True)
        self.number, self.proxy, self.stop = number, proxy, stop
        self.random = random.Random(seed * 100 + number)
        self.known = {}    # key: values that it may have; one if the last write was acknowledged
        self.acknowledged = self.refused = 0
        self.failed = None

    def run(self):
        try:
            connection = Connection(self.proxy.connect())
            while not self.stop.is_set():
                try:
                    self.step(connection)
                except ConnectionError:
                    connection.close()
                    connection = Connection(self.proxy.connect())
            connection.close()
        except BaseException as error:
            self.failed = error
            raise

    def step(self, connection):
        key = b"client%d-%d" % (self.number, self.random.randrange(KEYS))
        kind = self.random.random()
        old = self.known.get(key, {None})
        if kind < 0.7 or None in old:
            new, done = self.random.randbytes(self.random.choice((0, 8, 100, 100, 3000))), b"STORED\r\n"
            request = b"set %s 0 0 %d\r\n%s\r\n" % (key, len(new), new)
        elif kind < 0.8:
            new, request, done = None, b"delete %s\r\n" % key, b"DELETED\r\n"
        else:
            try:
                found = connection.get(key)
            except ConnectionError:
                raise
            except OSError:
                self.refused += 1
                return
            check(found in old, f"{key}: found {found and found[:20]}, expected one of {len(old)} values")
            return
        self.known[key] = old | {new}    # until it is acknowledged
        answer = connection.ask(request)
        if answer.startswith(b"SERVER_ERROR"):
            self.refused += 1
            return
        check(answer == done or new is None and answer == b"NOT_FOUND\r\n" and None in old, f"{request[:40]}: {answer}")
        self.known[key] = {new}
        self.acknowledged += 1


def wait_for(found, what):
    end = time.monotonic() + WAIT_S
    while not found():
        check(time.monotonic() < end, what)
        time.sleep(0.005)


def items(shard):
    connection = Connection(connect(shard.address))
    connection.socket.sendall(b"stats\r\n")
    found = 0
    for line in connection.lines:
        if line == b"END\r\n":
            connection.close()
            return found
        if line.startswith(b"STAT curr_items "):
            found = int(line.split()[2])


def check_all(proxy, shards, writers):
    connection, there = Connection(proxy.connect()), 0
    for writer in writers:
        for key, values in writer.known.items():
            found = connection.get(key)
            check(found in values, f"{key} of {len(values)} values: found {found and found[:20]}")
            there += found is not None
    connection.close()
    each = [items(shard) for shard in shards.values()]
    check(sum(each) == there, f"each key is on one shard: {there} keys, {each} items")
    check(all(each), f"every shard has some: {each}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("checker")
    parser.add_argument("--kills", type=int, default=12)
    parser.add_argument("--seed", type=int, default=20261129)
    options = parser.parse_args()
    os.environ["PATH"] += ":/usr/sbin"
    needs("nutcracker")
    print(f"seed {options.seed}", flush=True)
    chance = random.Random(options.seed)
    with Folder() as folder:
        start = lambda name: Server(options.program, folder / f"{name}.hf", unix=folder / name)  # noqa: E731
        shards = {f"shard{i}": start(f"shard{i}") for i in range(SHARDS)}
        proxy = Proxy(folder, {name: shard.address for name, shard in shards.items()})
        stop = threading.Event()
        writers = [Writer(i, options.seed, proxy, stop) for i in range(CLIENTS)]
        acknowledged = lambda: sum(writer.acknowledged for writer in writers)  # noqa: E731
        try:
            for writer in writers:
                writer.start()
            for _ in range(options.kills):
                enough = acknowledged() + chance.randrange(50, 400)
                wait_for(lambda: acknowledged() >= enough, "acknowledgements")
                victim = chance.choice(list(shards))
                shards[victim].kill()
                enough = acknowledged() + 100
                wait_for(lambda: acknowledged() >= enough, "the other shards' acknowledgements")
                shards[victim] = start(victim)
            enough = acknowledged() + 200
            wait_for(lambda: acknowledged() >= enough, "acknowledgements")
            stop.set()
            for writer in writers:
                writer.join(WAIT_S)
                check(not writer.is_alive() and writer.failed is None, f"a client goes on: {writer.failed}")
            check_all(proxy, shards, writers)
            proxy.stop()
            proxy.start()
            check_all(proxy, shards, writers)
            for shard in shards.values():
                check(shard.stop() == 0, "a clean stop")
            for name in shards:
                check_pool(options.checker, folder / f"{name}.hf")
        finally:
            stop.set()
            proxy.stop()
            for shard in shards.values():
                if shard.process.poll() is None:
                    shard.kill()
        refused = sum(writer.refused for writer in writers)
        check(refused > 0, "a client has met a shard that was away")
        print(f"{acknowledged()} writes acknowledged, {refused} requests refused, {options.kills} kills, 0 lost")


main()
