# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What is read is frozen, and what is changed is stored.

Goal: no change is forgotten in silence. Method: every call of list, dict and set that changes them, on what each way of
reading gives; edit() with changes, exceptions and other writers; add() by threads.
"""
import bisect
import copy
import heapq
import json
import operator
import pickle
import random
import threading
import unittest

import holdfast

from support import SEED, Pooled

LIST_CALLS = [lambda v: v.append(1), lambda v: v.extend([1]), lambda v: v.insert(0, 1), lambda v: v.pop(), lambda v: v.remove(1),
              lambda v: v.clear(), lambda v: v.sort(), lambda v: v.reverse(), lambda v: v.__setitem__(0, 2), lambda v: v.__delitem__(0),
              lambda v: v.__iadd__([1]), lambda v: v.__imul__(2), lambda v: v.__setitem__(slice(0, 1), [])]
DICT_CALLS = [lambda v: v.__setitem__("a", 1), lambda v: v.__delitem__("a"), lambda v: v.pop("a"), lambda v: v.popitem(), lambda v: v.clear(),
              lambda v: v.update(b=1), lambda v: v.setdefault("b", 1), lambda v: v.__ior__({"b": 1})]
SET_CALLS = [lambda v: v.add(2), lambda v: v.discard(1), lambda v: v.remove(1), lambda v: v.pop(), lambda v: v.clear(), lambda v: v.update({2}),
             lambda v: v.__ior__({2}), lambda v: v.__iand__({2}), lambda v: v.__isub__({1}), lambda v: v.__ixor__({1}),
             lambda v: v.intersection_update({2}), lambda v: v.difference_update({1}), lambda v: v.symmetric_difference_update({1})]
VALUE = {"list": [1], "dict": {"a": 1}, "set": {1}, "tuple": ([1],)}


class FrozenTest(Pooled):
    def test_every_call_that_changes_has_been_thought_of(self):
        """Whatever list, dict and set have that immutable types have not."""
        for plain, frozen, calls in ((list, holdfast.FrozenList, LIST_CALLS), (dict, holdfast.FrozenDict, DICT_CALLS),
                                     (set, holdfast.FrozenSet, SET_CALLS)):
            reading = {list: tuple, set: frozenset}.get(plain, type(type.__dict__))  # of dict: a mappingproxy
            changing = {name for name in dir(plain) if name not in dir(reading)}
            changing -= {"copy", "fromkeys", "__reversed__", "__getstate__", "__init__"}
            missing = {name for name in changing if getattr(frozen, name) is getattr(plain, name)}
            self.assertEqual(missing, set())

    def refuses(self, read):
        for name, calls in (("list", LIST_CALLS), ("dict", DICT_CALLS), ("set", SET_CALLS)):
            for call in calls:
                with self.assertRaisesRegex(TypeError, r"frozen.*m\.edit\(key\)"):
                    call(read()[name])
        with self.assertRaisesRegex(TypeError, "frozen"):
            read()["tuple"][0].append(1)
        with self.assertRaisesRegex(TypeError, "frozen"):
            read()["new"] = 1
        self.assertEqual(read(), VALUE)

    def test_whatever_way_it_is_read(self):
        kept, vector, stack, line = (kind(self.pool) for kind in (holdfast.Map, holdfast.Vector, holdfast.Stack, holdfast.Queue))
        ordered = holdfast.SortedMap(self.pool)
        kept["a"] = ordered["a"] = VALUE
        for each in (vector, stack, line):
            each.extend([VALUE])
        with kept.snapshot() as then, vector.snapshot() as line_then, ordered.snapshot() as ordered_then:
            for read in (lambda: kept["a"], lambda: kept.get("a"), lambda: next(iter(kept.values())), lambda: next(iter(kept.items()))[1],
                         lambda: kept.copy()["a"], lambda: kept.setdefault("a", 1), lambda: then["a"], lambda: vector[0], lambda: vector[:][0],
                         lambda: next(iter(vector)), lambda: line_then[-1], stack.peek, line.peek, lambda: next(iter(line)),
                         lambda: ordered["a"], lambda: next(ordered.range())[1], lambda: ordered.first()[1], lambda: ordered_then["a"]):
                self.refuses(read)

    def test_c_functions_do_not_change_it_unseen(self):
        kept = holdfast.Map(self.pool)
        kept["a"] = {"list": [3, 1], "set": {1}}
        line, some = kept["a"]["list"], kept["a"]["set"]
        for call in (lambda: list.append(line, 1), lambda: list.sort(line), lambda: heapq.heappush(line, 1), lambda: heapq.heapify(line),
                     lambda: bisect.insort(line, 1), lambda: random.Random(SEED).shuffle(line), lambda: operator.setitem(line, 0, 1),
                     lambda: operator.iadd(line, [1]), lambda: set.add(some, 2), lambda: operator.ior(some, {2})):
            self.assertRaises(TypeError, call)
        self.assertEqual((line, some, kept["a"]), ([3, 1], {1}, {"list": [3, 1], "set": {1}}))

    def test_what_reads_a_list_or_a_set_reads_a_frozen_one(self):
        kept = holdfast.Map(self.pool)
        model = [3, 1, [2], 3]
        kept["a"], kept["set"] = model, {1, 2}
        read, some = kept["a"], kept["set"]
        for call in (len, list, repr, str, lambda v: v[0], lambda v: v[-1], lambda v: v[1:3], lambda v: v[::-1], lambda v: v + [4], lambda v: [4] + v,
                     lambda v: v * 2, lambda v: 2 * v, lambda v: v.index([2]), lambda v: v.count(3), lambda v: 3 in v, lambda v: list(reversed(v)),
                     lambda v: v == model, lambda v: model == v, lambda v: v != model, lambda v: v == [], lambda v: v == tuple(model),
                     lambda v: tuple(model) == v, lambda v: v != tuple(model), lambda v: tuple(model) != v, lambda v: v > [3], lambda v: [3] < v,
                     lambda v: v <= model, lambda v: v.copy(), lambda v: [*v], lambda v: isinstance(v, list), lambda v: v[0:1] is v,
                     lambda v: v < (1,), lambda v: (1,) < v, lambda v: v + (1,), hash, lambda v: v[9], lambda v: v["a"], json.dumps):
            self.same(call, read, model)
        for call in (len, sorted, repr, lambda v: v | {3}, lambda v: {3} | v, lambda v: v & {1}, lambda v: {1} & v, lambda v: v - {1}, lambda v: {1, 3} - v,
                     lambda v: v ^ {1}, lambda v: {3} ^ v, lambda v: v.union([3], [4]), lambda v: v.intersection([1]), lambda v: v.difference([1]),
                     lambda v: v.symmetric_difference([3]), lambda v: v.copy(), lambda v: v <= {1, 2, 3}, lambda v: {1} < v, lambda v: v == {1, 2},
                     lambda v: v.issubset([1, 2]), lambda v: v.isdisjoint([3]), lambda v: 1 in v, lambda v: isinstance(v, set), lambda v: v | [1],
                     lambda v: v in {frozenset({1, 2})}, lambda v: v in {frozenset({1})}, lambda v: v in [frozenset({1, 2})]):
            self.same(call, some, {1, 2})

    def test_asked_for_as_the_guide_says(self):
        kept = holdfast.Map(self.pool)
        kept["a"] = {"list": [1], "set": {1, 2}}
        read = kept["a"]
        self.assertTrue(isinstance(read["list"], tuple) and isinstance(read["list"], list))
        self.assertEqual(hash(read["set"]), hash(frozenset({1, 2})))
        self.assertEqual({read["set"]: 1}[frozenset({2, 1})], 1)
        with self.assertRaisesRegex(TypeError, "frozen"):
            type(read).fromkeys("a")
        with self.assertRaisesRegex(TypeError, "which would come back as a set"):
            kept[read["set"]] = 1        # as a set

    def test_setdefault_of_a_new_key_gives_no_list_to_lose_things_in(self):
        kept = holdfast.Map(self.pool)
        mine = []
        with self.assertRaisesRegex(TypeError, "frozen"):
            kept.setdefault("a", mine).append(1)
        self.assertEqual((kept["a"], mine), ([], []))

    def test_what_was_taken_out_is_the_callers(self):
        kept, vector, stack, line = (kind(self.pool) for kind in (holdfast.Map, holdfast.Vector, holdfast.Stack, holdfast.Queue))
        kept.update(a=[1], b=[1])
        for each in (vector, stack, line):
            each.extend([[1]])
        for taken in (kept.pop("a"), kept.popitem()[1], vector.pop(), stack.pop(), line.get()):
            taken.append(2)
            self.assertEqual((type(taken), taken), (list, [1, 2]))

    def test_copies_are_of_the_built_in_types_and_all_else_is_as_with_them(self):
        kept = holdfast.Map(self.pool)
        kept["a"] = VALUE
        read = kept["a"]
        for made in (copy.deepcopy(read), pickle.loads(pickle.dumps(read))):
            self.assertEqual([type(made), *map(type, (made["list"], made["dict"], made["set"], made["tuple"][0]))], [dict, list, dict, set, list])
            made["list"].append(2)
        self.assertIs(type(copy.copy(read)), dict)
        self.assertIs(type(read["list"].copy()), list)
        self.assertIs(type(read["list"] + [2]), list)
        self.assertEqual(json.dumps(read["list"]), "[1]")
        self.assertEqual(repr(read["set"]), "{1}")
        self.assertTrue(isinstance(read, dict) and isinstance(read["list"], list) and isinstance(read["set"], set))
        kept["b"] = read                 # stored again as what it was
        self.assertEqual(kept["b"], VALUE)
        kept.pop("b")["set"].add(2)


class EditTest(Pooled):
    def setUp(self):
        super().setUp()
        self.map = holdfast.Map(self.pool)

    def test_a_change_is_stored_once_at_the_end(self):
        self.map["a"] = {"n": [1]}
        before = self.pool.stats()["sections"]
        with self.map.edit("a") as value:
            for i in range(5):
                value["n"].append(i)
                self.assertEqual(self.map["a"], {"n": [1]})
        self.assertEqual(self.map["a"], {"n": [1, 0, 1, 2, 3, 4]})
        self.assertEqual(self.pool.stats()["sections"], before + 1)
        with self.map.edit("a"):
            pass
        self.assertEqual(self.pool.stats()["sections"], before + 1)

    def test_nothing_is_stored_if_the_block_raises(self):
        self.map["a"] = [1]
        with self.assertRaises(ZeroDivisionError), self.map.edit("a") as value:
            value.append(1 / (1 - len(value)))
        with self.assertRaises(TypeError), self.map.edit("a") as value:
            value.append(object())
        self.assertEqual(self.map["a"], [1])

    def test_a_value_that_does_not_change_is_refused(self):
        self.map.update(n=1, s="text", t=(1, 2), u=(1, [2]))
        for key in "nst":
            with self.assertRaisesRegex(TypeError, r"add\(key, amount\)"), self.map.edit(key):
                self.fail("the block ran")
        with self.map.edit("u") as value:
            value[1].append(3)
        self.assertEqual(self.map["u"], (1, [2, 3]))

    def test_a_missing_key(self):
        with self.assertRaises(KeyError), self.map.edit("a"):
            self.fail("the block ran")
        mine = []
        for i in range(2):
            with self.map.edit("a", mine) as value:
                value.append(i)
        self.assertEqual((self.map["a"], mine), ([0, 1], []))

    def test_other_writers_are_told_of(self):
        self.map["a"] = [1]
        with self.assertRaises(holdfast.Error) as conflict, self.map.edit("a") as value:
            value.append(2)
            self.map["a"] = [3]
        self.assertEqual(conflict.exception.code, "conflict")
        self.assertEqual(self.map["a"], [3])
        with self.assertRaises(holdfast.Error), self.map.edit("a") as value:
            value.append(2)
            del self.map["a"]
        self.assertNotIn("a", self.map)

    def test_of_a_vector_and_a_sorted_map(self):
        vector, ordered = holdfast.Vector(self.pool), holdfast.SortedMap(self.pool)
        vector.extend([[1], [2]])
        with vector.edit(-1) as value:
            value.append(3)
        with self.assertRaises(IndexError), vector.edit(2):
            self.fail("the block ran")
        ordered[1] = [1]
        with ordered.edit(1) as value:
            value.append(2)
        self.assertEqual((vector[:], ordered[1]), ([[1], [2, 3]], [1, 2]))

    def test_threads_lose_no_change(self):
        self.map.update(list=[], n=0)
        ordered = holdfast.SortedMap(self.pool)

        def work():
            for i in range(100):
                with self.map.edit("list") as value:
                    value.append(i)
                self.map.add("n", 1)
                ordered.add("n", 0.5, default=10.0)

        threads = [threading.Thread(target=work) for _ in range(4)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        self.assertEqual(sorted(self.map["list"]), sorted([*range(100)] * 4))
        self.assertEqual((self.map["n"], ordered["n"]), (400, 210.0))

    def test_add_is_plus(self):
        self.assertEqual(self.map.add("n", 2), 2)
        self.assertEqual(self.map.add("n", -0.5), 1.5)
        self.assertEqual(self.map.add("s", "a", default="b"), "ba")
        self.assertEqual(self.map.add("l", [1], []), [1])
        with self.assertRaisesRegex(TypeError, "frozen"):
            self.map.add("l", [2]).append(3)
        self.assertRaises(TypeError, self.map.add, "s", 1)
        self.assertEqual(self.map, {"n": 1.5, "s": "ba", "l": [1, 2]})

    def test_other_code_runs_between_an_adds_two_looks(self):
        class Meddler(int):
            def __radd__(_, other):
                if other == 1:
                    self.map["n"] = 10
                return other + 5

        self.map["n"] = 1
        self.assertEqual(self.map.add("n", Meddler()), 15)
        self.assertEqual(self.map["n"], 15)


if __name__ == "__main__":
    unittest.main()
