# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Set does what set does: random calls on both, every operator, and snapshots."""
import collections.abc
import operator
import unittest

import holdfast
from support import SEED, Pooled, random_element


class SetTest(Pooled):
    def setUp(self):
        super().setUp()
        self.set = holdfast.Set(self.pool)

    def random_call(self):
        element = random_element(self.random, 200)
        some = {random_element(self.random, 200) for _ in range(self.random.randrange(90))}
        return self.random.choice([
            lambda s: s.add(element), lambda s: s.add(element), lambda s: s.discard(element),
            lambda s: s.remove(element), lambda s: element in s, lambda s: len(s),
            lambda s: s.update(some), lambda s: s.update(some, ["x"]),
            lambda s: s.difference_update(some), lambda s: s.symmetric_difference_update(some),
            lambda s: s.intersection_update(some | {f"{i}" for i in range(9)} | set(s))])

    def test_random_calls_do_what_they_do_to_a_set(self):
        model = set()
        for step in range(1500):
            self.same(self.random_call(), self.set, model)
            if step % 100 == 0:
                self.assertEqual(self.set, model, f"seed {SEED}, step {step}")
        self.assertGreater(len(model), 20)
        self.assertEqual(set(self.set), model)
        self.assertEqual(len(list(self.set)), len(model))
        self.assertEqual(self.reopen(holdfast.Set), model)

    def test_operators_do_what_they_do_to_sets(self):
        self.set.update("abcd")
        model = set("abcd")
        names = ("and_", "or_", "sub", "xor", "eq", "ne", "le", "lt", "ge", "gt")
        for name in names:
            operation = getattr(operator, name)
            for other in (set(), set("abcd"), set("bcde"), set("ab"), frozenset("abcdef"), {1},
                          "ab", 1):
                self.same(lambda s: operation(s, other), self.set, model)
                self.same(lambda s: operation(other, s), self.set, model)
                self.same(lambda s: operation(s, other), self.set.snapshot(), model)
            self.assertEqual(operation(self.set, self.set), operation(model, model))

    def test_operators_in_place(self):
        for name in ("iand", "ior", "isub", "ixor"):
            operation = getattr(operator, name)
            foreign = {1, 2} if name in ("iand", "isub") else {"q"}
            for other in (set(), set("bcde"), set("xyz"), foreign):
                self.set.clear()
                self.set |= set("abcd")
                before = self.set
                self.set = operation(self.set, other)
                self.assertIs(self.set, before)
                self.assertEqual(self.set, operation(set("abcd"), other))
            self.assertRaises(TypeError, operation, self.set, "ab")
        self.set.update("ab")
        self.set -= self.set
        self.assertEqual(self.set, set())

    def test_methods_of_reading(self):
        self.set.update("abc")
        for call in (lambda s: s.union("d", ["e"]), lambda s: s.intersection("ab", "b"),
                     lambda s: s.difference("a"), lambda s: s.symmetric_difference("cd"),
                     lambda s: s.isdisjoint("de"), lambda s: s.issubset("abcd"),
                     lambda s: s.issuperset("ab"), lambda s: s.copy()):
            self.same(call, self.set, set("abc"))

    def test_is_a_mutable_set(self):
        self.assertIsInstance(self.set, collections.abc.MutableSet)
        self.assertIsInstance(self.set.snapshot(), collections.abc.Set)
        self.assertNotIsInstance(self.set.snapshot(), collections.abc.MutableSet)
        self.assertRaises(TypeError, hash, self.set)

    def test_pop_takes_each_once(self):
        self.set.update(str(i) for i in range(100))
        self.assertEqual({self.set.pop() for _ in range(100)}, {str(i) for i in range(100)})
        self.assertRaises(KeyError, self.set.pop)

    def test_other_types_are_refused(self):
        self.set.add("a")
        for other in (1j, object, ("a", []), bytearray(b"a"), ["a"]):
            self.assertNotIn(other, self.set)
            self.assertRaises(TypeError, self.set.add, other)
            self.assertRaises(TypeError, self.set.update, ["b", other])
        self.assertEqual(self.set, {"a"})

    def test_iteration_and_snapshots_see_one_version(self):
        self.set.update(str(i) for i in range(200))
        snapshot = self.set.snapshot()
        seen = []
        for element in self.set:
            seen.append(element)
            self.set.discard(element)
            self.set.add(element + "new")
        self.assertEqual(set(seen), {str(i) for i in range(200)})
        self.assertEqual(len(seen), 200)
        self.assertEqual(snapshot, {str(i) for i in range(200)})
        self.assertEqual(self.set, {f"{i}new" for i in range(200)})


if __name__ == "__main__":
    unittest.main()
