#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""write_programs.py OUT FIRST COUNT SEED: random failure-atomic programs, as one source file.

COUNT programs, without those that free an item which was never allocated: the oracle's heap
forgives that, a pool's does not.
"""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "compiler/test/oracle/Inputs"))
import random_programs  # noqa: E402

out, first, count, seed = sys.argv[1], *map(int, sys.argv[2:])
text, _ = random_programs.write(seed, [i for i in range(first, first + count)
                                       if "hf_free(r)" not in random_programs.write(seed, [i])[0]])
pathlib.Path(out).write_text(text)
