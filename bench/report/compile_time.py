# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Fig 14: how long clang takes for a structure's source, with the plugin and without: processor
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


def command_of(entries, build, structure):
    """The build's command for the source as a user has it, its output thrown away."""
    for entry in entries:
        if f"hf_bench_{build}.dir/ours/{structure}.cpp.o" in entry["command"]:
            words = compile_command.plain(entry["command"])
            words[words.index("-o") + 1] = "/dev/null"
            return words, entry["directory"]
    raise SystemExit(f"compile_commands.json has no {build} {structure}")


def spent_by_children():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def measure(build, rounds):
    entries = json.loads((build / "compile_commands.json").read_text())
    times = {(structure, name): [] for structure in STRUCTURES for name in BUILDS}
    for _ in range(rounds):
        for (structure, name), seconds in times.items():
            words, directory = command_of(entries, name, structure)
            before = spent_by_children()
            subprocess.run(words, cwd=directory, check=True)
            seconds.append(spent_by_children() - before)
    return [{"structure": structure, "build": name, "seconds": statistics.median(seconds),
             "seconds_of_rounds": seconds} for (structure, name), seconds in times.items()]
