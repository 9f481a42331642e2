#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kills holdfast-kv over and over while stock clients write, and counts what is lost.

(a) The server, its keys Debian's word list, its values the text of miscfiles, is killed with
    SIGKILL at random moments and checked byte for byte after every restart;
(b) stock memcached gets the same kill, without and with its restart file;
(c) a bank is killed between debit and credit.

The last line is for scripts: demo: acknowledged=N kills=K lost=L restart_ms=R, where R is the
median time from exec to the first answered command. Exit 1 if anything acknowledged was lost.
"""
import argparse
import multiprocessing
import os
import pathlib
import random
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time

import demo_worker
from tqdm import tqdm

MEMORY_MB = 512             # for every server, so that nothing is evicted

LOADS = [("set, one by one", "set", 1), ("get, one by one", "get", 1),
         ("set, 50 at a time", "set", 50), ("get, 50 at a time", "get", 50)]


class Server:
    """One server program on one Unix socket; start() and kill() as often as one likes."""

    def __init__(self, command, path):
        self.path = str(path)
        as_user = ["-u", "root"] if os.geteuid() == 0 else []
        self.command = [*command, "-s", self.path, "-m", str(MEMORY_MB), "-t", "2", *as_user]
        self.process = None

    def spawn(self):
        with open(self.path + ".log", "wb") as log:
            self.process = subprocess.Popen(self.command, start_new_session=True,
                                            stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def start(self, timeout_s=30):
        """Milliseconds from exec to the first answered command."""
        begun = time.perf_counter()
        self.spawn()
        while not self.answers():
            if self.process.poll() is not None:
                said = pathlib.Path(self.path + ".log").read_text(errors="replace").strip()
                raise SystemExit(f"demo: {self.command[0]} did not start: {said}")
            if time.perf_counter() - begun > timeout_s:
                raise SystemExit(f"demo: {self.command[0]} does not answer after {timeout_s} s")
            time.sleep(0.0005)
        return (time.perf_counter() - begun) * 1000

    def answers(self):
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            try:
                connection.settimeout(5)
                connection.connect(self.path)
                connection.sendall(b"version\r\n")
                return connection.recv(64).startswith(b"VERSION")
            except OSError:
                return False

    def end(self, how=signal.SIGKILL):
        if self.process is not None:
            self.process.send_signal(how)
            self.process.wait()
            self.process = None


class Clients:
    """Client processes, each with its own share of the keys; asked all at once, answering each."""

    def __init__(self, count, seed):
        self.pipes, self.processes = [], []
        for number in range(count):
            ours, theirs = multiprocessing.Pipe()
            process = multiprocessing.Process(target=demo_worker.serve, daemon=True,
                                              args=(theirs, number, count, seed))
            process.start()
            theirs.close()
            self.pipes.append(ours)
            self.processes.append(process)

    def ask(self, *question):
        for pipe in self.pipes:
            pipe.send(question)

    def answers(self):
        received = [pipe.recv() for pipe in self.pipes]
        for answer in received:
            if isinstance(answer, Exception):
                raise SystemExit(f"demo: a client failed: {answer!r}")
        return received

    def total(self, *question):
        self.ask(*question)
        return sum(self.answers())

    def end(self):
        for process in self.processes:
            process.kill()
            process.join()


def kill_over_and_over(server, clients, kills, chance):
    """Part (a). Returns writes acknowledged, writes lost and the restart times."""
    restarts_ms = [server.start()]
    acknowledged = clients.total("fill", server.path)
    print(f"    {acknowledged} keys filled; now killing")
    restarts_ms.clear()
    lost = 0
    with tqdm(total=kills, unit="kill", file=sys.stdout, ncols=100,
              mininterval=0.2 if sys.stdout.isatty() else 5) as bar:
        while bar.n < kills:
            clients.ask("write", server.path)
            time.sleep(chance.uniform(0.02, 0.6))
            server.end()
            acknowledged += sum(clients.answers())
            bar.update()
            if chance.random() < 0.2 and bar.n < kills:     # and once more while it recovers
                server.spawn()
                time.sleep(chance.uniform(0, 0.02))
                server.end()
                bar.update()
            restarts_ms.append(server.start())
            lost += clients.total("verify", server.path)
            bar.set_postfix(acknowledged=acknowledged, lost=lost)
    return acknowledged, lost, restarts_ms


def kept_after(server, clients, how):
    """Fills a server, ends it, starts it again: keys written, keys still there."""
    server.start()
    written = clients.total("fill", server.path)
    server.end(how)
    time.sleep(2)           # memcached refuses a restart file that it wrote in this very second
    server.start()
    kept = clients.total("count", server.path)
    server.end()
    return written, kept


def show_memcached(clients, scratch):
    """Part (b)."""
    memory = scratch.memory / "memcached.data"
    stock = ["memcached"]
    with_file = ["memcached", "-e", str(memory)]
    for title, command, how in [("memcached, kill -9", stock, signal.SIGKILL),
                                ("memcached -e, kill -9", with_file, signal.SIGKILL),
                                ("memcached -e, clean stop (SIGUSR1)", with_file, signal.SIGUSR1)]:
        memory.unlink(missing_ok=True)
        server = scratch.server(command, "memcached.sock")
        written, kept = kept_after(server, clients, how)
        print(f"    {title:36} kept {kept:7} of {written}")


def show_bank(programs, scratch):
    """Part (c). Returns False if money was lost."""
    intact = True
    crashing = {**os.environ, "HOLDFAST_CRASH_AT": "between-debit-and-credit"}
    for name, verb in [("example_bank", "clobber re-executes"),
                       ("example_bank_undo", "undo rolls back")]:
        def bank(*arguments, program=programs / name, **how):
            return subprocess.run([program, *arguments], capture_output=True, text=True, **how)

        file = scratch.disk / f"{name}.hf"
        bank("create", file, "10", "1000", check=True)
        crashed = bank("transfer", file, "0", "1", "250", env=crashing)
        after = bank("total", file).stdout.strip()
        right = (crashed.returncode == -signal.SIGKILL
                 and after.startswith("10 accounts, 10000 cents"))
        intact = intact and right
        print(f"    {verb + ':':22} {after}{'' if right else '   <- wrong'}")
    return intact


def measure(servers, clients, seconds):
    """Requests a second of each server, same clients, runs interleaved: [(what, rates)]."""
    rows = []
    for what, operation, batch in LOADS:
        done = [0] * len(servers)
        for _ in range(2):
            for number, server in enumerate(servers):
                done[number] += clients.total("load", server.path, operation, batch, seconds)
        rows.append((what, [count / (2 * seconds) for count in done]))
    return rows


class Scratch:
    """Files and servers of one run; all of them are gone when it ends, however it ends."""

    def __init__(self):
        self.disk = pathlib.Path(tempfile.mkdtemp(prefix="holdfast-demo-"))
        tmpfs = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
        self.memory = pathlib.Path(tempfile.mkdtemp(prefix="holdfast-demo-", dir=tmpfs))
        self.servers = []

    def server(self, command, socket_name):
        self.servers.append(Server(command, self.disk / socket_name))
        return self.servers[-1]

    def end(self):
        for server in self.servers:
            server.end()
        shutil.rmtree(self.disk, ignore_errors=True)
        shutil.rmtree(self.memory, ignore_errors=True)


def print_table(facts, rows):
    print("\nwhat was measured")
    for name, value in facts:
        print(f"    {name:34} {value}")
    print(f"\n    {'requests a second':22}{'holdfast-kv':>13}{'memcached':>13}{'ratio':>8}")
    for what, (ours, theirs) in rows:
        print(f"    {what:22}{ours:13.0f}{theirs:13.0f}{ours / theirs:8.2f}")
    print("    (pymemcache over a Unix socket; one by one the client is the slower side)\n")


def run(options, scratch, clients):
    programs = options.bin.resolve()
    kv = scratch.server([str(programs / "holdfast-kv"), "--pool", str(scratch.disk / "demo.hf"),
                         "--mode", "process", "-u", "root"], "holdfast.sock")
    print(f"(a) holdfast-kv, {options.kills} x kill -9 under load, seed {options.seed}")
    chance = random.Random(options.seed)
    acknowledged, lost, restarts_ms = kill_over_and_over(kv, clients, options.kills, chance)
    print("\n(b) what memcached keeps")
    show_memcached(clients, scratch)
    print("\n(c) a bank killed between debit and credit: 10 accounts, 10000 cents before")
    intact = show_bank(programs, scratch)

    peer = scratch.server(["memcached"], "memcached.sock")
    peer.start()
    clients.total("fill", peer.path)
    rows = measure([kv, peer], clients, options.seconds)
    restart_ms = statistics.median(restarts_ms)
    print_table([("writes acknowledged", acknowledged),
                 ("kills", options.kills),
                 ("writes lost", lost),
                 ("restart, exec to first answer",
                  f"{restart_ms:.1f} ms median, {max(restarts_ms):.1f} ms at most")], rows)
    print(f"demo: acknowledged={acknowledged} kills={options.kills} lost={lost} "
          f"restart_ms={restart_ms:.1f}", flush=True)
    return 0 if lost == 0 and intact else 1


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bin", type=pathlib.Path, default="build/release/bin")
    parser.add_argument("--kills", type=int, default=30)
    parser.add_argument("--clients", type=int, default=3, help="client processes")
    parser.add_argument("--seconds", type=float, default=1.5, help="each throughput run")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    options = parser.parse_args()
    for stop in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(stop, signal.default_int_handler)
    clients = Clients(options.clients, options.seed)
    scratch = Scratch()
    try:
        return run(options, scratch, clients)
    except KeyboardInterrupt:
        print("\ndemo: interrupted", file=sys.stderr)
        return 130
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        clients.end()
        scratch.end()


if __name__ == "__main__":
    sys.exit(main())
