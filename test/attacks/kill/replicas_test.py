#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Replicas of an object, a leader and its followers, that are killed and paused under load: docs/guide/replication.md.

usage: replicas_test.py [--events N] [--seed N] [--redis-kills N] [--needs MODULE... --] COMMAND...

COMMAND POOL REDIS-PORT STREAM LEASE-MS is a replica that reads lines and answers them (examples/simpo_replica.cpp has the
protocol). The test starts Redis, three replicas and clients. At each event it kills a leader or a follower, and starts it
again; or stops the leader (SIGSTOP), waits until another one leads, asks the stopped one and lets it go on; or kills Redis.
A client asks one call until it has an answer, then the next one. In the end:
(1) each call that was answered is there, and each was made once: the sum is that of all calls;
(2) the stream has as many calls as each replica has made: no pool skipped one, or made one twice;
(3) all replicas are equal, in the order of their calls, too;
(4) a replica that was stopped while another one took over has answered nothing from then on until it led again.
Status 77: there is no redis-server, or no such module.
"""
import argparse
import itertools
import pathlib
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

CLIENTS, REPLICAS, LEASE_MS = 4, 3, 400
WAIT_S = 120     # for anything that must come: a busy machine is slow


def until(found, what, seconds=WAIT_S):
    end = time.monotonic() + seconds
    while not (result := found()):
        assert time.monotonic() < end, f"waited {seconds} s for: {what}"
        time.sleep(0.01)
    return result


class Redis:
    """What it has acknowledged is on its disk."""

    def __init__(self, folder):
        self.folder = folder
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.start()

    def start(self):
        self.process = subprocess.Popen(
            ["redis-server", "--port", str(self.port), "--bind", "127.0.0.1", "--dir", str(self.folder), "--appendonly", "yes",
             "--appendfsync", "always", "--save", ""], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        until(lambda: self.ask("PING") == "PONG", "Redis")

    def ask(self, *words):
        """A simple or integer answer, or an error's text."""
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=10) as client:
                client.sendall(b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(w), w.encode()) for w in words))
                return client.makefile("r").readline()[1:].strip()
        except OSError:
            return None

    def kill(self):
        self.process.kill()
        self.process.wait()


class Replica:
    numbers = itertools.count()

    def __init__(self, command, folder, name, redis):
        self.command = [*command, str(folder / f"{name}.hf"), str(redis.port), "accounts", str(LEASE_MS)]
        self.log = folder / f"{name}.log"
        self.name = name
        self.start()

    def start(self):
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True, bufsize=1)
        self.answers, self.arrived, self.write, self.sent, self.rests = {}, threading.Condition(), threading.Lock(), 0, False
        threading.Thread(target=self.read, args=(self.process.stdout, self.answers, self.arrived), daemon=True).start()

    @staticmethod
    def read(lines, answers, arrived):
        for line in lines:
            number, answer = line.rstrip("\n").split(" ", 1)
            with arrived:
                answers[number] = answer
                arrived.notify_all()

    def send(self, words):
        number = str(next(self.numbers))
        try:
            with self.write:
                self.process.stdin.write(f"{number} {words}\n")
                self.sent += 1
        except (OSError, ValueError):
            return None
        return number

    def answer(self, number, seconds):
        """None: it has not come."""
        if number is None:
            return None
        answers, arrived = self.answers, self.arrived
        with arrived:
            arrived.wait_for(lambda: number in answers, seconds)
            return answers.get(number)

    def ask(self, words, seconds=1.0):
        return self.answer(self.send(words), seconds)

    def leads(self):
        return (self.ask("state", 0.3) or "").endswith(" leads")

    def kill(self):
        self.process.kill()
        self.process.wait()

    def alive(self):
        assert self.process.poll() is None, f"replica {self.name} ended by itself: {self.log.read_text()[-1000:]}"

    def stopped(self):
        return pathlib.Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "T"


class Client(threading.Thread):
    """Asks each of its calls until it is answered."""

    def __init__(self, number, replicas, seed, stop):
        super().__init__(daemon=True)
        self.number, self.replicas, self.stop = number, replicas, stop
        self.random = random.Random(seed * 1000 + number)
        self.amounts, self.answered, self.repeated = [], 0, 0

    def run(self):
        at = self.replicas[0]
        while not self.stop.is_set():
            self.amounts.append(self.random.randrange(1, 1000))
            first = True
            while True:
                answer = None if at.rests else at.ask(f"add {self.number} {len(self.amounts)} {self.amounts[-1]}")
                if answer and answer.startswith("ok "):
                    self.answered += 1
                    break
                self.repeated += first
                first = False
                at = self.random.choice(self.replicas)
                time.sleep(0.005)


def leader_of(replicas):
    return next((each for each in replicas if each.leads()), None)


class Trial:
    def __init__(self, options, folder):
        self.random = random.Random(options.seed)
        self.redis = Redis(folder)
        self.replicas = [Replica(options.command, folder, f"replica {i}", self.redis) for i in range(REPLICAS)]
        self.stop = threading.Event()
        self.clients = [Client(i, self.replicas, options.seed, self.stop) for i in range(CLIENTS)]
        self.did = {}

    def pause_the_leader(self):
        leader = until(lambda: leader_of(self.replicas), "a leader")
        if self.random.random() < 0.5:    # then the first thing that it finds is a question, not a client's call
            leader.rests = True
            until(lambda: leader.sent == len(leader.answers), "its answers")
        leader.process.send_signal(signal.SIGSTOP)
        until(leader.stopped, "a stopped leader")
        others = [each for each in self.replicas if each is not leader]
        until(lambda: leader_of(others), "another leader beside one that is stopped")
        # It has read none of these; a client's call that it had read may be in the stream, and is answered rightly.
        numbers = [leader.send(words) for words in ("total", "add 40 1 1000000", "total", "state")]
        leader.process.send_signal(signal.SIGCONT)
        for number in numbers[:3]:
            answer = leader.answer(number, WAIT_S)
            assert answer in ("no", "lost"), f"(4): a former leader has answered {answer!r}"
        assert leader.answer(numbers[3], WAIT_S).endswith(" follows"), "(4)"
        leader.rests = False

    def kill_replica(self, leads):
        leader = until(lambda: leader_of(self.replicas), "a leader")
        which = leader if leads else self.random.choice([each for each in self.replicas if each is not leader])
        which.kill()
        if self.random.random() < 0.5:    # it comes back at once, or when another one has taken over
            until(lambda: leader_of([each for each in self.replicas if each is not which]), "another leader")
        which.start()

    def kill_redis(self):
        self.redis.kill()
        time.sleep(self.random.random() * 0.1)
        self.redis.start()

    def run(self, events, redis_kills):
        for each in self.clients:
            each.start()
        planned = [self.random.choice(["kill the leader", "kill a follower", "stop the leader"]) for _ in range(events)]
        for at in self.random.sample(range(events), min(redis_kills, events)):
            planned[at] = "kill Redis"
        for event in planned:
            time.sleep(self.random.random() * 0.2)
            if event == "stop the leader":
                self.pause_the_leader()
            elif event == "kill Redis":
                self.kill_redis()
            else:
                self.kill_replica(event == "kill the leader")
            self.did[event] = self.did.get(event, 0) + 1
            for each in self.replicas:
                each.alive()
        self.stop.set()
        for each in self.clients:
            each.join(WAIT_S)
            assert not each.is_alive(), "a client's last call has no answer"

    def check(self):
        leader = until(lambda: leader_of(self.replicas), "a leader")
        until(lambda: leader.ask("total", 5), "the leader's total")
        states = []
        for each in self.replicas:    # a follower comes to the leader's state
            state = until(lambda: (s := each.ask("state", 5)) and s.split()[1:4], "a state")
            wanted = until(lambda: leader.ask("state", 5), "a state").split()[1:4]
            until(lambda: each.ask("state", 5).split()[1:4] == wanted, f"(3): {each.name} like the leader, {wanted}; it had {state}", 30)
            states.append(each.ask("state", 5).split()[1:4])
        total, calls, _ = states[0]
        assert all(each == states[0] for each in states), f"(3): {states}"
        expected = sum(sum(each.amounts) for each in self.clients)
        assert all(each.answered == len(each.amounts) for each in self.clients)
        assert int(total) == expected, f"(1): expected a sum of {expected}, found {total}"
        entries = int(self.redis.ask("XLEN", "accounts"))
        leaders = int(self.redis.ask("EVAL", "local n = 0 for _, e in ipairs(redis.call('XRANGE', 'accounts', '-', '+')) do "
                                             "if e[2][1] == 'leads' then n = n + 1 end end return n", "0"))
        assert int(calls) == entries - leaders, f"(2): expected {entries} entries less {leaders} leaders, found {calls} calls"
        print(f"{sum(each.answered for each in self.clients)} calls answered, {sum(each.repeated for each in self.clients)} of them asked again, "
              f"0 lost, 0 made twice; {leaders} leaders; {self.did}")

    def end(self):
        for each in self.replicas:
            each.process.kill()
            each.process.wait()
        self.redis.kill()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--events", type=int, default=20)
    parser.add_argument("--redis-kills", type=int, default=2)
    parser.add_argument("--seed", type=int, default=20180301)
    parser.add_argument("--needs", nargs="+", default=[], help="modules that the command imports with this Python")
    parser.add_argument("command", nargs="+")
    options = parser.parse_args()
    for module in options.needs:
        if subprocess.run([sys.executable, "-c", f"import {module}"], stderr=subprocess.DEVNULL).returncode != 0:
            print(f"skipped: Python finds no {module}")
            sys.exit(77)
    if shutil.which("redis-server") is None:
        print("skipped: redis-server is not installed")
        sys.exit(77)
    print(f"seed {options.seed}", flush=True)
    with tempfile.TemporaryDirectory(prefix="holdfast-replicas-", dir="/dev/shm") as folder:
        trial = Trial(options, pathlib.Path(folder))
        try:
            trial.run(options.events, options.redis_kills)
            trial.check()
        except BaseException:
            for each in trial.replicas:
                print(f"{each.name}: {each.log.read_text()[-600:]}")
            raise
        finally:
            trial.end()


main()
