#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ray actors with pools, on nodes that die: docs/guide/ray.md.

usage: fleet.py [--kills N] [--actors N] [--seed N] FOLDER

Starts a Ray cluster of two nodes besides the head, on this machine. Each node has a disk: a folder, and a resource of its
name. Actors that are bound to a disk wait for a node that has it; others go to any node, with pools in a folder that all
nodes reach. Under load a node is killed, and another one comes up with its disk. In the end each actor must have made each
call once. Status 1: one was lost, or made twice. 77: there is no Ray.
"""
import argparse
import pathlib
import random
import sys
import threading
import time

import holdfast

try:
    import ray
    from ray.cluster_utils import Cluster
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

WAIT_S = 300


class Tally(holdfast.Object):
    def __init__(self):
        self.counts, self.opened = {}, 0

    @holdfast.instant
    def add(self, word):
        self.counts[word] = self.counts.get(word, 0) + 1
        return self.counts[word]

    @holdfast.instant
    def note_open(self):
        self.opened += 1


@ray.remote(max_restarts=-1, max_task_retries=-1, num_cpus=0)
class Counter:
    def __init__(self, pool):
        self.tally = Tally.open(pool, "tally", wait=60)    # the actor's former process may be about to end
        self.tally.note_open()

    def add(self, caller, number, word):
        return self.tally.once(caller, number).add(word)   # Ray may send it again: it is made once

    def state(self):
        return dict(self.tally.counts), self.tally.opened, ray.get_runtime_context().get_node_id()


class Caller(threading.Thread):
    """Sends an actor its calls, one at a time: numbers must come in their order."""

    def __init__(self, name, actor, stop):
        super().__init__(daemon=True)
        self.name, self.actor, self.stop, self.made, self.repeated, self.failed = name, actor, stop, 0, 0, None

    def run(self):
        while not self.stop.is_set():
            number = self.made + 1
            while True:
                try:
                    answer = ray.get(self.actor.add.remote("fleet", number, "word"), timeout=WAIT_S)
                    break
                except ray.exceptions.RayActorError:    # the actor is being started again
                    self.repeated += 1
                    time.sleep(0.1)
                except Exception as error:
                    self.failed = error
                    return
            if answer != number:
                self.failed = AssertionError(f"call {number} was answered {answer}")
                return
            self.made = number


def until(found, what):
    end = time.monotonic() + WAIT_S
    while not found():
        if time.monotonic() > end:
            sys.exit(f"waited {WAIT_S} s for: {what}")
        time.sleep(0.05)


def node_with(cluster, disk):
    return cluster.add_node(num_cpus=1, resources={disk: 1}, object_store_memory=80 << 20)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=2)
    parser.add_argument("--actors", type=int, default=2, help="for each disk, and for the folder that all nodes reach")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("folder", type=pathlib.Path)
    options = parser.parse_args()
    chance = random.Random(options.seed)
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False, "object_store_memory": 80 << 20})
    disks = ["disk_a", "disk_b"]
    nodes = {disk: node_with(cluster, disk) for disk in disks}
    ray.init(address=cluster.address, log_to_driver=False, logging_level="error")
    actors = {}
    for place in (*disks, "everywhere"):
        (options.folder / place).mkdir(parents=True, exist_ok=True)
        how = {"resources": {place: 0.01}} if place in disks else {"scheduling_strategy": "SPREAD"}
        for i in range(options.actors):
            name = f"{place} {i}"
            actors[name] = Counter.options(name=name, **how).remote(str(options.folder / place / f"{i}.hf"))
    stop = threading.Event()
    callers = {name: Caller(name, actor, stop) for name, actor in actors.items()}
    for caller in callers.values():
        caller.start()

    def all_go_on(of):
        wanted = {name: callers[name].made + 20 for name in of}
        until(lambda: all(callers[name].made >= count or callers[name].failed for name, count in wanted.items()), f"calls of {', '.join(of)}")

    def node_of(name):
        try:
            return ray.get(actors[name].state.remote(), timeout=WAIT_S)[2]
        except ray.exceptions.RayActorError:
            return None

    all_go_on(actors)
    for kill in range(options.kills):
        disk = chance.choice(disks)
        dead = nodes[disk].node_id
        free = [name for name in actors if name.startswith("everywhere")]
        there = [name for name in free if node_of(name) == dead]
        began = time.monotonic()
        cluster.remove_node(nodes[disk], allow_graceful=False)
        until(lambda: all(node_of(name) not in (dead, None) for name in free), "actors that move")
        all_go_on([name for name in actors if not name.startswith(disk)])
        moved = time.monotonic() - began
        nodes[disk] = node_with(cluster, disk)
        all_go_on(actors)
        print(f"kill {kill + 1}, of {disk}'s node: {len(there)} free actors went on elsewhere after {moved:.1f} s; all went on "
              f"{time.monotonic() - began - moved:.1f} s after another node was started with the disk", flush=True)
    stop.set()
    lost = 0
    for name, caller in callers.items():
        caller.join(WAIT_S)
        counts, opened, _ = ray.get(actors[name].state.remote(), timeout=WAIT_S)
        wrong = caller.failed or caller.is_alive() or counts.get("word") != caller.made
        lost += bool(wrong)
        print(f"{name:14} {caller.made:6} calls, {counts.get('word')} made, opened {opened} times{f': {caller.failed}' if wrong else ''}")
    print(f"seed {options.seed}: {sum(caller.made for caller in callers.values())} calls answered, {lost} actors with a call lost or made twice")
    ray.shutdown()
    cluster.shutdown()
    return 1 if lost else 0


sys.exit(main())
