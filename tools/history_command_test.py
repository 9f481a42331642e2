#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""holdfast history: the calls of an object, kept in a file and in the pool's log, in a pool that was closed and in one whose
process was killed; packed; and what it says of a history that is damaged, cut or gone.

usage: history_command_test.py BIN
"""
import json
import pathlib
import subprocess
import sys
import tempfile

BIN = pathlib.Path(sys.argv[1])


def history(*words):
    return subprocess.run([BIN / "holdfast", "history", *words], capture_output=True, text=True, check=False)


def calls_in(pool):
    done = history(pool, "all", "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def main():
    with tempfile.TemporaryDirectory() as folder:
        pool = pathlib.Path(folder) / "past.hf"
        run = [BIN / "example_simpo_history", pool]
        subprocess.run(run, check=True, capture_output=True)
        lines = history(pool, "all").stdout.splitlines()
        assert len(lines) == 2002 and lines[1].split() == ["1", "40", "count(0)"], lines[:3]
        assert lines[-1].split(maxsplit=2)[2] == "clear(), ended a group", lines[-1]

        killed = subprocess.run(run, check=False, capture_output=True, env={"HOLDFAST_CRASH_AT": "cleared"})
        assert killed.returncode == -9, killed
        said = calls_in(pool)
        calls = said["calls"]
        assert [c["number"] for c in calls] == list(range(1, 4003))
        assert [c["arguments"] for c in calls[2001:4001]] == [[str(i % 200)] for i in range(2000)]
        assert calls[-1]["in_pool"] and not calls[0]["in_pool"], calls[-1]
        assert calls[-1]["function"] == "clear" and calls[-1]["identifier"] == calls[2000]["identifier"]

        file = pathlib.Path(said["file"])
        whole = file.read_bytes()
        for bad, status, why in ((whole[:-1], 1, "expected the calls up to position"), (b"no history", 1, "found other bytes"),
                                 (None, 2, "is not there")):
            if bad is None:
                file.unlink()
            else:
                file.write_bytes(bad)
            done = history(pool, "all")
            assert done.returncode == status and why in done.stderr, (done.returncode, done.stderr)
        file.write_bytes(whole)
        assert calls_in(pool) == said
        for words, why in (((pool, "none"), 'no persistent object "none"'), ((pool.with_suffix(".gone"), "all"), "No such file")):
            done = history(*words)
            assert done.returncode == 2 and why in done.stderr, done.stderr
        print(f"{len(calls)} calls")


main()
