# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Values other than str and bytes.

Goal: values come back as they were, and equal ones have one encoding. Bytes that are not an
encoding are refused, and the refusal names the place of the fault.

Method: examples whose bytes stand in docs/format/python-values.md; random values with a fixed seed, in structures and
alone; each of their encodings cut short, lengthened, and changed in every way that a few bytes allow, and random bytes.
"""
import base64
import collections
import copy
import dataclasses
import datetime
import decimal
import enum
import lzma
import math
import os
import pathlib
import pickle
import random
import struct
import subprocess
import sys
import tracemalloc
import types
import unittest
import uuid

import holdfast
from holdfast import _core, _encoding

from support import SEED, Pooled

try:
    import numpy
except ImportError:
    numpy = None

UTC = datetime.timezone.utc
# The page's examples: a value and its encoding.
EXAMPLES = [
    (None, "00"), (False, "01"), (True, "02"), (0, "0300"), (1, "030101"), (255, "0301ff"), (256, "03020100"),
    (-1, "0400"), (-2, "040101"), (-257, "04020100"), (2**64, "0309010000000000000000"),
    (1.5, "053ff8000000000000"), (-0.0, "058000000000000000"), (math.inf, "057ff0000000000000"), (math.nan, "057ff8000000000000"),
    ((), "0800"), (("é", b"\0"), "080206" "02c3a9" "070100"), ([1, [2]], "0902" "030101" "0901030102"),
    ({"b": 1, "a": None}, "0a02" "060161" "00" "060162" "030101"),
    (datetime.datetime(2026, 3, 1, 12, 30, 15, 7), "0b" "07ea" "03010c1e0f" "000007" "00"),
    (datetime.datetime(2026, 3, 1, tzinfo=UTC), "0b" "07ea" "0301000000" "000000" "02" "00"),
    (datetime.date(1, 12, 31), "0c" "0001" "0c1f"), (datetime.timedelta(-1, 86_399, 5), "0d" "01" "ffa205" "05"),
]
# Kinds of version 2.
NEW_EXAMPLES = [
    (set(), "0f00"), ({2, "a", 1}, "0f03" "030101" "030102" "060161"), (frozenset((None,)), "1001" "00"),
    (decimal.Decimal("-1.50"), "1205" "2d312e3530"), (uuid.UUID(int=255), "13" + "00" * 15 + "ff"),
    (datetime.time(1, 2, 3, 4, fold=1), "14" "010203" "000004" "01"),
]
CASES = 3000  # random values
# Reads what gc.get_objects() has while a value is made, and keeps it.
WALKER = """
import gc, sys, holdfast

class Walker:
    def __init__(self, number):
        self.number = number

calls, seen = 0, []

def decode(number):
    global calls
    calls += 1
    for each in gc.get_objects():
        if type(each) in (tuple, list, set, frozenset, holdfast.FrozenList, holdfast.FrozenSet) and each is not seen:
            items = list(each)
            if len(items) == 5 or any(type(item) is Walker for item in items):
                seen.append(each)
    if number == raises:
        raise ZeroDivisionError
    return Walker(number)

holdfast.register(Walker, encode=lambda walker: walker.number, decode=decode)
with holdfast.Map(sys.argv[1]) as kept:
    for kind in (tuple, list, set, frozenset):
        for read in (kept.__getitem__, kept.pop):
            for raises in (None, 3):
                del seen[:]
                kept["a"] = kind(map(Walker, range(5)))
                calls = 0
                try:
                    value = read("a")
                except ZeroDivisionError:
                    value = None
                assert calls == (5 if raises is None else 4), calls
                assert (value is None) == (raises is not None)
                half = [each for each in seen if 0 < sum(type(item) is Walker for item in each) < 5]
                assert not half, (kind, half)
                if value is not None:
                    assert gc.is_tracked(value) and sorted(each.number for each in value) == [*range(5)]
"""


@holdfast.register
class Flavour(enum.Enum):
    SWEET = 1
    SOUR = 2


@holdfast.register
class Rights(enum.Flag):
    READ = 1
    WRITE = 2


@holdfast.register(name="a word")
class Word(str, enum.Enum):
    YES = "yes"


@holdfast.register
@dataclasses.dataclass(frozen=True)
class Point:
    x: float
    y: float = 0.0
    tags: list = dataclasses.field(default_factory=list)


class Plain:
    def __init__(self, number):
        self.number = number

    def __eq__(self, other):
        return self.number == other.number


holdfast.register(Plain, encode=lambda of: of.number, decode=Plain)


class Unregistered(enum.Enum):
    ONE = 1


class Counter(holdfast.Object):
    def __init__(self):
        self.count, self.names = 0, []

    @holdfast.instant
    def add(self, name):
        self.count += 1
        self.names.append(name)
        if self.count > 2:
            self.names.pop()


def random_value(source, depth=0, hashable=False):
    def number():
        return source.choice((-1, 1)) * source.getrandbits(source.choice((1, 7, 8, 9, 31, 63, 64, 65, 300)))

    def text():
        return "".join(chr(source.choice((0, 65, 0xe9, 0x20ac, 0x1f34e))) for _ in range(source.randrange(5)))

    def real():
        return source.choice((0.0, -0.0, math.inf, source.uniform(-9, 9), struct.unpack(">d", source.randbytes(8))[0]))

    def moment():
        zone = source.choice((None, UTC, datetime.timezone(datetime.timedelta(microseconds=source.randrange(-8 * 10**10, 8 * 10**10)))))
        return datetime.datetime(source.randrange(1, 10_000), source.randrange(1, 13), source.randrange(1, 29), source.randrange(24),
                                 source.randrange(60), source.randrange(60), source.randrange(10**6), zone, fold=source.randrange(2))

    def day():
        return datetime.date(source.randrange(1, 10_000), 2, source.randrange(1, 29))

    def delta():
        return datetime.timedelta(source.randrange(-999_999_999, 10**9), source.randrange(86_400), source.randrange(10**6))

    def array():
        kinds = ("?", "i1", "u1", "<i2", ">i4", "<u8", "<f2", ">f4", "<f8", "<c16", "<M8[ns]", "<m8[D]")
        shape = tuple(source.randrange(4) for _ in range(source.randrange(4)))
        dtype = numpy.dtype(source.choice(kinds))
        return numpy.frombuffer(source.randbytes(math.prod(shape) * dtype.itemsize), dtype).reshape(shape)

    def decimal_number():
        return decimal.Decimal((source.randrange(2), tuple(source.randrange(10) for _ in range(source.randrange(1, 30))), source.randrange(-40, 40)))

    choices = [lambda: None, decimal_number, lambda: uuid.UUID(bytes=source.randbytes(16)), lambda: source.choice(list(Flavour)),
               lambda: moment().time(), lambda: source.random() < 0.5, number, real, text, lambda: source.randbytes(source.randrange(5)), moment, day,
               delta]
    if depth < 4:
        some = range(source.randrange(4))
        choices += [lambda: tuple(random_value(source, depth + 1, hashable) for _ in some)] * 2
        if not hashable:
            choices += [lambda: [random_value(source, depth + 1) for _ in some],
                        lambda: {random_value(source, depth + 1, True): random_value(source, depth + 1) for _ in some}]
        choices += [lambda: frozenset(random_value(source, depth + 1, True) for _ in some)]
        if not hashable:
            choices += [lambda: {random_value(source, depth + 1, True) for _ in some}, lambda: Point(number(), real(), [text()])]
    if numpy is not None and not hashable:
        choices += [array, lambda: numpy.frombuffer(source.randbytes(8), source.choice(("<f8", "<i8", ">u2", "<M8[ns]")))[0]]
    return source.choice(choices)()


def plain(value):
    for kind, frozen in ((list, holdfast.FrozenList), (dict, holdfast.FrozenDict), (set, holdfast.FrozenSet)):
        if type(value) is frozen:
            return kind(value)
    return value


def same(a, b):
    """Equal, of equal types all the way down; frozen types count as plain ones, and a NaN equals another."""
    a, b = plain(a), plain(b)
    if type(a) is not type(b):
        return False
    if isinstance(a, float):
        return struct.pack(">d", a) == struct.pack(">d", b) or (a != a and b != b)
    if isinstance(a, (tuple, list)):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        if len(a) != len(b):
            return False
        of_b = {_encoding.encode(key): value for key, value in b.items()}
        return all(_encoding.encode(key) in of_b and same(value, of_b[_encoding.encode(key)]) for key, value in a.items())
    if isinstance(a, datetime.datetime):
        return a == b and (a.utcoffset(), a.fold) == (b.utcoffset(), b.fold)
    if numpy is not None and isinstance(a, numpy.ndarray):
        return a.dtype.str == b.dtype.str and a.shape == b.shape and a.tobytes() == b.tobytes()
    return a == b


def mutations(source, data):
    """Damages an encoding as a torn write, a stray byte or an attacker would."""
    for end in range(len(data)):
        yield data[:end]
    yield data + b"\0"
    for at in range(min(len(data), 40)):
        for byte in (0, 1, 127, 128, 255, data[at] ^ 1, data[at] + 1 & 255, source.randrange(256)):
            yield data[:at] + bytes((byte,)) + data[at + 1:]
        yield data[:at] + data[at + 1:]
        yield data[:at] + b"\xff\xff\xff\xff\x7f" + data[at:]


class Encoding(unittest.TestCase):
    def refused(self, data, kind="corrupt"):
        with self.assertRaises(holdfast.Error) as found:
            _encoding.decode(data)
        self.assertEqual(found.exception.code, kind, data.hex())
        return found.exception.message

    def test_examples(self):
        for value, encoding in EXAMPLES + NEW_EXAMPLES:
            self.assertEqual(_encoding.encode(value).hex(), encoding, value)
            self.assertTrue(same(_encoding.decode(bytes.fromhex(encoding)), value), value)

    def test_random_values_come_back(self):
        source = random.Random(SEED)
        for case in range(CASES):
            try:
                value = random_value(source)
                encoding = _encoding.encode(value)
            except ValueError as error:  # two keys of a dict are NaN
                self.assertIn("nan", str(error))
                continue
            again = _encoding.decode(encoding)
            self.assertTrue(same(value, again), f"seed {SEED}, case {case}: {value!r} {again!r}")
            self.assertEqual(_encoding.encode(again), encoding, f"seed {SEED}, case {case}")

    def test_a_dict_has_its_items_in_one_order(self):
        """However many and whatever keys it has: small dicts of short str go another way."""
        source = random.Random(SEED + 3)
        letters = "abé\0\uffff\U0001f600"
        for case in range(CASES // 5):
            count, most = source.choice((1, 2, 5, 15, 16, 17, 40)), source.choice((1, 3, 9, 130))
            keys = {"".join(source.choices(letters, k=source.randrange(most + 1))) for _ in range(count)}
            keys |= set(source.sample([1, b"a", None, "\udcff", "x" * 127, "x" * 128, "x" * 129], source.choice((0, 0, 1, 3))))
            value = {key: number for number, key in enumerate(source.sample(list(keys), len(keys)))}
            items = sorted((_encoding.encode(key), _encoding.encode(of_it)) for key, of_it in value.items())
            self.assertEqual(_encoding.encode(value), bytes((10, len(items))) + b"".join(map(b"".join, items)), f"seed {SEED}, case {case}")

    def test_a_key_is_the_one_that_is_stored(self):
        """Keys that were read are kept: those here differ in one byte, and are more than are kept."""
        for size in (1, 3, 4, 7, 8, 15, 16, 17, 24, 63, 64, 65, 200):
            keys = ["a" * at + chr(letter) + "a" * (size - at - 1) for at in range(size) for letter in range(98, 98 + 25)]
            for key in keys + keys[::-1]:
                value = _encoding.decode(_encoding.encode({key: 1, "aa": 2}))
                self.assertEqual(value, {key: 1, "aa": 2})
        known = {"a" * 24: 1, "b" * 4: 2, "é" * 20: 3, "\udcff" * 20: 4}
        for key in known:
            for _ in range(2):
                self.assertEqual(_encoding.decode(_encoding.encode({key: 1})), {key: 1})
        for wrong in (b"a" * 8 + b"\xff" * 8 + b"a" * 8, b"b" * 3 + b"\xff", b"\xff", b"\xff" * 30):
            data = bytes((10, 1, 6, len(wrong))) + wrong + b"\0"
            for _ in range(2):
                self.assertIn("expected UTF-8", self.refused(data))

    def test_a_dict_that_changes_while_it_is_stored(self):
        for count in (3, 40):  # both ways
            changed = {f"key {each}": Plain(each) for each in range(count)}

            class Changes:
                pass

            def change(_):
                changed.clear()
                return 1

            holdfast.register(Changes, encode=change, decode=int)
            changed["a"] = Changes()
            with self.assertRaisesRegex(RuntimeError, "a dict changed while it was stored"):
                _encoding.encode(changed)

    def judged(self, data):
        """Refused with a place in it, or the one encoding of a value."""
        try:
            value = _encoding.decode(data)
        except holdfast.Error as error:
            self.assertRegex(error.message, r"^corrupt: a value's byte \d+ of \d+: |^corrupt: expected the fields of|"
                                            r"^unsupported: .* stored here", data.hex())
            return False
        if b"Point" not in data:  # whose fields may have defaults
            self.assertEqual(_encoding.encode(value), data)
        return True

    def test_changed_encodings_are_refused_or_are_another_values(self):
        source = random.Random(SEED + 1)
        tried = refused = 0
        for _ in range(CASES // 10):
            try:
                encoding = _encoding.encode(random_value(source))
            except ValueError:
                continue
            for data in mutations(source, encoding[:400]):
                tried += 1
                refused += not self.judged(data)
        self.assertGreater(refused, tried // 3)

    def test_random_bytes_are_refused_or_a_value(self):
        source = random.Random(SEED + 2)
        for _ in range(20_000):
            self.judged(bytes((source.randrange(23),)) + source.randbytes(source.randrange(12)))

    def test_what_is_wrong_is_said_with_its_place(self):
        for encoding, place, what in [
                ("", 0, "expected 1 bytes, found 0"), ("16", 0, "kind"), ("0302ff", 2, "expected 2 bytes, found 1"), ("030200ff", 1, "shortest form"),
                ("03808000", 1, "shortest form"), ("0000", 1, "the end"), ("057ff8000000000001", 1, "not-a-number"),
                ("0602c328", 2, "UTF-8"), ("0901", 1, "expected 1 items, found 0 bytes"), ("0a02060161000601" "6100", 6, "sorts above"),
                ("0a0109000000", 2, "kind of a key"), ("0a02" "02" "00" "0301" "0100", 1, "different keys"),
                ("0b000001010000000000000000", 1, "date and time"), ("0c07ea021e", 1, "a date"), ("0e037c4f38" "0000", 1, "type of an array"),
                ("0801" * 65 + "00", 128, "at most 64 levels"), ("09ffffffffffffffff7f", 1, "items, found"),
                ("09ffffffffffffffffff01", 1, "a number of at most"), ("07ffffffff0f", 6, "bytes, found")]:
            message = self.refused(bytes.fromhex(encoding))
            self.assertIn(f"byte {place} of", message, encoding)
            self.assertIn(what, message, encoding)

    def test_a_stored_str_that_is_no_utf_8_is_refused(self):
        for damaged, place in ((b"a\xff", 1), (b"\xff" * 300, 0), (b"\xed\xa0", 0), (b"a\xed\xa0\x80\xff", 4)):
            with self.assertRaises(holdfast.Error) as found:
                _core.thawed(damaged + b"\x01")
            self.assertEqual(found.exception.code, "corrupt")
            self.assertIn(f"byte {place}: expected UTF-8", found.exception.message)

    def test_lengths_that_lie_allocate_nothing(self):
        lies = [bytes.fromhex(kind + "ffffffffffffff7f") for kind in ("03", "06", "07", "08", "09", "0a")]
        lies.append(bytes.fromhex("0e033c6638" "02" "ffffffff07" "ffffffff07"))
        tracemalloc.start()
        try:
            for data in lies:
                with self.assertRaises(holdfast.Error):
                    _encoding.decode(data)
            self.assertLess(tracemalloc.get_traced_memory()[1], 16 << 20)
        finally:
            tracemalloc.stop()

    def test_nesting_is_limited(self):
        deep = None
        for _ in range(64):
            deep = [deep]
        self.assertEqual(_encoding.decode(_encoding.encode(deep)), deep)
        self.assertRaises(ValueError, _encoding.encode, [deep])
        circle = []
        circle.append(circle)
        self.assertRaises(ValueError, _encoding.encode, circle)

    def test_types_that_would_not_come_back_are_refused(self):
        class Number(int):
            pass

        zone = types.SimpleNamespace
        for value in (Number(1), {1j}, frozenset((1j,)), 1j, object(), int, bytearray(b"a"), zone(), range(3), [Number(1)], {"a": object()},
                      datetime.time(1, tzinfo=UTC), Ellipsis, Unregistered.ONE):
            self.assertRaises(TypeError, _encoding.encode, value)
        for key in ([], {}, set(), ([],), (1, {})):
            self.assertRaises(TypeError, _encoding.encode, key, True)
        if numpy is not None:
            for array in (numpy.array([object()]), numpy.array(["a"]), numpy.zeros(2, "i4,f8"), numpy.str_("a")):
                self.assertRaises(TypeError, _encoding.encode, array)


class Stored(Pooled):
    def test_values_come_back_from_every_structure(self):
        source = random.Random(SEED + 3)
        values = []
        while len(values) < 150:
            value = random_value(source)
            try:
                _encoding.encode(value)
            except ValueError:
                continue
            values.append(value)
        mine = {i: value for i, value in enumerate(values)}
        for kind in (holdfast.Vector, holdfast.Stack, holdfast.Queue):
            kind(self.pool).extend(values)
        holdfast.Map(self.pool).update(mine)
        kept = self.reopen(holdfast.Map)
        self.pool.verify()
        self.assertEqual(set(kept), set(mine))
        for key, value in kept.items():
            self.assertTrue(same(value, mine[key]))
        for number, value in enumerate(holdfast.Vector(self.pool)[:]):
            self.assertTrue(same(value, values[number]))
        queue, stack, vector = holdfast.Queue(self.pool), holdfast.Stack(self.pool), holdfast.Vector(self.pool)
        for value in values:
            self.assertTrue(same(queue.get_nowait(), value))
        for value in reversed(values):
            self.assertTrue(same(stack.peek(), value))
            self.assertTrue(same(stack.pop(), value))
            self.assertTrue(same(vector.pop(), value))
        for key, value in mine.items():
            self.assertTrue(same(kept.pop(key), value))
        self.assertEqual([len(each) for each in (kept, queue, stack, vector)], [0, 0, 0, 0])

    def test_values_of_any_size_come_back(self):
        """Few bytes are copied to another place than many."""
        kept = holdfast.Map(self.pool)
        for size in (*range(200, 300), 5000):
            value = {"text": "x" * size, "when": datetime.datetime(2026, 3, 1)}  # which Python code reads
            kept["a"] = value
            self.assertEqual(kept["a"], value)
            self.assertEqual([*kept.values()], [value])
            self.assertEqual(kept.pop("a"), value)

    def test_none_is_an_element_like_others(self):
        queue = holdfast.Queue(self.pool)
        queue.extend([None, "a"])
        self.assertIsNone(queue.get(timeout=1))
        self.assertEqual(queue.popleft(), "a")
        self.assertRaises(IndexError, queue.popleft)
        kept = holdfast.Map(self.pool)
        kept[None] = None
        self.assertIn(None, kept)
        self.assertIsNone(kept["a" if "a" in kept else None])
        self.assertIsNone(kept.setdefault(None, 1))
        self.assertEqual(kept.popitem(), (None, None))
        self.assertRaises(KeyError, kept.popitem)

    def test_one_is_not_true(self):
        kept = holdfast.Map(self.pool)
        kept.update({1: "int", "1": "str", (1,): "tuple"})
        kept[True], kept[1.0] = "bool", "float"
        self.assertEqual([kept[1], kept[True], kept[1.0], kept["1"], kept[(1,)]], ["int", "bool", "float", "str", "tuple"])
        self.assertEqual(len(kept), 5)
        vector = holdfast.Vector(self.pool)
        vector.extend([1, [2], {"b": 1, "a": 2}])
        self.assertIn({"a": 2, "b": 1}, vector)
        self.assertNotIn(True, vector)
        self.assertEqual(vector.index([2]), 1)

    def test_registered_classes_come_back(self):
        kept = holdfast.Map(self.pool)
        kept.update({"enum": Flavour.SOUR, "flag": Rights.READ | Rights.WRITE, "word": Word.YES, "point": Point(1.5, -0.0, ["a"]),
                     "plain": [Plain(7)], "all": {Flavour.SWEET: (Point(1), {Flavour.SOUR})}})
        kept = self.reopen(holdfast.Map)
        self.assertEqual([kept["enum"], kept["flag"]], [Flavour.SOUR, Rights.READ | Rights.WRITE])
        self.assertIs(kept["word"], Word.YES)
        self.assertEqual(kept["point"], Point(1.5, 0.0, ["a"]))
        with self.assertRaisesRegex(TypeError, "frozen"):
            kept["point"].tags.append("b")
        self.assertEqual(kept["plain"], [Plain(7)])
        self.assertEqual(kept["all"], {Flavour.SWEET: (Point(1), {Flavour.SOUR})})
        self.pool.verify()

    def test_no_code_meets_a_value_that_is_half_made(self):
        """The program's code runs meanwhile: decode here, and other threads."""
        made = subprocess.run([sys.executable, "-c", WALKER, self.folder / "walked.hf"], stderr=subprocess.PIPE, text=True)
        self.assertEqual((made.returncode, made.stderr), (0, ""))

    def test_keys_of_registered_classes(self):
        kept = holdfast.Map(self.pool)
        kept[Flavour.SOUR] = 1
        kept["yes"] = 2
        self.assertEqual((kept[Flavour.SOUR], kept[Word.YES]), (1, 2))   # a text that is equal to its member
        self.assertEqual(set(kept), {Flavour.SOUR, "yes"})
        self.assertRaises(TypeError, kept.__setitem__, Point(1), 1)      # it has a list in it, as hash() finds, too

    def test_what_cannot_be_registered_says_why(self):
        @dataclasses.dataclass
        class Open:
            x: int

        for wrong, error, word in ((Open, TypeError, "frozen=True"), (int, TypeError, "encode and decode"), (1, TypeError, "a class")):
            with self.assertRaisesRegex(error, word):
                holdfast.register(wrong)
        with self.assertRaisesRegex(TypeError, "both"):
            holdfast.register(Open, encode=str)
        with self.assertRaisesRegex(ValueError, "is the name of"):
            holdfast.register(Unregistered, name="Flavour")
        with self.assertRaisesRegex(TypeError, r"holdfast\.register"):
            holdfast.Map(self.pool)["a"] = Unregistered.ONE

    def test_a_class_that_has_changed(self):
        def stored_by(cls, value):
            holdfast.register(cls, name="changing")
            kept["a"] = value
            _encoding._classes.pop(_encoding._names.pop("changing"))

        kept = holdfast.Map(self.pool)
        old = dataclasses.make_dataclass("Old", [("x", int), ("y", int)], frozen=True)
        more = dataclasses.make_dataclass("More", [("x", int), ("y", int), ("z", int, 5)], frozen=True)
        stored_by(old, old(1, 2))
        holdfast.register(more, name="changing")
        self.assertEqual(kept["a"], more(1, 2, 5))
        _encoding._classes.pop(_encoding._names.pop("changing"))
        for fields, word in (([("x", int)], "fields that the class has not: y"), ([("x", int), ("y", int), ("z", int)], "no 'z'")):
            holdfast.register(dataclasses.make_dataclass("Other", fields, frozen=True), name="changing")
            with self.assertRaisesRegex(holdfast.Error, word):
                kept["a"]
            _encoding._classes.pop(_encoding._names.pop("changing"))

    def test_equal_keys_are_one_key(self):
        kept, members = holdfast.Map(self.pool), holdfast.Set(self.pool)
        abroad = datetime.timezone(datetime.timedelta(hours=5))
        noon = datetime.datetime(2026, 3, 1, 12, tzinfo=UTC)
        for one, other in ((0.0, -0.0), (noon, noon.astimezone(abroad)), (noon.replace(tzinfo=None), noon.replace(tzinfo=None, fold=1)),
                           (decimal.Decimal(1), decimal.Decimal("1.00")), (decimal.Decimal(0), decimal.Decimal("-0.0")),
                           ((1, -0.0), (1, 0.0)), (frozenset((0.0,)), frozenset((-0.0,))), (decimal.Decimal("1E+5"), decimal.Decimal(100000))):
            self.assertEqual(one, other)
            for first, second in ((one, other), (other, one)):
                kept.clear()
                members.clear()
                kept[first] = 1
                members.add(first)
                self.assertEqual((kept[second], kept.get(second), second in kept, second in members), (1, 1, True, True), one)
                kept[second] = 2
                self.assertEqual((kept.setdefault(first, 3), kept.add(second, 1), len(kept)), (2, 3, 1))
                kept.update({first: 4})
                members |= {second}
                self.assertEqual((len(members), kept.pop(second)), (1, 4))
                members.remove(second)
                self.assertEqual((len(members), len(kept)), (0, 0))
        if numpy is not None:
            kept[1], kept[1.5], kept[True], kept["a"] = "int", "float", "bool", "str"
            self.assertEqual([kept[key] for key in (numpy.int8(1), numpy.float64(1.5), numpy.bool_(True), numpy.str_("a"))], ["int", "float", "bool", "str"])
        value = {-0.0: -0.0, decimal.Decimal("1.00"): decimal.Decimal("1.00")}
        kept["value"] = value        # within a value all is as it was
        self.assertEqual(repr(sorted(kept["value"])), "[-0.0, Decimal('1.00')]")

    def test_a_key_of_a_subclass_is_the_one_that_it_is_equal_to(self):
        class Text(str):
            pass

        class Data(bytes):
            pass

        kept, members, ordered = holdfast.Map(self.pool), holdfast.Set(self.pool), holdfast.SortedMap(self.pool)
        kept[Text("a")] = kept[(Data(b"a"), Text("b"))] = ordered[Text("a")] = 1
        members.add(Text("a"))
        self.assertEqual((kept["a"], kept[b"a", "b"], ordered["a"], kept[Text("a")], Text("a") in kept, Text("a") in members), (1, 1, 1, 1, True, True))
        self.assertEqual([type(key) for key in (*members, *ordered)], [str, str])

    def test_a_value_of_a_subclass_is_refused(self):
        class Text(str):
            pass

        class Data(bytes):
            pass

        kept, vector = holdfast.Map(self.pool), holdfast.Vector(self.pool)
        for value in (Text("a"), Data(b"a"), [Text("a")], {"a": Data(b"a")}, {Text("a")}):
            with self.assertRaisesRegex(TypeError, r"would come back as a (str|bytes): store (str|bytes)\(value\), or register"):
                kept["a"] = value
            self.assertRaises(TypeError, vector.append, value)
        self.assertEqual((kept, vector), ({}, []))

    def test_what_is_refused_says_what_to_store(self):
        class Colour(enum.Enum):
            RED = 1

        kept = holdfast.Map(self.pool)
        for value, said in ((collections.defaultdict(list), r"store dict\(value\)"), (collections.namedtuple("Pair", "a")(1), r"store tuple\(value\)"),
                            (types.SimpleNamespace(), "holdfast.register"),
                            (Colour.RED, "@holdfast.register"), (dataclasses.make_dataclass("D", ["a"])(1), "@holdfast.register"),
                            ([collections.OrderedDict()], r"store dict\(value\)")):
            with self.assertRaisesRegex(TypeError, said):
                kept["a"] = value
        for wrong, said in ((lambda: holdfast.Map(self.pool, 5), "name: expected a str"), (lambda: holdfast.open(self.folder / "b", wait="5"), "wait: expected a number"),
                            (lambda: copy.copy(kept), r"copy\(\) gives"), (lambda: pickle.dumps(holdfast.SortedMap(self.pool)), "a SortedMap is in its pool")):
            with self.assertRaisesRegex(TypeError, said):
                wrong()

    def test_names_of_files_are_keys_and_values(self):
        names = [os.fsdecode(each) for each in (b"caf\xe9", b"\xff\xfe", b"\xed\xa0\x80", "é".encode(), b"\xc3\x28", b"a\xe9" * 200)]
        names += ["\ud800", "\udfff\ud800", "\ud7ff", "\ue000", "\U00010000", "\ud800\udc00"]
        kept, members, ordered, vector = (kind(self.pool) for kind in (holdfast.Map, holdfast.Set, holdfast.SortedMap, holdfast.Vector))
        for name in names:
            kept[name] = kept[name, 1] = name
            kept[1, name] = {name: [name]}
            members.add(name)
            ordered[name] = ordered[name, 1] = name
            vector.append(name)
        for _ in range(2):
            self.assertEqual(kept, {**{name: name for name in names}, **{(name, 1): name for name in names}, **{(1, name): {name: [name]} for name in names}})
            self.assertEqual((members, list(vector)), (set(names), names))
            self.assertEqual(list(ordered), [*sorted(names), *((name, 1) for name in sorted(names))])
            for name in names:
                self.assertEqual((kept[name], ordered[name], vector.index(name), name in members), (name, name, names.index(name), True))
                self.assertIn(name, [key for key, _ in ordered.prefix(name[:1])])
            self.pool.close()
            self.pool = holdfast.open(self.path)
            kept, members, ordered, vector = (kind(self.pool) for kind in (holdfast.Map, holdfast.Set, holdfast.SortedMap, holdfast.Vector))
        self.assertEqual([kept.pop(name) for name in names], names)
        self.assertEqual([vector.pop() for _ in names], names[::-1])
        folder = self.folder / "files"
        folder.mkdir()
        (folder / names[0]).write_text("x")
        kept.update({each: os.stat(folder / each).st_size for each in os.listdir(folder)})
        self.assertEqual(kept[names[0]], 1)

    def test_what_an_older_version_has_stored(self):
        """A pool that version 1 of the format has written, with each of its kinds, and two keys of its that now have another form."""
        packed = base64.b85decode("".join((pathlib.Path(__file__).parent / "version_1.b85").read_text().split()))
        (self.folder / "old.hf").write_bytes(lzma.decompress(packed))
        with holdfast.open(self.folder / "old.hf", create="never") as pool:
            values, keys, members = holdfast.Map(pool, "values"), holdfast.Map(pool, "keys"), holdfast.Set(pool, "members")
            self.assertEqual(len(values), len(EXAMPLES))
            for number, (value, _) in enumerate(EXAMPLES):
                self.assertTrue(same(values[number], value), value)
            abroad = datetime.datetime(2026, 3, 1, 17, tzinfo=datetime.timezone(datetime.timedelta(hours=5)))
            old = {-0.0: "zero", abroad: "noon", (1, -0.0): "pair"}
            self.assertEqual(keys, old)
            for key, value in old.items():
                self.assertEqual((keys[key], key in keys, key in members), (value, True, True))
            keys[-0.0] = "new"
            members.add(-0.0)
            self.assertEqual((keys[0.0], keys[-0.0], len(keys), len(members)), ("new", "new", 3, 3))
            keys.update({abroad: "new"})
            members.discard(abroad)
            self.assertEqual((keys[abroad], keys[abroad.astimezone(UTC)], len(keys), len(members)), ("new", "new", 3, 2))
            self.assertEqual((keys.pop((1, -0.0)), len(keys)), ("pair", 2))
            counts = Counter.open(pool, "counter")
            self.assertEqual((counts.count, counts.names), (3, ["a", "b"]))
            pool.verify()

    def test_sets_and_keys_take_what_dict_takes(self):
        numbers = holdfast.Set(self.pool)
        numbers.update(range(300), [None, (1, "a"), -5])
        self.assertEqual(numbers, {*range(300), None, (1, "a"), -5})
        numbers -= {(1, "a"), 7}
        self.assertNotIn(7, numbers)
        self.assertEqual(len({numbers.pop() for _ in range(len(numbers))}), 301)
        for key in ([], {}, ([],)):
            self.assertRaises(TypeError, numbers.add, key)
            self.assertRaises(TypeError, holdfast.Map(self.pool).__setitem__, key, 1)
            self.assertNotIn(key, numbers)

    def test_what_cannot_be_decoded_stays(self):
        kept = holdfast.Vector(self.pool)
        kept.append("last")
        kept.append((7, 8))
        kept.append(Flavour.SWEET)
        known = _encoding._names.pop("Flavour")
        try:
            for look in (kept.pop, lambda: kept[-1]):
                with self.assertRaises(holdfast.Error) as refused:
                    look()
                self.assertEqual(refused.exception.code, "unsupported")
                self.assertIn("'Flavour'", refused.exception.message)
        finally:
            _encoding._names["Flavour"] = known
        self.assertEqual(kept[:], ["last", (7, 8), Flavour.SWEET])

    def test_str_and_bytes_are_stored_as_ever(self):
        """Their bytes, then 1 or 0: what stands in pools of before there were other values."""
        text, data = "text that is looked for ", b"bytes that are looked for "
        holdfast.Vector(self.pool).extend([text * 4, data * 4])
        self.pool.close()
        written = self.path.read_bytes()
        self.pool = holdfast.open(self.path)
        self.assertIn(text.encode() * 4 + b"\x01", written)
        self.assertIn(data * 4 + b"\x00", written)

    def test_numbers_are_stored_as_python_code_encodes_them(self):
        """Which does not run for None, bools, floats and ints of 64 bits."""
        source = random.Random(SEED)
        numbers = [None, False, True, 0.0, -0.0, math.inf, -math.inf, math.nan]
        numbers += [sign * (2**bits + near) for bits in range(64) for near in (-1, 0, 1) for sign in (1, -1)]
        numbers += [struct.unpack(">d", source.randbytes(8))[0] for _ in range(100)]
        here = [each for each in numbers if type(each) is not int or -2**63 <= each < 2**63]
        whole = _encoding.leaf
        try:
            _encoding.leaf = None
            holdfast.Vector(self.pool).extend(here)
        finally:
            _encoding.leaf = whole
        holdfast.Vector(self.pool, "others").extend(numbers)
        self.pool.close()
        written = self.path.read_bytes()
        self.pool = holdfast.open(self.path)
        for number in numbers:
            self.assertIn(_encoding.encode(number) + b"\x02", written)
        for found, number in zip(holdfast.Vector(self.pool, "others")[:], numbers):
            self.assertTrue(same(found, number), number)

    def test_more_than_a_gibibyte_says_so(self):
        kept = holdfast.Map(self.pool)
        large = bytes(1 << 30)  # no page of it is there before somebody looks
        for change in (lambda: kept.__setitem__("a", large), lambda: kept.__setitem__(large, "a"), lambda: kept.update({"a": large}),
                       lambda: holdfast.Vector(self.pool).append(large), lambda: holdfast.Queue(self.pool).put(large)):
            with self.assertRaisesRegex(ValueError, "1 GiB"):
                change()
        self.assertEqual(len(kept), 0)

    @unittest.skipIf(numpy is None, "numpy is not installed")
    def test_arrays(self):
        kept = holdfast.Map(self.pool)
        matrix = numpy.arange(12, dtype="<f4").reshape(3, 4)
        kept["matrix"], kept["turned"], kept["none"] = matrix, matrix.T, numpy.zeros((0, 3), "?")
        found = kept["matrix"]
        self.assertTrue(same(found, matrix) and not found.flags.writeable)
        with self.assertRaises(ValueError):
            found[0, 0] = 7
        with kept.edit("matrix") as changed:
            changed[0, 0] = 7
        self.assertEqual(kept["matrix"][0, 0], 7)
        taken = kept.pop("matrix")
        taken[0, 0] = 8      # which is the caller's alone
        self.assertTrue(numpy.array_equal(kept["turned"], matrix.T))
        self.assertEqual(kept["none"].shape, (0, 3))
        self.assertRaises(TypeError, kept.__setitem__, matrix, 1)


if __name__ == "__main__":
    unittest.main()
