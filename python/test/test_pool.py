# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pools: options, one per path, what closing takes away; threads; fork()."""
import asyncio
import collections
import gc
import importlib.util
import itertools
import multiprocessing
import os
import pathlib
import pickle
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
import types
import unittest
import unittest.mock
import weakref

import holdfast
from support import Pooled, examples_with

KINDS = (holdfast.Map, holdfast.Set, holdfast.Vector, holdfast.Stack, holdfast.Queue)


def code_of(call):
    """The code of the holdfast.Error that the call raises."""
    try:
        call()
    except holdfast.Error as error:
        assert error.message and str(error) == error.message, error
        return error.code
    raise AssertionError("no holdfast.Error was raised")


def in_child(work, answers):
    try:
        answers.put(work())
    except BaseException as error:
        answers.put(error)


class LostNameTest(Pooled):
    def test_a_path_whose_file_was_removed_is_opened_anew(self):
        path = self.folder / "lost.hf"
        old = holdfast.Map(path, create_bytes=1 << 20)
        old["a"] = 1
        self.assertEqual(holdfast.Map(path), {"a": 1})
        for lose in (lambda: path.unlink(), lambda: path.rename(self.folder / "renamed.hf")):
            lose()
            with self.assertWarnsRegex(RuntimeWarning, "removed or renamed"):
                new = holdfast.Map(path, create_bytes=1 << 20)
            self.assertEqual(new, {})
            self.assertEqual(old["a"], 1)
            new["a"] = 1
            old = new


class OptionsTest(Pooled):
    """Each test fails when its option is not passed on."""

    def test_salvage_opens_what_may_be_torn(self):
        holdfast.Map(self.pool)["a"] = "b"
        copied = self.folder / "copied.hf"
        shutil.copy(self.path, copied)      # of a pool in use
        self.pool.close()                   # the copy wants its addresses
        self.assertEqual(code_of(lambda: holdfast.open(copied)), "torn")
        self.assertEqual(holdfast.Map(copied, salvage=True), {"a": "b"})

    def test_read_only_makes_no_pool(self):
        missing = self.folder / "missing.hf"
        self.assertEqual(code_of(lambda: holdfast.open(missing, read_only=True)), "not_found")
        self.assertFalse(missing.exists())

    def test_read_only_shows_what_was_committed(self):
        for killed in (False, True):
            path = self.folder / f"{killed}.hf"
            child = os.fork()
            if child == 0:
                written = holdfast.Map(path)
                written.update({str(n): "x" * n for n in range(100)})
                del written["7"]
                if not killed:
                    written.close()
                os._exit(0)
            self.assertEqual(os.waitpid(child, 0)[1], 0)
            before = path.read_bytes()
            with holdfast.open(path, read_only=True) as pool:
                shown = holdfast.Map(pool)
                self.assertEqual(shown, {str(n): "x" * n for n in range(100) if n != 7})
                for change in (lambda: shown.update(a="b"), lambda: shown.pop("8"),
                               lambda: holdfast.Vector(pool).append("c")):
                    self.assertEqual(code_of(change), "permission")
                pool.verify()
            self.assertEqual(path.read_bytes(), before)

    def test_another_process_reads_beside_a_writer(self):
        path = self.folder / "shared.hf"
        with holdfast.open(path, shared=True) as pool:
            prices = holdfast.Map(pool)
            prices["apple"] = "1.20"
            to_child, from_parent = os.pipe()
            to_parent, from_child = os.pipe()
            child = os.fork()
            if child == 0:
                failed = 1
                try:
                    with holdfast.open(path, read_only=True, shared=True) as beside:
                        shown = holdfast.Map(beside)
                        before = shown.snapshot()
                        os.write(from_child, b"1")
                        os.read(to_child, 1)
                        self.assertEqual((dict(before), shown["apple"], len(shown)), ({"apple": "1.20"}, "1.30", 2))
                        self.assertEqual(code_of(lambda: shown.update(a="b")), "permission")
                        self.assertEqual(code_of(lambda: holdfast.Map(beside, "none")), "not_found")
                        before.close()
                        failed = 0
                finally:
                    os._exit(failed)
            self.assertEqual(os.read(to_parent, 1), b"1")
            prices.update({"apple": "1.30", "pear": "2"})
            os.write(from_parent, b"1")
            self.assertEqual(os.waitpid(child, 0)[1], 0)
            for end in (to_child, from_parent, to_parent, from_child):
                os.close(end)

    def test_max_bytes_raises_the_limit_of_a_full_pool(self):
        path = self.folder / "full.hf"
        with holdfast.open(path, create_bytes=4 << 20, max_bytes=4 << 20) as pool:
            vector = holdfast.Vector(pool)
            self.assertEqual(code_of(lambda: vector.extend(["x" * (1 << 20)] * 8)), "pool_full")
        with holdfast.open(path, create_bytes=4 << 20, max_bytes=32 << 20) as pool:
            holdfast.Vector(pool).extend(["x" * (1 << 20)] * 8)


@unittest.skipUnless(os.environ.get("HOLDFAST_OTHER_PROGRAM"), "wheel_test.py was not given the other program")
class OtherProgramsTest(Pooled):
    """Pools of a C program with failure-atomic functions, for which this module has no engine."""

    def other_program(self, work):
        return subprocess.run([os.environ["HOLDFAST_OTHER_PROGRAM"], self.folder / "other.hf", work], timeout=60).returncode

    def open(self, **options):
        return holdfast.open(self.folder / "other.hf", layout="other/1", create="never", **options)

    def test_a_pool_with_a_pending_section_is_refused_with_a_way_out(self):
        self.assertEqual(self.other_program("pending"), -signal.SIGKILL)
        before = (self.folder / "other.hf").read_bytes()
        for options in ({}, {"salvage": True}, {"read_only": True}):
            with self.assertRaises(holdfast.Error) as refused:
                self.open(**options)
            self.assertEqual(refused.exception.code, "missing_engine")
            for words in ("clobber", "open and close it once with", "`holdfast repair --roll-back`"):
                self.assertIn(words, refused.exception.message)
        self.assertEqual((self.folder / "other.hf").read_bytes(), before)
        self.assertEqual(self.other_program("whole"), 0)        # completes the section, and closes
        with self.open() as pool:
            holdfast.Map(pool)["a"] = "b"

    def test_a_pool_that_was_closed_opens_and_stays_as_it_was(self):
        self.assertEqual(self.other_program("closed"), 0)
        for value in ("1", "2"):
            with self.open() as pool:
                holdfast.Map(pool, "mine")["a"] = value
                pool.verify()
            self.assertEqual(self.other_program("whole"), 0)
        with self.open(read_only=True) as pool:
            self.assertEqual(holdfast.Map(pool, "mine"), {"a": "2"})


class SizeTest(Pooled):
    def disk_bytes(self, path):
        return os.stat(path).st_blocks * 512

    def test_a_new_pool_takes_little_of_the_disk(self):
        path = self.folder / "small.hf"
        small = holdfast.Map(path)
        small["a"] = "b"
        self.assertLessEqual(self.disk_bytes(path), 1 << 20)
        self.assertEqual(small.pool.stats()["max_bytes"], 4 << 30)
        small.pool.close()
        self.assertLess(self.disk_bytes(path), 5 << 18)     # and its seal

    def test_a_small_pool_grows(self):
        values = holdfast.Vector(self.pool)
        for number in range(200):
            values.extend([str(number) * 30_000] * 2)
        size = os.path.getsize(self.path)
        self.assertGreater(size, 20 << 20)
        self.assertLess(size, 60 << 20)
        self.pool.verify()
        self.assertEqual(self.reopen(holdfast.Vector)[-1], "199" * 30_000)

    def test_sizes_are_as_asked_for(self):
        for create, most, found in ((0, 0, (1 << 20, 4 << 30)), (0, 1 << 19, (1 << 19, 1 << 19)),
                                    (2 << 20, 0, (2 << 20, 128 << 20)), (4 << 20, 8 << 20, (4 << 20, 8 << 20))):
            with holdfast.open(self.folder / f"{create}.{most}", create_bytes=create, max_bytes=most) as pool:
                stats = pool.stats()
                self.assertEqual((stats["size_bytes"], stats["max_bytes"]), found)
        self.assertEqual(code_of(lambda: holdfast.open(self.folder / "least", max_bytes=1000)), "bad_argument")


class PoolTest(Pooled):
    def test_errors_have_code_and_message(self):
        self.assertEqual(code_of(lambda: holdfast.open(self.folder / "no/such.hf")), "not_found")
        self.assertEqual(code_of(lambda: holdfast.open(self.folder / "no.hf", create="never")),
                         "not_found")
        self.assertEqual(code_of(lambda: holdfast.open(self.folder / "a.hf", max_threads=10**6)),
                         "bad_argument")
        (self.folder / "text").write_text("no pool" * 20000)
        self.assertEqual(code_of(lambda: holdfast.Map(self.folder / "text")), "not_a_pool")
        self.pool.close()
        self.assertEqual(code_of(lambda: holdfast.open(self.path, layout="mine/1")), "wrong_layout")
        self.assertEqual(code_of(lambda: holdfast.open(self.path, create="always_new")), "exists")
        error = pickle.loads(pickle.dumps(holdfast.Error("in_use", "who")))
        self.assertEqual((error.code, error.message), ("in_use", "who"))

    def test_a_copy_has_what_was_committed_when_it_was_made(self):
        numbers = holdfast.Map(self.pool, "numbers")
        stop = threading.Event()

        def write():
            count = 0
            while not stop.is_set():
                count += 1
                numbers.update({"a": str(count), "b": str(count)})

        writer = threading.Thread(target=write)
        writer.start()
        copies = []
        for number in range(3):
            copies.append(f"{self.pool.path}.copy{number}")
            size, pause_ms = self.pool.copy_to(copies[-1])
            self.assertEqual(os.path.getsize(copies[-1]), size)
            self.assertGreater(pause_ms, 0)
        self.assertEqual(code_of(lambda: self.pool.copy_to(copies[0])), "exists")
        stop.set()
        writer.join()
        self.pool.close()
        for copy in copies:
            with holdfast.open(copy) as pool:
                pool.verify()
                found = holdfast.Map(pool, "numbers")
                self.assertEqual(found.get("a"), found.get("b"))
            os.unlink(copy)

    def being_copied(self):
        """Whether a copy is under way: a file of this folder is open, and is not the pool's. It need not have a name yet."""
        own = os.stat(self.path).st_ino
        for number in os.listdir("/proc/self/fd"):
            try:
                if os.readlink(f"/proc/self/fd/{number}").startswith(str(self.folder)) and os.fstat(int(number)).st_ino != own:
                    return True
            except OSError:     # closed meanwhile
                pass
        return False

    def start_copy(self, copies, failed):
        """In a thread; returns when it is under way, or was."""
        def copy():
            try:
                copies.append(self.pool.copy_to(self.folder / f"copy{len(copies)}"))
            except BaseException as error:
                failed.append(error)

        copier = threading.Thread(target=copy)
        copier.start()
        while copier.is_alive() and not self.being_copied():
            pass
        return copier

    def test_changes_go_on_while_a_pool_is_copied(self):
        holdfast.Map(self.pool, "large").update({number: "x" * 8000 for number in range(8000)})
        numbers, copies, failed = holdfast.Map(self.pool, "numbers"), [], []
        changed = many = 0
        while (changed == 0 or many == 0) and len(copies) < 20 and not failed:
            copier = self.start_copy(copies, failed)
            for number in range(10):
                numbers[number] = "alone"       # with the interpreter's lock
                changed += self.being_copied()
                numbers.update({each: number for each in range(100)})   # and without
                many += self.being_copied()
            copier.join()
            os.unlink(self.folder / f"copy{len(copies) - 1}")
        self.assertEqual(failed, [])
        self.assertGreater(changed, 0)
        self.assertGreater(many, 0)

    def test_closing_waits_for_a_copy(self):
        holdfast.Map(self.pool, "large").update({number: "x" * 8000 for number in range(4000)})
        copies, failed = [], []
        copier = self.start_copy(copies, failed)
        self.pool.close()
        self.assertFalse(self.being_copied())
        copier.join()
        self.assertEqual(failed, [])
        with holdfast.open(self.folder / "copy0") as pool:
            self.assertEqual(len(holdfast.Map(pool, "large")), 4000)

    def test_a_path_can_be_opened_while_its_pool_is_being_closed(self):
        holdfast.Map(self.pool).update({number: "x" * 8000 for number in range(8000)})
        for how in ("closed", "dropped"):
            weak = weakref.ref(self.pool)
            pools = [self.pool]
            self.pool = None
            closer = threading.Thread(target=lambda: pools[0].close() if how == "closed" else pools.clear())
            closer.start()
            while (there := weak()) is not None and not there.closed:
                del there
            there = None
            self.pool = holdfast.open(self.path)    # reading all of it takes the closer longer than to come here
            closer.join()
            self.assertEqual(len(holdfast.Map(self.pool)), 8000)

    def test_trimming_gives_disk_space_back(self):
        def disk_bytes():
            return os.stat(self.path).st_blocks * 512

        kept = holdfast.Map(self.pool, "kept")
        kept["a"] = "b"
        large = holdfast.Vector(self.pool, "large")
        large.extend(["x" * 100_000] * 100)
        large.clear()
        before = disk_bytes()
        given = self.pool.trim()
        self.assertGreater(given, 10_000_000)
        self.assertLess(disk_bytes(), before - 10_000_000)
        large.append("after")
        self.pool.verify()
        kept = self.reopen(holdfast.Map, "kept")
        self.assertEqual((dict(kept), list(holdfast.Vector(self.pool, "large"))), ({"a": "b"}, ["after"]))
        self.pool.close()
        self.assertEqual(code_of(self.pool.trim), "closed")

    def test_stats_count_updates_and_space(self):
        numbers = holdfast.Map(self.pool, "numbers")
        before = self.pool.stats()
        for number in range(100):
            numbers[str(number)] = "x" * 100
        after = self.pool.stats()
        self.assertEqual(after["sections"] - before["sections"], 100)
        self.assertGreaterEqual(after["pm_bytes"] - before["pm_bytes"], 100 * 100)
        self.assertLessEqual(after["size_bytes"], after["max_bytes"])
        self.assertEqual(after["generation"], 1)

    def test_verify_finds_what_is_damaged(self):
        a_map = holdfast.Map(self.pool)
        a_map.update({str(n): "x" * n for n in range(100)})
        self.pool.verify()
        self.pool.close()
        whole = pathlib.Path(self.path).read_bytes()
        with open(self.path, "r+b") as file:  # which nodes are in use, of every arena: none
            at = whole.find(b"MODARENA")
            while at >= 0:
                file.seek(at + 64)
                file.write(bytes(8))
                at = whole.find(b"MODARENA", at + 8)
        self.pool = holdfast.open(self.path)
        self.assertEqual(code_of(self.pool.verify), "corrupt")

    def test_wrong_options_are_named(self):
        self.assertRaises(ValueError, holdfast.open, self.folder / "b.hf", durability="forever")
        self.assertRaises(ValueError, holdfast.open, self.folder / "b.hf", create="maybe")
        self.assertRaises(ValueError, holdfast.open, self.folder / "b.hf", layout="a\0b")
        self.assertRaises(ValueError, holdfast.Map, self.pool, "a\0b")
        self.assertRaises(TypeError, holdfast.open, self.folder / "b.hf", size=1)
        self.assertRaises(ValueError, holdfast.Map, self.pool, when_durable="soon")
        self.assertRaises(TypeError, holdfast.Map, self.pool, durability="pmem")
        self.assertRaises(TypeError, holdfast.Map, 7)
        self.assertFalse((self.folder / "b.hf").exists())

    def test_structures_of_one_path_share_its_pool(self):
        path = self.folder / "shared.hf"
        structures = [kind(path) for kind in KINDS]
        relative = holdfast.Map(os.path.relpath(path), "other")
        self.assertEqual(len({id(each.pool) for each in [*structures, relative]}), 1)
        self.assertEqual(structures[0].pool.path, str(path))
        for kind, each in zip(KINDS, structures):
            self.assertEqual(each.name, kind.__name__.lower())
        self.assertRaises(ValueError, holdfast.Set, path, durability="pmem")
        self.assertIs(holdfast.open(path), structures[0].pool)
        structures[0]["a"] = "b"
        del structures, relative, each
        gc.collect()
        with holdfast.open(path) as pool:       # the last one closed it
            self.assertEqual(holdfast.Map(pool), {"a": "b"})
        self.assertTrue(pool.closed)

    def test_a_pool_that_is_open_is_the_same_pool(self):
        path = self.folder / "notebook.hf"
        first = holdfast.open(path, max_bytes=8 << 20)
        for again in (holdfast.open(path), holdfast.open(path, max_bytes=8 << 20, wait=1), holdfast.open(os.path.relpath(path), layout="python/1")):
            self.assertIs(again, first)
        for options in ({"max_bytes": 9 << 20}, {"durability": "power"}, {"read_only": True}):
            with self.assertRaisesRegex(ValueError, "other options"):
                holdfast.open(path, **options)
        self.assertEqual(code_of(lambda: holdfast.open(path, create="always_new")), "exists")
        with holdfast.open(path) as outer:
            with holdfast.open(path) as inner:
                holdfast.Map(inner)["a"] = 1
            self.assertEqual(holdfast.Map(outer), {"a": 1})     # the inner 'with' has left it open
        self.assertTrue(first.closed)
        again = holdfast.open(path)
        self.assertIsNot(again, first)
        again.close()

    def test_waiting_for_another_process(self):
        self.pool.close()
        holder = subprocess.Popen([sys.executable, "-c", "import sys, holdfast; p = holdfast.open(sys.argv[1]); print('open', flush=True); input(); p.close()",
                                   self.path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.assertEqual(holder.stdout.readline(), "open\n")
        self.assertEqual(code_of(lambda: holdfast.open(self.path)), "in_use")
        self.assertEqual(code_of(lambda: holdfast.open(self.path, wait=0.1)), "in_use")
        threading.Timer(0.3, lambda: holder.communicate("\n")).start()
        holdfast.Map(self.path, wait=60)["a"] = "b"
        holder.wait()

    def test_other_structures_names_are_told_in_pythons_words(self):
        kinds = (*KINDS, holdfast.SortedMap)
        for kind in kinds:
            kind(self.pool, kind.__name__)
        for kind in kinds:
            for other in kinds:
                if other is not kind:
                    with self.assertRaises(holdfast.Error) as refused:
                        other(self.pool, kind.__name__)
                    self.assertEqual(refused.exception.code, "wrong_layout")
                    self.assertIn(f"'{kind.__name__}' is a {kind.__name__}, not a {other.__name__}: ", refused.exception.message)

    def test_closing_a_structure_lets_go_of_its_pool(self):
        path = self.folder / "with.hf"
        with holdfast.Map(path) as first, holdfast.Map(path) as second:
            first["a"] = "b"
            first.close()
            first.close()
            self.assertEqual(second["a"], "b")
            self.assertEqual(code_of(lambda: first["a"]), "closed")
            self.assertEqual(code_of(lambda: first.pool), "closed")
        holdfast.open(path).close()

    def test_mode_pmem_and_durable_on_return(self):
        folder = tempfile.TemporaryDirectory(dir="/dev/shm")    # tmpfs, on which it is emulated
        self.addCleanup(folder.cleanup)
        path = pathlib.Path(folder.name) / "pmem.hf"
        pool = holdfast.open(path, durability="pmem")
        for kind in KINDS:
            kind(pool, when_durable="on_return").clear()
        holdfast.Vector(pool).extend("abc")
        pool.settle()
        pool.close()
        self.assertEqual(holdfast.Vector(path, durability="pmem"), list("abc"))

    def test_mode_power_has_a_log_beside_the_pool(self):
        path = self.folder / "power.hf"
        with holdfast.open(path, durability="power") as pool:
            self.assertTrue((self.folder / "power.hf-power").exists())
            holdfast.Set(pool).add("a")
            self.assertEqual(code_of(lambda: pool.copy_to(self.folder / "copy.hf")), "mode_unavailable")
            self.assertEqual(code_of(pool.trim), "mode_unavailable")
        self.assertFalse((self.folder / "power.hf-power").exists())
        self.assertEqual(holdfast.Set(path), {"a"})

    def test_a_full_pool_says_so_and_keeps_what_it_has(self):
        path = self.folder / "full.hf"
        pool = holdfast.open(path, create_bytes=8 << 20, max_bytes=8 << 20)
        small, vector = holdfast.Map(pool), holdfast.Vector(pool)
        small["a"] = "b"

        def fill():
            for i in range(100):
                vector.append(f"{i}" * (1 << 19))

        self.assertEqual(code_of(fill), "pool_full")
        count = len(vector)
        self.assertGreater(count, 1)
        self.assertEqual(code_of(lambda: vector.extend(["x" * (1 << 23)] * 100)), "pool_full")
        self.assertEqual(len(vector), count)
        self.assertEqual(small, {"a": "b"})
        vector.clear()
        vector.append("room again")
        pool.close()
        self.assertEqual(holdfast.Vector(path, create_bytes=8 << 20, max_bytes=8 << 20),
                         ["room again"])


class ClosedTest(Pooled):
    def test_every_use_after_the_pool_was_closed_is_an_error(self):
        structures = [kind(self.pool) for kind in KINDS]
        for each in structures:
            each.update({"a": "b"}) if isinstance(each, holdfast.Map) else \
                each.add("a") if isinstance(each, holdfast.Set) else each.extend("ab")
        snapshots = [each.snapshot() for each in structures]
        cursors = [iter(each) for each in structures + snapshots]
        views = [structures[0].items(), snapshots[0].values()]
        next(cursors[0])
        self.pool.close()
        self.pool.close()
        self.assertTrue(self.pool.closed)
        for each in structures + snapshots:
            for call in (lambda: len(each), lambda: bool(each), lambda: list(each),
                         lambda: each.pool):
                self.assertEqual(code_of(call), "closed")
            self.assertIn("closed", repr(each))
            each.close()
        for each in cursors:
            self.assertEqual(code_of(lambda: next(each)), "closed")
        for each in views:
            self.assertEqual(code_of(lambda: list(each)), "closed")
        for kind, each in zip(KINDS, structures):
            self.assertEqual(code_of(each.clear), "closed")
            self.assertEqual(code_of(each.snapshot), "closed")
            self.assertEqual(code_of(lambda: kind(self.pool)), "closed")
        a_map, a_set, vector, stack, a_queue = structures
        for call in (lambda: a_map["a"], lambda: a_map.update(a="b"), lambda: a_map.pop("a", None),
                     lambda: "a" in a_map, lambda: a_map.setdefault("a", "b"),
                     lambda: a_map.__setitem__("a", "b"), lambda: a_set.add("a"), a_set.pop,
                     lambda: a_set.update("a"), lambda: vector[0], lambda: vector[:],
                     lambda: vector.append("a"), lambda: vector.__setitem__(0, "a"), vector.reverse,
                     lambda: vector.extend("a" * 100), lambda: vector.__delitem__(0), stack.pop,
                     lambda: stack.push("a"), stack.peek, a_queue.get, lambda: a_queue.put("a"),
                     lambda: a_queue.extend("ab"), a_queue.peek, self.pool.settle):
            self.assertEqual(code_of(call), "closed")

    def test_closing_beside_threads_is_an_error_for_them_and_no_crash(self):
        for _ in range(5):
            pool = holdfast.open(self.folder / "threads.hf")
            raised = []
            started = threading.Barrier(5)

            def work(mine):
                many = {str(i): "v" for i in range(5000)}
                mine.update(many)
                started.wait()
                try:
                    while True:
                        mine.update(many)
                        dict(mine.items())
                        mine["a"] = "b"
                        for _ in mine.snapshot():
                            pass
                except holdfast.Error as error:
                    raised.append(error.code)

            threads = [threading.Thread(target=work, args=(holdfast.Map(pool),)) for _ in range(4)]
            for thread in threads:
                thread.start()
            started.wait()
            time.sleep(0.01)        # from here on it meets a change that runs, most times
            pool.close()
            for thread in threads:
                thread.join(60)
            self.assertEqual(raised, ["closed"] * 4)

    def test_daemon_threads_that_work_at_the_end_do_not_end_the_program_badly(self):
        # Such a thread may not have the interpreter's lock any more, where it comes back from a long change, or where
        # Python code runs: that of values and errors, or a generator's.
        program = textwrap.dedent("""
            import sys, threading, time, holdfast
            shared, other = holdfast.Map(sys.argv[1], "shared"), holdfast.Vector(sys.argv[1], "other")
            shared[5] = 5
            sys.setswitchinterval(1e-5)
            def work():
                while True:
                    try:
                        WORK
                    except holdfast.Error:
                        pass
            for _ in range(8):
                threading.Thread(target=work, daemon=True).start()
            time.sleep(0.05)
        """)
        for work in ('shared.update({str(i): "v" for i in range(3000)})', "shared[5]",
                     "other[:] = (str(i) for i in range(300))"):
            for _ in range(4):
                ended = subprocess.run([sys.executable, "-c", program.replace("WORK", work), str(self.folder / "daemons.hf")],
                                       stderr=subprocess.PIPE, timeout=120)
                self.assertEqual(ended.returncode, 0, work + ended.stderr.decode())
                with holdfast.open(self.folder / "daemons.hf") as pool:
                    pool.verify()


class ThreadsTest(Pooled):
    def test_threads_lose_no_update(self):
        shared, vector = holdfast.Map(self.pool), holdfast.Vector(self.pool)
        shared.update({str(i): "0" for i in range(100)})
        lock, wrong = threading.Lock(), []

        def work(number):
            for i in range(300):
                shared[f"{number} {i}"] = "v"
                vector.append(f"{number} {i}")
                if i % 30 == 0:
                    vector.extend(f"{number} {i} {j}" for j in range(100))
                    shared.update({f"all {j}": f"{number} {i}" for j in range(100)})
                with lock:
                    shared["count"] = str(int(shared.get("count", "0")) + 1)
                seen = {value for key, value in shared.items() if key.startswith("all ")}
                if len(seen) > 1:       # an update of many is one commit
                    wrong.append(seen)

        threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])
        self.assertEqual(shared["count"], "1200")
        self.assertEqual(len(shared), 100 + 1200 + 100 + 1)
        self.assertEqual(len(vector), 1200 + 40 * 100)
        self.assertEqual(len(set(vector)), len(vector))

    def test_what_is_read_beside_a_change_is_of_one_version(self):
        vector, a_map = holdfast.Vector(self.pool), holdfast.Map(self.pool)
        names = [f"name {i}" for i in range(3000)]
        vector.extend(["0"] * 3000)
        a_map.update(dict.fromkeys(names, "0"))
        done, mixed = threading.Event(), []

        def read():
            while not done.is_set():
                found = set(vector[:])
                if len(found) != 1:
                    mixed.append(found)
                if "name 7" not in a_map or len(a_map) != 3000 or len(vector) != 3000:
                    mixed.append("count")

        readers = [threading.Thread(target=read) for _ in range(2)]
        for reader in readers:
            reader.start()
        for i in range(60):     # large: without the interpreter's lock
            vector[:] = [str(i)] * 3000
            a_map.update(dict.fromkeys(names, str(i)))
        done.set()
        for reader in readers:
            reader.join()
        self.assertEqual(mixed, [])

    def test_threads_take_each_element_once(self):
        a_map, a_set = holdfast.Map(self.pool), holdfast.Set(self.pool)
        stack, vector = holdfast.Stack(self.pool), holdfast.Vector(self.pool)
        names = [str(i) for i in range(400)]
        a_map.update({name: name for name in names})
        a_set.update(names)
        stack.extend(names)
        vector.extend(names)
        taken = [[] for _ in range(4)]

        def work(mine):
            for take in (a_set.pop, stack.pop, vector.pop, lambda: a_map.popitem()[0]):
                try:
                    while True:
                        mine.append(take())
                        a_map.update({f"other {i}": "x" for i in range(0)})
                except (KeyError, IndexError):
                    pass

        threads = [threading.Thread(target=work, args=(mine,)) for mine in taken]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(sorted(sum(taken, [])), sorted(names * 4))


class LockTest(Pooled):
    """What takes long lets other threads of Python run."""

    def lets_others_run(self, function, *arguments, times=20_000):
        """Whether this thread runs before another one has made so many calls. No bytecode runs between them: the
        interpreter's lock changes hands within a call, or not at all."""
        calls, started, outcome = [arguments] * times, threading.Event(), []
        all_of_it = itertools.chain(itertools.starmap(function, calls), map(outcome.append, ["made"]))

        def work():
            started.set()
            try:
                collections.deque(all_of_it, maxlen=0)
            except BaseException as error:
                outcome.append(error)

        worker = threading.Thread(target=work)
        worker.start()
        started.wait()
        beside = not outcome
        calls.clear()       # the worker's next call was the last one
        worker.join()
        self.assertEqual(outcome, ["made"])
        return beside

    def test_a_short_change_keeps_the_lock(self):
        small = holdfast.Map(self.pool)     # another thread may be there before the first call of all
        self.assertIn(False, (self.lets_others_run(small.__setitem__, "a", "b") for _ in range(10)))

    def test_large_changes_and_looks_at_all_of_a_pool_do(self):
        a_map, vector, a_set = holdfast.Map(self.pool), holdfast.Vector(self.pool), holdfast.Set(self.pool)
        large = "x" * (1 << 20)
        vector.append(large)
        many = [(str(number), "") for number in range(1000)]
        for function, *arguments in ((a_map.__setitem__, "a", large), (a_map._change, many, ()), (vector.__setitem__, 0, large),
                                     (vector.__setitem__, slice(0, 1), (large,)), (a_set._change, dict(many), ()),
                                     (self.pool.stats,), (self.pool.verify,), (self.pool.trim,)):
            self.assertTrue(self.lets_others_run(function, *arguments), function)
        self.assertTrue(self.lets_others_run(self.pool.settle, times=3_000_000))    # in mode process there is nothing to do

    def test_a_change_that_waits_for_the_disk_does(self):
        with holdfast.open(self.folder / "power.hf", durability="power") as pool:
            a_map, vector, a_queue = holdfast.Map(pool), holdfast.Vector(pool), holdfast.Queue(pool)
            vector.extend(str(number) for number in range(20_000))
            a_queue.extend(str(number) for number in range(20_000))
            for function, *arguments in ((a_map.__setitem__, "a", "b"), (a_map._change, [("a", "c")], ()),
                                         (vector.append, "a"), (vector.pop,), (a_queue._put, "a"), (a_queue._take, "none")):
                self.assertTrue(self.lets_others_run(function, *arguments), function)


def put_from_child(path, wait, answers):
    """For spawn: the module is imported anew."""
    try:
        with holdfast.open(path, wait=wait) as pool:
            holdfast.Map(pool).add("n", 1)
        answers.put("put")
    except holdfast.Error as error:
        answers.put(error.code)


class HabitsTest(Pooled):
    def test_spawned_processes_take_turns(self):
        spawning = multiprocessing.get_context("spawn")
        answers = spawning.SimpleQueue()
        with self.assertRaises(TypeError):
            pickle.dumps(holdfast.Map(self.pool))
        first = spawning.Process(target=put_from_child, args=(self.path, 0, answers))
        first.start()
        self.assertEqual(answers.get(), "in_use")
        first.join()
        children = [spawning.Process(target=put_from_child, args=(self.path, 120, answers)) for _ in range(3)]
        for each in children:
            each.start()
        self.pool.close()
        self.assertEqual([answers.get() for _ in children], ["put"] * 3)
        for each in children:
            each.join()
        self.pool = holdfast.open(self.path)
        self.assertEqual(holdfast.Map(self.pool), {"n": 3})

    def test_the_guides_fixture_for_pytest(self):
        """By pytest where it is installed; else by as much of it as the page uses."""
        program, = [block for block in examples_with("@pytest.fixture")]
        if importlib.util.find_spec("pytest") is not None:
            (self.folder / "test_stock.py").write_text(program)
            ran = subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", self.folder], capture_output=True, text=True)
            self.assertEqual(ran.returncode, 0, ran.stdout)
            self.assertIn("1 passed", ran.stdout)
        names = {}
        with unittest.mock.patch.dict(sys.modules, pytest=types.SimpleNamespace(fixture=lambda function: function)):
            exec(program, names)
        for each in ("one", "two"):
            (self.folder / each).mkdir()
            given = names["pool"](self.folder / each)
            pool = next(given)
            names["test_stock"](pool)
            self.assertEqual((list(given), pool.closed), ([], True))

    def test_coroutines_call_as_any_code_does(self):
        counts, line = holdfast.Map(self.pool), holdfast.Queue(self.pool)

        async def work(number):
            for _ in range(20):
                counts.add("n", 1)
                await asyncio.sleep(0)
                with self.pool.transaction():
                    counts.add("m", 1)
                    line.put(number)
                await asyncio.to_thread(counts.update, {number: [number]})

        async def main():
            reader = asyncio.create_task(asyncio.to_thread(line.get))
            await asyncio.gather(*map(work, range(5)))
            await reader

        asyncio.run(main())
        self.assertEqual((counts["n"], counts["m"], len(line)), (100, 100, 99))
        self.assertEqual({number: counts[number] for number in range(5)}, {number: [number] for number in range(5)})


class ForkTest(Pooled):
    def asked_in_child(self, work):
        forking = multiprocessing.get_context("fork")
        answers = forking.SimpleQueue()
        child = forking.Process(target=in_child, args=(work, answers))
        child.start()
        answer = answers.get()
        child.join()
        self.assertEqual(child.exitcode, 0)
        return answer

    def test_a_forked_child_cannot_touch_its_parents_pool(self):
        shared = holdfast.Map(self.pool)
        shared["a"] = "b"
        snapshot = shared.snapshot()

        def work():
            global holds
            found = [code_of(call) for call in (
                lambda: shared.__setitem__("a", "c"), lambda: shared["a"], lambda: len(snapshot),
                lambda: holdfast.Map(self.pool, "new"), self.pool.settle)]
            closed = self.pool.closed
            shared.close()
            snapshot.close()
            self.pool.close()
            own = holdfast.Map(self.folder / "child.hf")
            own["mine"] = "1"
            return found, closed, dict(own.items())

        self.assertEqual(self.asked_in_child(work), (["closed"] * 5, True, {"mine": "1"}))
        shared["a"] = "parent"
        self.assertEqual((dict(shared.items()), snapshot["a"]), ({"a": "parent"}, "b"))
        self.assertEqual(self.reopen(holdfast.Map), {"a": "parent"})

    def test_a_child_waits_for_nothing_that_its_parents_threads_do(self):
        shared, stop = holdfast.Map(self.pool), threading.Event()
        many = {str(i): "v" for i in range(20000)}

        def work():
            while not stop.is_set():
                shared.update(many)

        worker = threading.Thread(target=work)
        worker.start()
        for number in range(10):    # most times in the middle of a change
            child = os.fork()
            if child == 0:
                signal.alarm(30)
                found = [code_of(call) for call in (self.pool.stats, self.pool.verify, self.pool.trim, self.pool.settle,
                                                    lambda: self.pool.copy_to(self.folder / "copy"))]
                with holdfast.open(self.folder / f"child{number}.hf"):
                    os._exit(found != ["closed"] * 5)
            self.assertEqual(os.waitpid(child, 0)[1], 0)
            time.sleep(0.001)
        stop.set()
        worker.join()
        self.assertEqual(len(shared), 20000)


if __name__ == "__main__":
    unittest.main()
