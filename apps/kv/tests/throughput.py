# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Throughput of holdfast-kv beside memcached's, under the same clients in one run.

  throughput.py PROGRAM... [--rounds 11] [--ops 100000] [--sets 0.95 0.05] [--value-bytes 64] [--json]

16-byte keys, values of 64 bytes, 95/5 and 5/95 sets to gets, over TCP on this machine. Two clients:
memcaslap (libmemcached-tools), one request at a time on each of 16 connections, and a pipelining one
that keeps 64 requests on each of 2 connections. Rounds are interleaved, both servers live all the
time, medians are reported, and with each the processor time the server itself took per request: on a
small machine the client is part of the load, and only that figure says what the server costs. The
ratio is the median of the rounds' own ratios, of the first program; the best rounds are compared too, since another load on
the machine can only slow a round down.
"""

import argparse
import json
import os
import pathlib
import platform
import random
import re
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time

from kv_testing import Folder, Server, needs

KEYS, KEY_BYTES = 100_000, 16
CONNECTIONS, BATCH = 2, 64


def key(number):
    return b"key%013d" % number


class Memcached:
    def __init__(self, threads):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.process = subprocess.Popen(["memcached", "-u", "root", "-l", "127.0.0.1", "-p", str(self.port),
                                         "-U", "0", "-m", "1024", "-t", str(threads)])
        self.address = ("127.0.0.1", self.port)
        while True:
            try:
                socket.create_connection(self.address).close()
                return
            except ConnectionRefusedError:
                if self.process.poll() is not None:
                    raise RuntimeError("memcached did not start") from None


def processor_seconds(process):
    with open(f"/proc/{process.pid}/stat") as stat:
        fields = stat.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def memcaslap(server, set_share, ops, value_bytes):
    """Requests per second, by memcaslap's own account."""
    with tempfile.NamedTemporaryFile("w", suffix=".cfg") as config:
        config.write(f"key\n{KEY_BYTES} {KEY_BYTES} 1\nvalue\n{value_bytes} {value_bytes} 1\n"
                     f"cmd\n0 {set_share}\n1 {1 - set_share:.2f}\n")
        config.flush()
        run = subprocess.run(["memcaslap", "-s", f"127.0.0.1:{server.port}", "-F", config.name, "-T", "1",
                              "-c", "16", "-x", str(ops)],
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=True)
    return float(re.search(r"TPS: (\d+)", run.stdout).group(1))


class Batches:
    """Requests and the length of their answers, made before the clock runs."""

    def __init__(self, set_share, value_bytes):
        chance, value = random.Random(1), b"v" * value_bytes
        self.all = []
        for _ in range(200):
            request, expected = b"", 0
            for _ in range(BATCH):
                name = key(chance.randrange(KEYS))
                if chance.random() < set_share:
                    request += b"set %s 0 0 %d\r\n%s\r\n" % (name, value_bytes, value)
                    expected += len(b"STORED\r\n")
                else:
                    request += b"get %s\r\n" % name
                    expected += len(b"VALUE %s 0 %d\r\n\r\nEND\r\n" % (name, value_bytes)) + value_bytes
            self.all.append((request, expected))


def fill(server, value_bytes):
    with socket.create_connection(server.address) as client:
        for first in range(0, KEYS, 1000):
            client.sendall(b"".join(b"set %s 0 0 %d noreply\r\n%s\r\n" % (key(i), value_bytes, b"v" * value_bytes)
                                    for i in range(first, first + 1000)))
        client.sendall(b"mn\r\n")
        client.recv(100)


def pipelined(server, batches, ops):
    rounds = ops // BATCH // CONNECTIONS

    def drive(start):
        buffer = bytearray(1 << 16)
        with socket.create_connection(server.address) as client:
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for i in range(rounds):
                request, missing = batches.all[(start + i) % len(batches.all)]
                client.sendall(request)
                while missing > 0:
                    got = client.recv_into(buffer)
                    if got == 0:
                        raise RuntimeError("the server hung up")
                    missing -= got

    threads = [threading.Thread(target=drive, args=(i * 37,)) for i in range(CONNECTIONS)]
    begin = time.monotonic()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return rounds * BATCH * CONNECTIONS / (time.monotonic() - begin)


def measure(servers, rounds, ops, shares, value_bytes):
    results, first = [], next(iter(servers))
    for set_share in shares:
        batches = Batches(set_share, value_bytes)
        for client, run in (("memcaslap", lambda s: memcaslap(s, set_share, ops, value_bytes)),
                            ("pipelined", lambda s: pipelined(s, batches, 4 * ops))):
            done = ops if client == "memcaslap" else 4 * ops
            per_second, cost_us = {n: [] for n in servers}, {n: [] for n in servers}
            for turn in range(rounds):
                names = list(servers) if turn % 2 == 0 else list(reversed(servers))
                for name in names:
                    before = processor_seconds(servers[name].process)
                    per_second[name].append(run(servers[name]))
                    cost_us[name].append((processor_seconds(servers[name].process) - before) / done * 1e6)
            results.append({
                "client": client, "sets": set_share, "rounds": rounds, "ops": done,
                "ops_per_second": {n: round(statistics.median(v)) for n, v in per_second.items()},
                "ratio": round(statistics.median(
                    a / b for a, b in zip(per_second[first], per_second["memcached"])), 3),
                "best_ratio": round(max(per_second[first]) / max(per_second["memcached"]), 3),
                "server_us_per_op": {n: round(statistics.median(v), 3) for n, v in cost_us.items()},
            })
    return results


def show(results, machine, value_bytes):
    print(f"{machine}; {KEY_BYTES}-byte keys, {value_bytes}-byte values, medians")
    first = next(iter(results[0]["ops_per_second"]))
    print(f"{'client':10} {'set/get':>8} {first + '/s':>18} {'memcached/s':>12} {'ratio':>6} {'best':>5}"
          f" {'server µs':>10} {'memcached':>10} {'ratio':>6}")
    for r in results:
        speed, cost = r["ops_per_second"], r["server_us_per_op"]
        ours, theirs = speed[first], speed["memcached"]
        print(f"{r['client']:10} {r['sets'] * 100:>5.0f}/{100 - r['sets'] * 100:<2.0f} {ours:>18} {theirs:>12}"
              f" {r['ratio']:>6.2f} {r['best_ratio']:>5.2f} {cost[first]:>10.2f} {cost['memcached']:>10.2f}"
              f" {cost['memcached'] / max(cost[first], 1e-9):>6.2f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", nargs="+", type=pathlib.Path)
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--ops", type=int, default=100_000)
    parser.add_argument("--sets", type=float, nargs="+", default=[0.95, 0.05], help="shares of sets")
    parser.add_argument("--value-bytes", type=int, default=64)
    parser.add_argument("--threads", type=int, default=4)
    parser.add_argument("--mode", default="process", choices=("process", "pmem", "power"))
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    needs("memcached", "memcaslap")
    machine = f"{platform.machine()}, {os.cpu_count()} processors, mode {options.mode}"
    with Folder() as folder:
        reference = Memcached(options.threads)
        ours = {program.name: Server(program, folder / f"{program.name}.hf", "-m", "1024", "-t", str(options.threads), "--mode", options.mode)
                for program in options.programs}
        try:
            servers = ours | {"memcached": reference}
            for one in servers.values():
                fill(one, options.value_bytes)
            results = measure(servers, options.rounds, options.ops, options.sets, options.value_bytes)
        finally:
            for server in ours.values():
                server.kill()
            reference.process.kill()
            reference.process.wait()
    if options.json:
        json.dump({"machine": machine, "command": sys.argv, "results": results}, sys.stdout, indent=1)
    else:
        show(results, machine, options.value_bytes)


if __name__ == "__main__":
    main()
