# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Map does what dict does: random calls on both, and each promise that dict has no word for."""
import collections.abc
import unittest

import holdfast
from support import SEED, Pooled, random_element


class MapTest(Pooled):
    def setUp(self):
        super().setUp()
        self.map = holdfast.Map(self.pool)

    def random_call(self):
        key, value = random_element(self.random, 200), random_element(self.random, 40)
        some = {random_element(self.random, 200): value for _ in range(self.random.randrange(90))}
        return self.random.choice([
            lambda d: d.__setitem__(key, value), lambda d: d.__setitem__(key, value),
            lambda d: d.__delitem__(key), lambda d: d[key], lambda d: d.get(key),
            lambda d: d.get(key, value), lambda d: key in d, lambda d: d.pop(key),
            lambda d: d.pop(key, None), lambda d: d.setdefault(key, value),
            lambda d: d.update(some), lambda d: d.update(list(some.items())), lambda d: len(d)])

    def test_random_calls_do_what_they_do_to_a_dict(self):
        model = {}
        for step in range(1500):
            self.same(self.random_call(), self.map, model)
            if step % 100 == 0:
                self.assertEqual(self.map, model, f"seed {SEED}, step {step}")
                if self.random.randrange(4) == 0:
                    self.map = self.reopen(holdfast.Map)
        self.assertGreater(len(model), 20)
        self.assertEqual(dict(self.map.items()), model)
        self.assertEqual(sorted(map(repr, self.map)), sorted(map(repr, model)))
        self.assertEqual(sorted(map(repr, self.map.values())), sorted(map(repr, model.values())))
        self.assertEqual(self.reopen(holdfast.Map), model)

    def test_is_a_mutable_mapping(self):
        self.assertIsInstance(self.map, collections.abc.MutableMapping)
        self.assertIsInstance(self.map.snapshot(), collections.abc.Mapping)
        self.assertNotIsInstance(self.map.snapshot(), collections.abc.MutableMapping)
        self.assertRaises(TypeError, hash, self.map)
        self.assertRaises(TypeError, reversed, self.map)
        wanted = set(dir(collections.abc.MutableMapping)) - set(dir(object)) - {
            "_abc_impl", "__slots__", "__class_getitem__", "__abstractmethods__"}
        self.assertLessEqual({each for each in wanted if not each.startswith("_MutableMapping")},
                             set(dir(self.map)))

    def test_str_and_bytes_are_different_and_come_back_as_they_were(self):
        self.map.update({"a": b"a", b"a": "a", "": "", b"": b"\0\xff", "é\0": "\U0001f34e"})
        self.assertEqual(self.map, {"a": b"a", b"a": "a", "": "", b"": b"\0\xff",
                                    "é\0": "\U0001f34e"})

    def test_other_types_are_refused(self):
        self.map["a"] = "b"
        for other in (1j, object, (bytearray(b"a"),), bytearray(b"a"), memoryview(b"a")):
            self.assertNotIn(other, self.map)
            self.assertRaises(TypeError, lambda: self.map[other])
            self.assertRaises(TypeError, self.map.__setitem__, other, "b")
            self.assertRaises(TypeError, self.map.__setitem__, "a", other)
            self.assertRaises(TypeError, self.map.__delitem__, other)
            self.assertRaises(TypeError, self.map.get, other)
            self.assertRaises(TypeError, self.map.update, {"c": "d", "e": other})
        self.assertEqual(self.map, {"a": "b"})

    def test_update_takes_what_dict_takes(self):
        class Keyed:
            def keys(self):
                return ["k"]

            def __getitem__(self, key):
                return key * 2

        model = {}
        for call in (lambda d: d.update(), lambda d: d.update({"a": "1"}, b="2"),
                     lambda d: d.update([("c", "3"), ["d", "4"]]), lambda d: d.update(Keyed()),
                     lambda d: d.update(x for x in [("e", "5")]), lambda d: d.update(["fg"]),
                     lambda d: d.update(["abc"]), lambda d: d.update(7), lambda d: d.update([1])):
            self.same(call, self.map, model)
        self.assertEqual(self.map, model)
        self.map.update(self.map)
        self.map |= {"z": "26"}
        model |= {"z": "26"}
        self.assertEqual(self.map, model)
        self.assertEqual(self.map | {"a": "x"}, model | {"a": "x"})
        self.assertEqual({"a": "x"} | self.map, {"a": "x"} | model)
        self.assertIs(type(self.map | {}), dict)

    def test_equals_mappings_of_the_same_items(self):
        self.map.update(a="1", b="2")
        for operand in (self.map, self.map.snapshot()):
            for same in ({"b": "2", "a": "1"}, self.map, self.map.snapshot()):
                self.assertTrue(operand == same)
                self.assertFalse(operand != same)
            for other in ({"a": "1", "b": "3"}, {"a": "1", "c": "2"}, {"a": "1"},
                          {"a": "1", b"b": "2"}, {"a": "1", "b": b"2"},
                          [("a", "1"), ("b", "2")], None):
                self.assertFalse(operand == other)
                self.assertTrue(other != operand)

    def test_a_failing_update_changes_nothing(self):
        self.map["a"] = "1"
        with self.assertRaises(ZeroDivisionError):
            self.map.update((str(i), str(1 // (5 - i))) for i in range(9))
        self.assertEqual(self.map, {"a": "1"})

    def test_popitem_takes_each_once(self):
        self.map.update({str(i): "v" for i in range(50)})
        taken = dict(self.map.popitem() for _ in range(50))
        self.assertEqual(taken, {str(i): "v" for i in range(50)})
        self.assertRaises(KeyError, self.map.popitem)

    def test_views_are_of_the_map(self):
        keys, values, items = self.map.keys(), self.map.values(), self.map.items()
        self.map.update(a="1", b="2")
        self.assertEqual(keys, {"a", "b"})
        self.assertEqual(keys & {"a", "c"}, {"a"})
        self.assertEqual(sorted(values), ["1", "2"])
        self.assertEqual(items, {("a", "1"), ("b", "2")})
        self.assertIn("2", values)
        self.assertNotIn(("a", "2"), items)
        self.assertEqual((len(keys), len(values), len(items)), (2, 2, 2))

    def test_iteration_sees_one_version(self):
        self.map.update({str(i): "old" for i in range(200)})
        seen = {}
        for number, (key, value) in enumerate(self.map.items()):
            seen[key] = value
            self.map[str(number)] = "new"
            self.map.pop(str(199 - number), None)
            self.map[f"more {number}"] = "new"
        self.assertEqual(seen, {str(i): "old" for i in range(200)})

    def test_a_snapshot_stays_as_it_was(self):
        self.map.update({str(i): str(i) for i in range(500)})
        with self.map.snapshot() as snapshot:
            for i in range(500):
                self.map[str(i)] = "x"
            self.map.clear()
            self.assertEqual(len(self.map), 0)
            self.assertFalse(self.map)
            self.assertEqual(snapshot, {str(i): str(i) for i in range(500)})
            self.assertEqual(snapshot["7"], "7")
            self.assertEqual(snapshot.get("no", 1), 1)
            self.assertRaises(KeyError, lambda: snapshot["no"])
            self.assertFalse(hasattr(snapshot, "__setitem__"))
        self.assertRaises(holdfast.Error, len, snapshot)

    def test_names_tell_maps_apart(self):
        other = holdfast.Map(self.pool, "other")
        again = holdfast.Map(self.pool)
        self.map["a"] = "1"
        other["a"] = "2"
        self.assertEqual((again["a"], other["a"]), ("1", "2"))
        self.assertEqual((again.name, other.name), ("map", "other"))
        with self.assertRaises(holdfast.Error) as raised:
            holdfast.Set(self.pool, "other")
        self.assertEqual(raised.exception.code, "wrong_layout")
        for name in ("", "x" * 64):
            with self.assertRaises(holdfast.Error) as raised:
                holdfast.Map(self.pool, name)
            self.assertEqual(raised.exception.code, "bad_argument")

    def test_shows_what_it_holds(self):
        self.map["a"] = b"1"
        self.assertEqual(repr(self.map), "Map({'a': b'1'})")
        self.assertEqual(repr(self.map.snapshot()), "MapSnapshot({'a': b'1'})")


if __name__ == "__main__":
    unittest.main()
