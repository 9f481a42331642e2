#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Every mutant's place is there exactly once, wherever the checkout lies: of the runtime's, of the
analysis's, of mode power's, and of those that are linked to a test. This takes seconds; the mutants
themselves take minutes. And a mutant that never ends is distinguished from one that is rejected."""
import json
import pathlib
import sys
import tempfile

import mutants


def other_places(root):
    """(name, file, text that must be there once) of the lists that have a runner of their own."""
    for listed in sorted(root.glob("src/*/mutants_*.json")):
        for mutant in json.loads(listed.read_text()):
            yield mutant["name"], mutant["file"], mutant["old"]
    for mutant in json.loads((root / "test/attacks/soundness/analysis_mutants.json").read_text()):
        for part in [mutant, *mutant.get("more", [])]:
            for old, _ in part["edits"]:
                yield mutant["name"], part["file"], old


def main():
    root = pathlib.Path(sys.argv[1]).resolve()
    listed = mutants.lists(root)
    here = mutants.read_mutants(listed, root)
    with tempfile.TemporaryDirectory() as folder:
        elsewhere = pathlib.Path(folder) / "verify" / "check"  # names that matter inside the checkout
        elsewhere.mkdir(parents=True)
        for name in mutants.SOURCES:
            (elsewhere / name).symlink_to(root / name, target_is_directory=True)
        files = {path.name for path in elsewhere.iterdir()}
        assert files == set(mutants.SOURCES), files
        there = mutants.read_mutants(listed, elsewhere)
    assert [m["file"] for m in here] == [m["file"] for m in there]
    others = list(other_places(root))
    lost = [f"{name}: {file}:\n{old}" for name, file, old in others if (root / file).read_text().count(old) != 1]
    assert not lost, "not there exactly once:\n" + "\n".join(lost)
    status, seconds, said = mutants.check("/bin/sh", ["-c", "while :; do :; done"], seconds_max=1)
    assert status not in (0, 1) and said == "no verdict in time" and seconds < 60, (status, seconds, said)
    print(f"mutants with a place: {len(here)}, and {len(others)} places of others")


if __name__ == "__main__":
    main()
