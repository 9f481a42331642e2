# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Vector does what list does: random calls on both, slices of every kind, and snapshots."""
import collections.abc
import itertools
import operator
import unittest

import holdfast
from support import SEED, Pooled, random_element


class VectorTest(Pooled):
    def setUp(self):
        super().setUp()
        self.vector = holdfast.Vector(self.pool)

    def random_call(self, length):
        index = self.random.randrange(-length - 2, length + 2)
        cut = slice(index, index + self.random.randrange(-3, 40),
                    self.random.choice((None, 1, 2, -1)))
        element = random_element(self.random, 100)
        some = [random_element(self.random, 100) for _ in range(self.random.randrange(50))]
        return self.random.choice([
            lambda v: v.append(element), lambda v: v.extend(some),
            lambda v: v.insert(index, element),
            lambda v: v.__setitem__(index, element), lambda v: v[index], lambda v: v.pop(),
            lambda v: v.pop(index), lambda v: v.__delitem__(index), lambda v: v[cut],
            lambda v: v.__setitem__(slice(index, index + 7), some), lambda v: v.__delitem__(cut),
            lambda v: v.__setitem__(cut, some[:len(v[cut])]), lambda v: v.reverse(),
            lambda v: v.remove(element), lambda v: v.index(element), lambda v: v.count(element),
            lambda v: element in v, lambda v: len(v)])

    def test_random_calls_do_what_they_do_to_a_list(self):
        model = []
        for step in range(2000):
            self.same(self.random_call(len(model)), self.vector, model)
            if step % 100 == 0:
                self.assertEqual(self.vector, model, f"seed {SEED}, step {step}")
        self.assertGreater(len(model), 20)
        self.assertEqual(list(self.vector), model)
        self.assertEqual(self.reopen(holdfast.Vector), model)

    def test_every_slice(self):
        letters = list("abcde")
        ends = (None, -7, -5, -2, 0, 1, 3, 5, 9)
        for start, stop, step in itertools.product(ends, ends, (None, 1, 2, 3, -1, -2, 0)):
            cut = slice(start, stop, step)
            model = list(letters)
            self.vector[:] = letters
            self.same(lambda v: v[cut], self.vector, model)
            self.same(lambda v: v.__setitem__(cut, ["x", "y"]), self.vector, model)
            self.assertEqual(self.vector, model, cut)
            self.same(lambda v: v.__delitem__(cut), self.vector, model)
            self.assertEqual(self.vector, model, cut)

    def test_operators_do_what_they_do_to_lists(self):
        self.vector.extend("abc")
        for name in ("add", "mul", "eq", "ne", "le", "lt", "ge", "gt"):
            operation = getattr(operator, name)
            for other in ([], list("abc"), list("abd"), ["a"], 2, "abc", ("a", "b", "c")):
                self.same(lambda v: operation(v, other), self.vector, list("abc"))
                self.same(lambda v: operation(other, v), self.vector, list("abc"))
                self.same(lambda v: operation(v, other), self.vector.snapshot(), list("abc"))
        before = self.vector
        self.vector += "de"
        self.vector += self.vector
        self.vector *= 2
        self.assertIs(self.vector, before)
        self.assertEqual(self.vector, list("abcde") * 4)
        self.vector.sort(reverse=True)
        self.assertEqual(self.vector, sorted("abcde" * 4, reverse=True))
        self.assertEqual(list(reversed(self.vector)), sorted("abcde" * 4))
        self.assertEqual(self.vector.index("c", 10), 10)
        self.assertRaises(ValueError, self.vector.index, "c", 0, 5)

    def test_many_elements(self):
        model = [str(i) for i in range(40000)]
        self.vector.extend(model)
        self.assertEqual(self.vector, model)
        for index in (0, 31, 32, 33, 1023, 1024, 1025, 32767, 32768, 39999):
            self.vector[index] = model[index] = f"new {index}"
        del self.vector[100:20000]
        del model[100:20000]
        self.vector[50:50] = model[50:50] = ["between"] * 1000
        self.assertEqual(self.vector, model)
        self.assertEqual(self.reopen(holdfast.Vector), model)

    def test_is_a_mutable_sequence(self):
        self.assertIsInstance(self.vector, collections.abc.MutableSequence)
        self.assertIsInstance(self.vector.snapshot(), collections.abc.Sequence)
        self.assertNotIsInstance(self.vector.snapshot(), collections.abc.MutableSequence)
        self.assertRaises(TypeError, hash, self.vector)

    def test_other_types_are_refused(self):
        self.vector.append("a")
        for other in (1j, object, ("a", {1j}), bytearray(b"a")):
            self.assertNotIn(other, self.vector)
            self.assertEqual(self.vector.count(other), 0)
            self.assertRaises(TypeError, self.vector.append, other)
            self.assertRaises(TypeError, self.vector.insert, 0, other)
            self.assertRaises(TypeError, self.vector.extend, ["b", other])
            self.assertRaises(TypeError, self.vector.__setitem__, 0, other)
            self.assertRaises(TypeError, self.vector.__setitem__, slice(0, 1), [other])
        self.assertRaises(TypeError, lambda: self.vector["a"])
        self.assertEqual(self.vector, ["a"])

    def test_iteration_and_snapshots_see_one_version(self):
        self.vector.extend(str(i) for i in range(100))
        snapshot = self.vector.snapshot()
        for number, element in enumerate(self.vector):
            self.assertEqual(element, str(number))
            self.vector[number] = "x"
            self.vector.append("y")
        self.assertEqual(snapshot, [str(i) for i in range(100)])
        self.assertEqual(snapshot[-1:], ["99"])
        self.assertEqual(self.vector, ["x"] * 100 + ["y"] * 100)


if __name__ == "__main__":
    unittest.main()
