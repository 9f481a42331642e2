#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Accounts in the pools of several processes: docs/guide/replication.md.

usage: replica.py POOL REDIS-PORT STREAM [LEASE-MS]

Reads and answers lines as examples/simpo_replica.cpp does.
"""
import os
import select
import sys
import time

import holdfast
import holdfast.replication
import redis


class Accounts(holdfast.Object):
    def __init__(self):
        self.clients, self.total, self.calls, self.trace = {}, 0, 0, 0

    @holdfast.instant
    def add(self, client, number, amount):
        self.calls += 1
        asked, answer = self.clients.get(client, (0, 0))
        if number > asked:    # else its answer was lost, and it asks again
            self.total += amount
            self.trace = (self.trace * 31 + amount) % 2**64
            self.clients[client] = number, self.total
            return self.total
        return answer


def answer(replica, line):
    number, what, *words = line.split()
    if what == "state":
        has = replica.object
        return f"{number} ok {has.total} {has.calls} {has.trace} {'leads' if replica.leads else 'follows'}"
    try:
        result = replica.call.add(*map(int, words)) if what == "add" else replica.read().total
    except holdfast.Error as error:
        if error.code != "conflict":
            raise
        return f"{number} no"
    except redis.RedisError:
        return f"{number} lost"
    return f"{number} ok {result}"


def lines_there(rest, wait):
    """Whole lines of the standard input; None: it has ended."""
    if not select.select([0], [], [], wait)[0]:
        return []
    some = os.read(0, 4096)
    if not some:
        return None
    *lines, rest[0] = (rest[0] + some).split(b"\n")
    return [line.decode() for line in lines]


def main():
    path, port, stream, lease_ms = [*sys.argv[1:], "2000"][:4]
    accounts = Accounts.open(path, "all")
    replica = holdfast.replication.Replica(accounts, redis.Redis(port=int(port), socket_timeout=2), stream, lease=int(lease_ms) / 1000)
    rest = [b""]
    while True:
        try:
            leads = replica.step(0.02)
        except redis.RedisError as error:    # Redis may come back
            print(error, file=sys.stderr)
            leads = False
            time.sleep(0.02)
        lines = lines_there(rest, 0.02 if leads else 0)
        if lines is None:
            break
        for line in lines:
            print(answer(replica, line), flush=True)


main()
