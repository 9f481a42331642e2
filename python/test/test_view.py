# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Stored bytes and arrays as memoryviews, without a copy.

Goal: a view is what was stored, whatever happens to the structure, the snapshot and the pool meanwhile; nothing is taken away below it.
Method: changes that would use its memory again; every way to close while it is in use; processes that end with one. Arrays come from a
stand-in for numpy, and from numpy where it is there.
"""
import gc
import math
import os
import signal
import struct
import subprocess
import sys
import threading
import types
import unittest
import unittest.mock

import holdfast
from support import Pooled

try:
    import numpy
except ImportError:
    numpy = None


class Array:
    """What holdfast takes of numpy.ndarray."""

    def __init__(self, dtype, shape, data):
        self.dtype, self.shape, self.ndim, self._data = types.SimpleNamespace(str=dtype), shape, len(shape), data

    def tobytes(self):
        return self._data


STAND_IN = types.SimpleNamespace(ndarray=Array, generic=type("generic", (), {}))

ENDING = """
import sys, holdfast
m = holdfast.Map(sys.argv[1], durability=sys.argv[2])
m["a"] = b"a" * 5000
kept = m.view("a")
m["b"] = 1
sys.exit(3)
"""


class ViewTest(Pooled):
    def setUp(self):
        super().setUp()
        self.map = holdfast.Map(self.pool)

    def changed(self):
        """Uses again whatever memory is free."""
        for i in range(3000):
            self.map[i % 20] = bytes([i % 256]) * 5000
        del self.map[0]

    def test_bytes_of_every_structure(self):
        ordered, vector = holdfast.SortedMap(self.pool), holdfast.Vector(self.pool)
        for length in (0, 1, 247, 248, 5000, 300_000):
            value = self.random.randbytes(length)
            self.map["a"] = ordered["a"] = value
            vector[:] = [value]
            with self.map.snapshot() as one, ordered.snapshot() as two, vector.snapshot() as three:
                for view in (self.map.view("a"), ordered.view("a"), vector.view(-1), one.view("a"), two.view("a"), three.view(0)):
                    with view:
                        self.assertEqual((view, view.nbytes, view.readonly, view.format), (value, length, True, "B"))

    def test_arrays(self):
        formats = {"|b1": "?", "|i1": "b", "|u1": "B", "<i2": "h", "<u2": "H", "<i4": "i", "<u4": "I", "<i8": "q", "<u8": "Q", "<f4": "f",
                   "<f8": "d"}
        with unittest.mock.patch.dict(sys.modules, numpy=STAND_IN):
            for dtype, form in formats.items():
                for shape in ((), (5,), (2, 3), (2, 0, 3), (1, 2, 1, 3)):
                    count = math.prod(shape)
                    numbers = [i % 2 for i in range(count)]
                    self.map["a"] = Array(dtype, shape, struct.pack(f"<{count}{form}", *numbers))
                    with self.map.view("a") as view:
                        self.assertEqual((view.format, view.shape, view.nbytes), (form, shape, struct.calcsize(f"<{count}{form}")))
                        if 0 not in shape:
                            self.assertEqual(list(view.cast("B").cast(form)) if shape else [view[()]], numbers)
            self.map["a"] = Array(">f8", (2,), struct.pack(">2d", 1, 2))
            with self.map.view("a") as view:
                self.assertEqual((view.format, view.tobytes()), (">d", struct.pack(">2d", 1, 2)))
            self.map["a"] = Array("<M8[s]", (1,), b"\0" * 8)
            with self.assertRaisesRegex(TypeError, r"array\.view\('i8'\)"):
                self.map.view("a")

    @unittest.skipIf(numpy is None, "needs numpy")
    def test_numpy_reads_it_where_it_lies(self):
        for array in (numpy.arange(12, dtype="f4").reshape(3, 4), numpy.zeros((0, 3)), numpy.array(5.0), numpy.arange(3, dtype=">i8"),
                      numpy.arange(3) * 1j, numpy.array([True, False]), numpy.arange(4, dtype="f2")):
            self.map["a"] = array
            found = numpy.asarray(self.map.view("a"))
            self.assertEqual((found.dtype, found.shape, found.tolist()), (array.dtype, array.shape, array.tolist()))
            self.assertFalse(found.flags.writeable or found.flags.owndata)
            if array.size:
                self.changed()
                self.assertEqual(numpy.frombuffer(found.base, array.dtype).tolist(), array.ravel().tolist())
            self.assertRaises(BufferError, self.pool.close)
            del found

    def test_it_stays_what_it_is(self):
        self.map["a"] = b"abc" * 1000
        view = self.map.view("a")
        self.map["a"] = b"xyz"
        self.changed()
        self.map.clear()
        self.pool.trim()
        self.changed()
        self.map.close()                      # the view has its version by itself
        self.assertEqual(view, b"abc" * 1000)
        view.release()

    def test_a_part_of_it_counts(self):
        self.map["a"] = b"abc" * 1000
        part = self.map.view("a")[3:9]
        gc.collect()
        self.changed()
        self.assertRaises(BufferError, self.pool.close)
        self.assertEqual(part, b"abcabc")
        del part
        self.assertEqual([each for each in gc.get_objects() if type(each) is holdfast.MapSnapshot], [])
        self.pool.close()

    def test_nothing_closes_below_it(self):
        self.map["a"] = b"abc"
        then = self.map.snapshot()
        with then.view("a") as view:
            for close in (self.pool.close, then.close, lambda: then.__exit__(None, None, None)):
                with self.assertRaisesRegex(BufferError, "memoryview of a stored value is in use: release it"):
                    close()
            self.assertEqual((view, self.map["a"], self.pool.closed), (b"abc", b"abc", False))
            self.map["b"] = 1                 # all goes on
        exporter = then.view("a").obj
        then.close()
        self.assertRaises((BufferError, holdfast.Error), memoryview, exporter)
        self.pool.close()
        self.assertRaises((BufferError, holdfast.Error), memoryview, exporter)

    def test_a_view_of_a_transaction_outlives_it(self):
        """Whether it is committed or not, and though the transaction goes on."""
        for raises in (True, False):
            try:
                with self.pool.transaction():
                    self.map.update({i: b"n" * 300 for i in range(200)})
                    views = [self.map.view(i) for i in range(200)]
                    self.map.update({i: b"m" * 300 for i in range(200)})
                    if raises:
                        raise ZeroDivisionError
            except ZeroDivisionError:
                self.assertEqual(self.map, {})
            self.changed()
            self.assertEqual([bytes(view) for view in views], [b"n" * 300] * 200)
            self.map.clear()
        del views
        self.pool.verify()
        self.pool.close()

    def test_it_cannot_be_written_to(self):
        self.map["a"] = b"abc"
        with self.map.view("a") as view:
            with self.assertRaises(TypeError):
                view[0] = 1
            with open(self.folder / "file", "wb") as file:
                file.write(view)              # what takes a buffer takes it
            with open(self.folder / "file", "rb") as file, self.assertRaises((BufferError, TypeError)):
                file.readinto(view)
        self.assertEqual((self.folder / "file").read_bytes(), b"abc")

    def test_other_values_are_refused(self):
        self.map.update(s="text", n=1, l=[1], big=1 << 80, set={1})
        vector = holdfast.Vector(self.pool)
        for key in ("s", "n", "l", "big", "set"):
            with self.assertRaisesRegex(TypeError, "expected bytes or an array"):
                self.map.view(key)
        self.assertRaises(KeyError, self.map.view, "missing")
        self.assertRaises(IndexError, vector.view, 0)
        self.assertRaises(TypeError, holdfast.MapSnapshot.view, 1, "s")

    def test_a_damaged_array_is_refused(self):
        """Each byte before the elements, changed: a refusal, or another array within the value."""
        with unittest.mock.patch.dict(sys.modules, numpy=STAND_IN):
            self.map["a"] = Array("<i4", (3, 7), bytes(range(84)))
        self.pool.close()
        whole = self.path.read_bytes()
        at = whole.index(b"\x0e\x03<i4\x02\x03\x07\x00\x01\x02")
        for place in range(8):
            for value in (0, 1, 2, 7, 0x3e, 0x4d, 0x7f, 0x80, 0xff):
                damaged = bytearray(whole)
                damaged[at + place] = value
                path = self.folder / "damaged.hf"
                path.write_bytes(damaged)
                with holdfast.Map(path, salvage=True, read_only=True) as found:
                    try:
                        with found.view("a") as view:
                            self.assertLessEqual(view.nbytes, 84)
                    except (holdfast.Error, TypeError) as error:
                        self.assertEqual(getattr(error, "code", "corrupt"), "corrupt")

    def test_threads_take_and_release_views(self):
        for i in range(20):
            self.map[i] = bytes([i]) * 3000
        ends = threading.Event()
        wrong = []

        def reads():
            while not ends.is_set():
                for i in range(20):
                    with self.map.view(i) as view:
                        if view[0] != view[-1]:
                            wrong.append(i)

        threads = [threading.Thread(target=reads) for _ in range(3)]
        for each in threads:
            each.start()
        for n in range(3000):
            self.map[n % 20] = bytes([n % 256]) * 3000
        ends.set()
        for each in threads:
            each.join()
        self.assertEqual(wrong, [])
        self.pool.close()

    def test_a_program_that_ends_with_one_has_lost_nothing(self):
        self.pool.close()
        for durability in ("process", "power"):
            path = self.folder / f"{durability}.hf"
            ended = subprocess.run([sys.executable, "-c", ENDING, path, durability], capture_output=True)
            self.assertEqual((ended.returncode, ended.stderr), (3, b""))
            with holdfast.Map(path, durability=durability) as found:
                self.assertEqual(found, {"a": b"a" * 5000, "b": 1})

    def test_a_forked_child_lets_go_of_it(self):
        self.map["a"] = b"abc"
        view = self.map.view("a")
        child = os.fork()
        if child == 0:
            try:
                view.release()
                os._exit(0)
            finally:
                os.kill(os.getpid(), signal.SIGKILL)
        self.assertEqual(os.waitpid(child, 0)[1], 0)
        self.assertRaises(BufferError, self.pool.close)
        self.assertEqual(view, b"abc")
        view.release()
        self.pool.close()


if __name__ == "__main__":
    unittest.main()
