# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Clobber's Fig 14 and SLPMT's Fig 13: how long clang takes for a source, with the plugin and without: processor
time, which other programs on the machine disturb less."""
import json
import pathlib
import resource
import statistics
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "scripts"))
import compile_command  # noqa: E402

STRUCTURES = ["hashmap", "bptree", "skiplist", "rbtree", "avl"]
BUILDS = ["none", "clobber"]    # without the plugin, with it
SELECTIVE = ["hashmap", "bptree", "rbtree", "avl"]
SERVER = ["section_store", "eviction", "sections"]      # files of the server that change its pool


def command_of(entries, object_file):
    """The build's command for an object as a user has it, its output thrown away."""
    for entry in entries:
        if object_file in entry["command"]:
            words = compile_command.plain(entry["command"])
            words[words.index("-o") + 1] = "/dev/null"
            return words, entry["directory"]
    raise SystemExit(f"compile_commands.json has no {object_file}")


def spent_by_children():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def rounds_of(build, objects, rounds):
    """The seconds of each round, by the objects' names: {name: path of the object in the build}."""
    entries = json.loads((build / "compile_commands.json").read_text())
    times = {name: [] for name in objects}
    for _ in range(rounds):
        for name, seconds in times.items():
            words, directory = command_of(entries, objects[name])
            before = spent_by_children()
            subprocess.run(words, cwd=directory, check=True)
            seconds.append(spent_by_children() - before)
    return times


def measure(build, rounds):
    objects = {(structure, name): f"hf_bench_{name}.dir/ours/{structure}.cpp.o"
               for structure in STRUCTURES for name in BUILDS}
    objects |= {(structure, "selective"): f"hf_bench_selective.dir/ours/{structure}.cpp.o" for structure in SELECTIVE}
    objects |= {(file, name): f"server_store_{name}.dir/__/__/apps/kv/store/{file}.cpp.o" for file in SERVER for name in BUILDS}
    times = rounds_of(build, objects, rounds)
    for name in BUILDS:
        times["server", name] = [sum(files) for files in zip(*(times.pop((file, name)) for file in SERVER))]
    return [{"structure": structure, "build": name, "seconds": statistics.median(seconds),
             "seconds_of_rounds": seconds}
            for (structure, name), seconds in times.items()]
