#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Every mutant's place is there exactly once, wherever the checkout lies: said in a second, before the
mutants themselves take minutes."""
import pathlib
import sys
import tempfile

import mutants


def main():
    root = pathlib.Path(sys.argv[1]).resolve()
    listed = pathlib.Path(__file__).resolve().parent / "mutants.json"
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
    print(f"mutants with a place: {len(here)}")


if __name__ == "__main__":
    main()
