#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""An actor that is killed, and what it knows when it is started again.

usage: actor.py [--calls N] [--words N] [--folder FOLDER]

Three actors count words: one in memory, one that pickles what it has after each call, one whose state is a
holdfast.Object. Each gets its calls, is killed with SIGKILL, and is asked again. They are Ray actors where there is Ray
(pip install ray), which starts them again by itself; else processes of multiprocessing, started again here.
"""
import argparse
import multiprocessing
import os
import pathlib
import pickle
import signal
import tempfile
import time

import holdfast

try:
    import ray
except ImportError:
    ray = None


class Tally(holdfast.Object):
    def __init__(self):
        self.counts, self.all = {}, 0

    @holdfast.deferrable
    def add(self, word):
        self.counts[word] = self.counts.get(word, 0) + 1
        self.all += 1

    @holdfast.instant
    def add_and_count(self, word):
        self.add(word)
        return self.all


class Plain:
    """State lost with the process."""

    def __init__(self, folder):
        self.counts, self.all = {}, 0

    def add(self, word):
        self.counts[word] = self.counts.get(word, 0) + 1
        self.all += 1
        return self.all

    def total(self):
        return self.all

    def pid(self):
        return os.getpid()


class Pickling(Plain):
    """Writes all of its state with each call: to the file system, not to the disk, as mode process does."""

    def __init__(self, folder):
        super().__init__(folder)
        self.path = pathlib.Path(folder) / "tally.pickle"
        if self.path.exists():
            self.counts, self.all = pickle.loads(self.path.read_bytes())

    def add(self, word):
        super().add(word)
        new = self.path.with_suffix(".new")
        new.write_bytes(pickle.dumps((self.counts, self.all)))
        new.replace(self.path)
        return self.all


class Kept(Plain):
    """Each call survives when it has returned."""

    def __init__(self, folder):
        self.tally = Tally.open(pathlib.Path(folder) / "tally.hf", "tally")

    def add(self, word):
        return self.tally.add_and_count(word)

    def total(self):
        return self.tally.all


class Deferring(Kept):
    """Every hundredth call commits those before it; a kill loses at most 99."""

    calls = 0

    def add(self, word):
        self.calls += 1
        if self.calls % 100 == 0:
            return super().add(word)
        self.tally.add(word)


class OfRay:
    def __init__(self, kind, folder):
        self.actor = ray.remote(max_restarts=-1, max_task_retries=-1)(kind).remote(folder)

    def call(self, name, arguments):
        return ray.get([getattr(self.actor, name).remote(*each) for each in arguments])

    def killed(self):
        os.kill(self.call("pid", [()])[0], signal.SIGKILL)
        return self

    def end(self):
        ray.kill(self.actor)


def serve(kind, folder, pipe):
    actor = kind(folder)
    while True:
        name, arguments = pipe.recv()
        pipe.send([getattr(actor, name)(*each) for each in arguments])


class OfMultiprocessing:
    def __init__(self, kind, folder):
        self.what = kind, folder
        self.pipe, its = multiprocessing.Pipe()
        self.process = multiprocessing.get_context("spawn").Process(target=serve, args=(kind, folder, its), daemon=True)
        self.process.start()

    def call(self, name, arguments):
        self.pipe.send((name, arguments))
        return self.pipe.recv()

    def killed(self):
        self.end()
        return OfMultiprocessing(*self.what)

    def end(self):
        self.process.kill()
        self.process.join()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--calls", type=int, default=5000)
    parser.add_argument("--words", type=int, default=1000)
    parser.add_argument("--folder", help="where state is kept; default: a temporary one")
    options = parser.parse_args()
    if ray is not None:
        ray.init(num_cpus=1, include_dashboard=False, log_to_driver=False, logging_level="error")
    actor_of = OfMultiprocessing if ray is None else OfRay
    print(f"{'multiprocessing' if ray is None else f'ray {ray.__version__}'}, {options.calls} calls, {options.words} words")
    for kind in (Plain, Pickling, Kept, Deferring):
        with tempfile.TemporaryDirectory(dir=options.folder) as folder:
            actor = actor_of(kind, folder)
            actor.call("total", [()])  # it is there
            began = time.monotonic()
            actor.call("add", [(f"word {i % options.words}",) for i in range(options.calls)])
            seconds = time.monotonic() - began
            actor = actor.killed()
            print(f"{kind.__name__:10} {seconds / options.calls * 1e6:8.1f} us a call; after kill -9 it has "
                  f"{actor.call('total', [()])[0]} of {options.calls}")
            actor.end()


if __name__ == "__main__":
    main()
