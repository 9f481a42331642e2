# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""SortedMap: a dict in order.

Goal: keys go in the order that Python has for them, ranges and prefixes have what they promise, and what is no key is
refused. Method: random keys and calls beside a dict whose keys are sorted; stored forms that are written down; forms that
are damaged in many ways.
"""
import datetime
import enum
import functools
import math
import struct
import unittest

import holdfast
from holdfast import _core

from support import SEED, Pooled

try:
    import numpy
except ImportError:
    numpy = None

UTC = datetime.timezone.utc
# A key and its stored form, as docs/format/python-values.md has it. Sorted.
FORMS = [
    (None, "01"), (-math.inf, "1001"), (-2, "11" "fbb2" "ff" "00"), (-1, "11fbb3ff00"), (-0.5, "11fbb4ff01"), (0, "1200"), (0.0, "1201"), (False, "1202"),
    (5e-324, "13001a0001"), (0.5, "13044b0001"), (1, "13044c0000"), (1.0, "13044c0001"), (True, "13044c0002"), (1.5, "13044c8001"),
    (3, "13044d8000"), (255, "13" "0453" "fe" "00"), (257, "13" "0454" "01" "80" "00"), (2**64, "13048c0000"), (2.0**1023, "13084b0001"),
    (2**70_000, "13" "ffff" "00000000000115bc" "00" "00"), (math.inf, "1401"), (math.nan, "1501"),
    ("", "2000"), ("\0", "2000ff00"), ("\1", "200100"), ("a", "206100"), ("é", "20c3a900"), (b"", "2100"), (b"\xff", "21ff00"),
    (datetime.date(2026, 3, 1), "3007ea0301"), (datetime.datetime(2026, 3, 1, 12), "3107ea03010c0000000000"),
    (datetime.datetime(2026, 3, 1, 12, tzinfo=UTC), "3207ea03010c0000000000"), (datetime.timedelta(-1), "333b9ac9ff000000000000"),
    ((), "4000"), ((1, "a"), "40" "13044c00" "206100" "00" "00"), ((2, 0.5), "40" "13044d00" "13044b00" "00" "0001"),
]


def ranked(key):
    """What Python sorts by where it does not sort."""
    if isinstance(key, tuple):
        return (9, tuple(map(ranked, key)))
    if isinstance(key, (int, float)):
        return (2, (2, 0) if key != key else (1, key))
    if isinstance(key, datetime.datetime):
        return (6, key.timestamp()) if key.tzinfo else (5.5, key)
    order = {type(None): 1, str: 3, bytes: 4, datetime.date: 5, datetime.timedelta: 7}
    return (order[type(key)], (0,) if key is None else key)


class SortedMapTest(Pooled):
    def setUp(self):
        super().setUp()
        self.map = holdfast.SortedMap(self.pool)

    def random_key(self, depth=0):
        source = self.random
        kinds = [lambda: source.randrange(-40, 40), lambda: source.randrange(-40, 40) / 4, lambda: source.choice((-1, 1)) * source.getrandbits(source.choice((8, 63, 64, 65, 300))),
                 lambda: struct.unpack(">d", source.randbytes(8))[0], lambda: source.choice((math.inf, -math.inf, 0.0, 5e-324, 1e308, 2.0**63, -2.0**63, 2**63)),
                 lambda: "".join(source.choice("\0\1aé\U0001f34e\xff") for _ in range(source.randrange(5))),
                 lambda: bytes(source.choice((0, 1, 97, 254, 255)) for _ in range(source.randrange(5))), lambda: None,
                 lambda: datetime.date(source.randrange(1, 9999), 2, source.randrange(1, 29)), lambda: datetime.timedelta(source.randrange(-99, 99), source.randrange(99)),
                 lambda: datetime.datetime(source.randrange(1990, 2030), 2, 3, source.randrange(24), 5, 6, source.randrange(10**6), source.choice((None, UTC)))]
        if depth < 3:
            kinds += [lambda: tuple(self.random_key(depth + 1) for _ in range(source.randrange(3)))] * 3
        return source.choice(kinds)()

    def test_stored_forms(self):
        for key, form in FORMS:
            self.assertEqual(_core.sorted_key(key).hex(), form, key)
            self.map[key] = form
        for found, (key, _) in zip(self.map, FORMS):
            self.assertIs(type(found), type(key))
            self.assertTrue(found == key or key != key, key)
        self.assertEqual(len(self.map), len(FORMS))

    def test_order_is_pythons(self):
        keys = [self.random_key() for _ in range(3000)]
        self.map.update((key, repr(key)) for key in keys)
        expected = sorted({repr(key): key for key in keys}.values(), key=functools.cmp_to_key(
            lambda a, b: (ranked(a) > ranked(b)) - (ranked(a) < ranked(b))))
        found = list(self.map)
        self.assertEqual(len(found), len(expected), f"seed {SEED}")
        for one, two in zip(found, expected):  # equal ones come in any order
            self.assertEqual(ranked(one), ranked(two), f"seed {SEED}")
        self.assertEqual({repr(key) for key in found}, set(self.map.values()))
        self.pool.verify()

    def test_calls_do_what_they_do_to_a_dict(self):
        model = {}
        for _ in range(1500):
            key, other = self.random.randrange(40), self.random.randrange(40)
            call = self.random.choice([
                lambda m: m.__setitem__(key, (other,)), lambda m: m.pop(key), lambda m: m.pop(key, None), lambda m: m.__delitem__(key), lambda m: m.get(key),
                lambda m: m.get(key, 7), lambda m: key in m, lambda m: len(m), lambda m: m.setdefault(key, (other,)), lambda m: m.update({key: 1, other: 2}),
                lambda m: m.__getitem__(key), lambda m: bool(m)])
            self.same(call, self.map, model)
            self.assertEqual(list(self.map.items()), sorted(model.items()))
        self.assertEqual(self.map, model)
        self.assertEqual(list(self.map.keys()), sorted(model))
        self.assertEqual(list(reversed(self.map)), sorted(model)[::-1])
        self.map |= {"a": 1}
        self.map.clear()
        self.assertEqual((self.map, list(self.map.values())), ({}, []))
        self.assertRaises(KeyError, self.map.first)
        self.assertRaises(KeyError, self.map.popitem)

    def test_ranges_are_slices_of_the_order(self):
        numbers = sorted({self.random.randrange(1000) / 4 for _ in range(300)} | {self.random.randrange(300) for _ in range(100)}, key=lambda n: (n, type(n) is float))
        self.map.update((number, number) for number in numbers)
        stored = list(self.map)
        for _ in range(300):
            start, stop = (self.random.choice((None, self.random.randrange(300), self.random.randrange(1200) / 4)) for _ in range(2))
            expected = [(n, n) for n in stored if (start is None or n >= start) and (stop is None or n < stop)]
            self.assertEqual(list(self.map.range(start, stop)), expected)
            self.assertEqual(list(self.map.range(start, stop, reverse=True)), expected[::-1])
        self.assertEqual((self.map.first()[0], self.map.last()[0]), (stored[0], stored[-1]))
        with self.map.snapshot() as then:
            gone = self.map.erase(50, 100)
            self.assertEqual(gone, sum(50 <= n < 100 for n in stored))
            self.assertEqual([key for key, _ in then.range(49, 101)], [n for n in stored if 49 <= n < 101])
        self.assertEqual(list(self.map), [n for n in stored if not 50 <= n < 100])
        self.assertEqual(self.map.popitem(), (stored[-1], stored[-1]))
        self.assertEqual(self.map.popitem(last=False), (stored[0], stored[0]))

    def test_bounds_of_tuples_and_times(self):
        start = datetime.datetime(2026, 3, 1, tzinfo=UTC)
        for hour in range(48):
            self.map["log", start + datetime.timedelta(hours=hour)] = hour
        self.map["other", start] = self.map["log"] = -1
        day_two = ("log", start + datetime.timedelta(days=1))
        self.assertEqual([value for _, value in self.map.range(day_two, ("log", start + datetime.timedelta(days=1, hours=3)))], [24, 25, 26])
        self.assertEqual(len(list(self.map.range(("log",), ("log ",)))), 48)
        abroad = datetime.timezone(datetime.timedelta(hours=5))
        self.assertEqual(self.map["log", start.astimezone(abroad)], 0)   # the same moment is one key

    def test_prefixes(self):
        words = ["", "a", "ab", "ab\0", "abc", "abé", "ab\U0010ffff", "ac", "b", "ÿ", "ÿÿ"]
        data = [b"", b"a", b"a\0", b"a\xff", b"a\xff\xff", b"a\xff\xff\1", b"b", b"\xff", b"\xff\xff"]
        self.map.update((key, key) for key in [*words, *data, 5, None, ("ab", 1)])
        for kind, keys in ((str, words), (bytes, data)):
            for prefix in keys + [kind()]:
                expected = sorted(key for key in keys if key.startswith(prefix))
                self.assertEqual([key for key, _ in self.map.prefix(prefix)], expected, prefix)
                self.assertEqual([key for key, _ in self.map.prefix(prefix, reverse=True)], expected[::-1])
        self.assertRaises(TypeError, self.map.prefix, 5)

    def test_equal_keys_are_one_key_of_their_type(self):
        self.map[0.0] = "a"
        self.map[-0.0] = "b"
        self.assertEqual(list(self.map.items()), [(0.0, "b")])
        self.assertEqual(math.copysign(1, next(iter(self.map))), 1)
        self.map.update({1: "int", 2: 2})
        self.map[1.0], self.map[True] = "float", "bool"
        self.assertEqual([self.map[1], self.map[1.0], self.map[True]], ["int", "float", "bool"])
        self.assertEqual([value for _, value in self.map.range(1, 2)], ["int", "float", "bool"])
        if numpy is not None:
            self.assertEqual([self.map[numpy.int32(1)], self.map[numpy.float64(1)]], ["int", "float"])

    def test_what_has_no_place_in_the_order_is_refused(self):
        class Letter(str, enum.Enum):
            A = "a"

        for key in ([1], {}, {1}, 1j, object(), frozenset(), (1, [2]), datetime.time(1), float):
            self.assertNotIn(key, self.map)
            self.assertRaises(TypeError, self.map.__setitem__, key, 1)
            self.assertRaises(TypeError, self.map.get, key)
        deep = ()
        for _ in range(70):
            deep = (deep,)
        self.assertRaises(ValueError, self.map.__setitem__, deep, 1)
        self.map[Letter.A] = 1
        self.assertEqual(self.map, {"a": 1})

    def test_damaged_forms_are_corrupt(self):
        """A form that is changed is refused, or is another key's form."""
        stored = _core.sorted_key
        refused = 0
        for _ in range(2000):
            form = bytearray(stored(self.random_key()))
            at = self.random.randrange(len(form))
            damage = self.random.choice((lambda: form.__delitem__(at), lambda: form.insert(at, self.random.randrange(256)), lambda: form.__delitem__(slice(at, None)),
                                         lambda: form.__setitem__(at, self.random.randrange(256)), lambda: form.append(self.random.randrange(256))))
            damage()
            try:
                key = _core.sorted_key_of(bytes(form))
            except holdfast.Error as error:
                self.assertEqual(error.code, "corrupt")
                refused += 1
            else:
                self.assertEqual(stored(key), bytes(form), f"seed {SEED}")
        self.assertGreater(refused, 300)


if __name__ == "__main__":
    unittest.main()
