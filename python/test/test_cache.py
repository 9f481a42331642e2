# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Cache: a bounded, durable mapping that forgets.

Goal: it never has more than max_bytes, evicts what was not used for longest, and its four structures agree after every kill.
Method: random calls beside a model in order of use, with a clock of the test's own; kills at any time.
"""
import collections
import threading
import unittest

import holdfast
from holdfast import _core

from support import SEED, Pooled

FILLING = """
import sys, holdfast
pool = holdfast.open(sys.argv[1], durability=sys.argv[2])
cache = holdfast.Cache(pool, max_bytes=4000, ttl=3600, timer=lambda: 1000.0)
start = cache.get("n", 0)
for n in range(start + 1, start + 100000):
    cache.set("n", n, expire=n)
    cache.set(n % 97, ["x" * (n % 300)], expire=None if n % 2 else -1)
    cache.get(n * 7 % 97)
    if n % 10 == 0:
        cache.pop(n % 89, None)
    print(n, flush=True)
"""


class Clock:
    def __init__(self):
        self.now = 1000.0

    def __call__(self):
        return self.now


class CacheTest(Pooled):
    def setUp(self):
        super().setUp()
        self.clock = Clock()
        self.cache = holdfast.Cache(self.pool, max_bytes=2000, timer=self.clock)

    def agree(self, pool, cache):
        """The four structures, and the number of bytes."""
        places, values = dict(cache._places), dict(cache._values)
        self.assertEqual(set(places), set(values))
        uses = dict(cache._uses)
        total, following = uses.pop(None, (0, 0))
        self.assertEqual(uses, {use: key for key, (use, _, _, _) in places.items()})
        self.assertEqual(dict(cache._ends), {(expires, setting): key for key, (_, setting, expires, _) in places.items() if expires is not None})
        self.assertEqual(total, sum(size for _, _, _, size in places.values()))
        self.assertTrue(all(number < following for number in uses))
        self.assertEqual({key: expires for key, (_, expires) in values.items()}, {key: expires for key, (_, _, expires, _) in places.items()})
        self.assertLessEqual(total, cache.max_bytes)
        pool.verify()

    def test_random_calls_beside_a_model(self):
        model = collections.OrderedDict()  # key: (value, expires, bytes), by use
        def live(key):
            return key in model and (model[key][1] is None or model[key][1] > self.clock.now)

        def put(key, value, expire):
            size = len(_core.encode(key, True)) + len(_core.encode(value))
            model.pop(key, None)
            if sum(each[2] for each in model.values()) + size > 2000:
                for old in [old for old in model if not live(old)]:
                    del model[old]
                while sum(each[2] for each in model.values()) + size > 2000:
                    model.popitem(last=False)
            model[key] = (value, None if expire is None else self.clock.now + expire, size)

        for step in range(2500):
            key, value = self.random.randrange(30), "x" * self.random.randrange(400)
            call = self.random.randrange(7)
            if call < 3:
                expire = self.random.choice((None, None, 5, 50))
                self.cache.set(key, value, expire)
                put(key, value, expire)
            elif call < 5:
                expected = model[key][0] if live(key) else None
                if expected is not None:
                    model.move_to_end(key)
                self.assertEqual(self.cache.get(key), expected, f"seed {SEED}, step {step}")
            elif call == 5:
                expected = model.pop(key)[0] if live(key) else None
                model.pop(key, None)
                self.assertEqual(self.cache.pop(key, None), expected)
            else:
                self.clock.now += self.random.choice((0, 1, 10))
            if step % 100 == 0:
                self.assertEqual(list(self.cache), [each for each in model if live(each)], f"seed {SEED}, step {step}")
                self.assertEqual(len(self.cache), sum(map(live, model)))
                self.assertEqual(self.cache.currsize, sum(each[2] for each in model.values()))
                self.agree(self.pool, self.cache)
        self.assertGreater(self.cache.stats()["evictions"], 50)
        self.assertGreater(self.cache.stats()["expirations"], 50)

    def test_it_is_a_mutable_mapping(self):
        cache = self.cache
        cache["a"] = [1]
        cache.update({"b": 2}, c=3)
        self.assertEqual(list(cache.items()), [("a", [1]), ("b", 2), ("c", 3)])
        self.assertIn("a", cache)
        self.assertRaises(KeyError, lambda: cache["d"])
        self.assertRaises(KeyError, cache.pop, "d")
        self.assertEqual((cache.setdefault("b", 7), cache.setdefault("d", 7)), (2, 7))
        del cache["d"]
        with self.assertRaisesRegex(TypeError, "frozen"):
            cache["a"].append(2)
        self.assertEqual(list(cache), ["c", "b", "a"])    # by use: items() and the others read each of them
        self.assertEqual(cache.popitem(), ("c", 3))
        self.assertEqual((cache.maxsize, bool(cache), len(cache)), (2000, True, 2))
        self.assertEqual(cache.clear(), 2)
        self.assertEqual((list(cache), cache.currsize), ([], 0))
        self.assertRaises(KeyError, cache.popitem)
        self.agree(self.pool, cache)

    def test_diskcaches_calls(self):
        cache = self.cache
        self.assertTrue(cache.add("a", 1, expire=10))
        self.assertFalse(cache.add("a", 2))
        self.assertEqual((cache.incr("a"), cache.incr("a", 5), cache.decr("b"), cache.incr("c", 2, default=40)), (2, 7, -1, 42))
        self.clock.now += 10
        self.assertEqual((cache.get("a"), cache.get("a", 5), "a" in cache), (None, 5, False))
        self.assertTrue(cache.add("a", 3, expire=10))
        self.assertTrue(cache.touch("a", expire=100))
        self.assertFalse(cache.touch("z"))
        self.clock.now += 50
        self.assertEqual((cache["a"], cache.expire()), (3, 0))
        self.clock.now += 50
        self.assertEqual((cache.expire(), cache.delete("a"), cache.delete("b")), (1, False, True))
        self.assertEqual(cache.evict(), 1)
        stats = cache.stats()
        self.assertEqual([stats[name] for name in ("hits", "misses", "evictions", "expirations", "count", "bytes")], [1, 2, 1, 1, 0, 0])
        self.agree(self.pool, cache)

    def test_the_default_time_to_live(self):
        cache = holdfast.Cache(self.pool, "short", max_bytes=1000, ttl=5, timer=self.clock)
        cache["a"] = 1
        cache.set("b", 2, expire=50)
        self.clock.now += 5
        self.assertEqual((cache.get("a"), cache.get("b"), len(cache)), (None, 2, 1))

    def test_what_is_too_large_or_no_size_is_refused(self):
        self.cache["a"] = 1
        with self.assertRaisesRegex(ValueError, "value too large"):
            self.cache["b"] = "x" * 2000
        self.assertEqual(dict(self.cache), {"a": 1})
        for wrong in (0, -1, 1.5, None, True):
            self.assertRaises(ValueError, holdfast.Cache, self.pool, max_bytes=wrong)

    def test_a_smaller_bound_evicts_with_the_next_value(self):
        for i in range(20):
            self.cache[i] = "x" * 50
        small = holdfast.Cache(self.pool, max_bytes=300, timer=self.clock)
        small["new"] = 1
        self.assertLessEqual(small.currsize, 300)
        self.assertIn("new", small)
        self.agree(self.pool, small)

    def test_the_order_of_use_survives_a_close(self):
        for i in range(5):
            self.cache[i] = i
        self.cache.get(0)
        self.assertEqual(list(self.cache), [1, 2, 3, 4, 0])
        self.pool.close()
        self.pool = holdfast.open(self.path)
        self.assertEqual(list(holdfast.Cache(self.pool, max_bytes=2000)), [1, 2, 3, 4, 0])

    def test_many_reads_store_their_order_at_times(self):
        self.cache.update({i: i for i in range(3)})
        before = self.pool.stats()["sections"]
        for _ in range(2000):
            self.cache.get(1)
        self.assertEqual(self.pool.stats()["sections"], before)
        self.assertEqual(list(self.cache), [0, 2, 1])

    def test_threads_and_transactions(self):
        def work(number):
            for i in range(40):
                self.cache.incr("n")
                self.cache[number, i % 5] = "x" * 60
                self.cache.get((number, i % 3))

        threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        self.assertEqual(self.cache["n"], 160)
        self.agree(self.pool, self.cache)
        with self.assertRaises(KeyError), self.pool.transaction():
            self.cache.clear()
            self.cache["n"] = 0
            raise KeyError
        self.assertEqual(self.cache["n"], 160)
        self.agree(self.pool, self.cache)

    def test_kills(self):
        for durability, kills in (("process", 8), ("power", 3)):
            path = self.folder / f"{durability}.hf"
            for kill in range(kills):
                said = int(self.last_said(FILLING, self.random.randrange(1, 80), path, durability) or 0)
                with self.subTest(seed=SEED, kill=kill), holdfast.open(path, durability=durability) as pool:
                    cache = holdfast.Cache(pool, max_bytes=4000, timer=lambda: 1000.0)
                    self.assertIn(cache["n"], (said, said + 1))
                    self.agree(pool, cache)


if __name__ == "__main__":
    unittest.main()
