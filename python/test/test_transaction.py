# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Transactions over several structures of a pool.

Goal: all changes of a block are made or none, others see none before, and nobody waits for ever. Method: random
changes of all structures beside a model that takes part or is thrown away; threads and tasks; kills at any time.
"""
import asyncio
import contextvars
import copy
import queue
import threading
import unittest

import holdfast

from support import SEED, Pooled

MOVES = """
import sys, holdfast
pool = holdfast.open(sys.argv[1], durability=sys.argv[2])
accounts, days, jobs = holdfast.Map(pool), holdfast.SortedMap(pool), holdfast.Queue(pool)
log, names, stack = holdfast.Vector(pool), holdfast.Set(pool), holdfast.Stack(pool)
start = accounts.get("n", 0)
for n in range(start + 1, start + 100000):
    with pool.transaction():
        accounts["n"] = n
        accounts.add(n % 7, 1)
        accounts.add("all", 1)
        days[n] = {"n": [n]}
        jobs.put(n)
        if len(jobs) > 50:
            jobs.get()
        log.append(n)
        names.add(n)
        names.discard(n - 50)
        stack.push(n)
        days.erase(None, n - 50)
    if n % 3 == 0:
        try:
            with pool.transaction():
                for each in (accounts, days, jobs, log, names, stack):
                    each.clear()
                raise KeyError
        except KeyError:
            pass
    print(n, flush=True)
"""


class Failed(Exception):
    pass


class TransactionTest(Pooled):
    def setUp(self):
        super().setUp()
        kinds = (holdfast.Map, holdfast.SortedMap, holdfast.Set, holdfast.Vector, holdfast.Stack, holdfast.Queue)
        self.all = self.map, self.ordered, self.set, self.vector, self.stack, self.queue = [kind(self.pool) for kind in kinds]

    def contents(self):
        return [dict(self.map), list(self.ordered.items()), set(self.set), list(self.vector), list(self.stack), list(self.queue)]

    def change(self, number):
        source = self.random
        calls = [lambda: self.map.__setitem__(source.randrange(50), [number] * source.randrange(40)), lambda: self.map.pop(source.randrange(50), None),
                 lambda: self.map.add("sum", number), lambda: self.ordered.__setitem__(source.randrange(50), "x" * source.randrange(300)),
                 lambda: self.ordered.erase(*sorted((source.randrange(50), source.randrange(50)))), lambda: self.set.add(source.randrange(50)),
                 lambda: self.set.discard(source.randrange(50)), lambda: self.vector.append((number, "x" * source.randrange(300))),
                 lambda: self.vector.extend(range(source.randrange(80))), lambda: self.vector and self.vector.pop(source.randrange(len(self.vector))),
                 lambda: self.stack.push(number), lambda: self.stack and self.stack.pop(), lambda: self.queue.put(number),
                 lambda: self.queue and self.queue.get(), lambda: self.vector.__setitem__(slice(0, 9), range(5)), lambda: self.vector.reverse(),
                 lambda: self.map.update({i: number for i in range(source.randrange(80))})]
        source.choice(calls)()

    def test_all_or_nothing_of_random_changes(self):
        for round_number in range(150):
            before, copies = self.contents(), []
            fails = self.random.random() < 0.4
            try:
                with self.pool.transaction():
                    for i in range(self.random.randrange(12)):
                        self.change(i)
                        if self.random.random() < 0.2:  # versions of the draft stay as they are
                            copies.append((self.vector.snapshot(), iter(self.map), list(self.vector), list(self.map)))
                    inside = self.contents()
                    if fails:
                        raise Failed
            except Failed:
                pass
            for snapshot, keys, values, model in copies:
                self.assertEqual(list(snapshot), values, f"seed {SEED}")
                self.assertEqual(list(keys), model, f"seed {SEED}")
            self.assertEqual(self.contents(), before if fails else inside, f"seed {SEED}, round {round_number}")
        del copies, snapshot, keys
        self.pool.verify()
        after = self.contents()
        self.pool.close()
        self.pool = holdfast.open(self.path)
        self.all = self.map, self.ordered, self.set, self.vector, self.stack, self.queue = [type(each)(self.pool) for each in self.all]
        self.assertEqual(self.contents(), after)

    def test_it_sees_itself_and_others_do_not(self):
        self.map["a"], seen = 1, []
        other = holdfast.Map(self.pool)         # another handle of the same map
        with self.pool.transaction() as pool:
            self.assertIs(pool, self.pool)
            self.map["a"] = 2
            self.queue.put("x")
            self.assertEqual((other["a"], list(self.queue)), (2, ["x"]))
            other["b"] = 3
            self.assertEqual(self.map, {"a": 2, "b": 3})
            thread = threading.Thread(target=lambda: seen.append((dict(self.map), dict(other), len(self.queue))))
            thread.start()
            thread.join()
        self.assertEqual(seen, [({"a": 1}, {"a": 1}, 0)])
        self.assertEqual((self.map, list(self.queue)), ({"a": 2, "b": 3}, ["x"]))

    def test_it_is_one_commit(self):
        self.pool.settle()
        before = self.pool.stats()["sections"]
        with self.pool.transaction():
            for i in range(20):
                self.map[i] = i
        self.assertEqual(self.pool.stats()["sections"], before + 1)
        with self.pool.transaction():
            len(self.map)
        self.assertEqual(self.pool.stats()["sections"], before + 1)

    def test_one_within_another_is_a_part_of_it(self):
        with self.pool.transaction():
            self.map["a"] = 1
            with self.pool.transaction():
                self.map["b"] = 2
            self.assertEqual(self.map, {"a": 1, "b": 2})
        with self.assertRaisesRegex(RuntimeError, "within this one raised"), self.pool.transaction():
            self.map["a"] = 7
            with self.assertRaises(Failed), self.pool.transaction():
                raise Failed
        self.assertEqual(self.map, {"a": 1, "b": 2})
        used = self.pool.transaction()
        with used:
            pass
        with self.assertRaises(RuntimeError), used:
            self.fail("the block ran")

    def test_writers_of_other_threads_wait_and_lose_nothing(self):
        def work():
            for _ in range(60):
                with self.pool.transaction():
                    number = self.map.get("n", 0)
                    self.vector.append(number)
                    self.map["n"] = number + 1
                self.map.add("m", 1)
                with self.map.edit("list", []) as value:
                    value.append(1)

        threads = [threading.Thread(target=work) for _ in range(4)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        self.assertEqual((self.map["n"], self.map["m"], len(self.map["list"])), (240, 240, 240))
        self.assertEqual(self.vector, list(range(240)))

    def test_two_pools_at_once(self):
        with holdfast.open(self.folder / "other.hf") as pool:
            other = holdfast.Map(pool)
            with self.pool.transaction(), pool.transaction():
                self.map["a"] = other["a"] = 1
            with self.assertRaises(Failed), pool.transaction(), self.pool.transaction():
                self.map["a"] = other["a"] = 2
                raise Failed
            self.assertEqual((self.map, other), ({"a": 1}, {"a": 1}))

    def test_another_task_of_the_thread_is_refused_and_its_own_tasks_take_part(self):
        async def main():
            outside = contextvars.copy_context()
            with self.pool.transaction():
                self.map["a"] = 1
                with self.assertRaises(holdfast.Error) as refused:
                    outside.run(self.map.__setitem__, "b", 2)
                self.assertEqual(refused.exception.code, "in_use")
                self.assertIn("await", refused.exception.message)
                self.assertEqual(outside.run(dict, self.map), {})
                await asyncio.to_thread(self.map.__setitem__, "c", 3)

        asyncio.run(main())
        self.assertEqual(self.map, {"a": 1, "c": 3})

    def test_a_generator_that_is_given_up_gives_its_transaction_up(self):
        def work():
            with self.pool.transaction():
                self.map["a"] = 1
                yield

        given_up = contextvars.copy_context()
        generator = work()
        given_up.run(next, generator)
        del generator
        self.assertEqual(self.map, {})
        self.map["b"] = 2
        self.assertEqual(self.map, {"b": 2})

    def test_a_queue_wakes_its_readers_at_the_commit(self):
        got = []
        reader = threading.Thread(target=lambda: got.append(self.queue.get(timeout=60)))
        reader.start()
        with self.pool.transaction():
            self.queue.put("a")
            self.assertEqual(got, [])
        reader.join()
        self.assertEqual(got, ["a"])
        with self.assertRaises(queue.Empty), self.pool.transaction():
            self.queue.get(block=False)
        with self.assertRaisesRegex(RuntimeError, "while a transaction is open"), self.pool.transaction():
            self.queue.get()

    def test_a_full_pool_changes_nothing(self):
        with holdfast.open(self.folder / "small.hf", max_bytes=2 << 20) as pool:
            small, line = holdfast.Map(pool), holdfast.Queue(pool)
            small["a"] = "b"
            for swallowed in (False, True):
                with self.assertRaises(holdfast.Error) as full, pool.transaction():
                    line.put(1)
                    try:
                        for i in range(100):
                            small[i] = "x" * 100_000
                    except holdfast.Error as error:
                        self.assertEqual(error.code, "pool_full")
                        if not swallowed:
                            raise
                self.assertEqual(full.exception.code, "pool_full")
                self.assertEqual((small, len(line)), ({"a": "b"}, 0))
            with pool.transaction():
                small["a"] = "c"
            pool.verify()
            self.assertEqual(small, {"a": "c"})

    def test_a_pool_that_is_only_read(self):
        self.map["a"] = [1]
        self.pool.close()
        for options in ({"read_only": True}, {"read_only": True, "shared": True}):
            with holdfast.open(self.path, **options) as pool:
                read = holdfast.Map(pool)
                with pool.transaction():
                    self.assertEqual((read["a"], list(read.items())), ([1], [("a", [1])]))
                for swallowed in (False, True):
                    with self.assertRaises(holdfast.Error) as refused, pool.transaction():
                        try:
                            read["a"] = 2
                        except holdfast.Error:
                            if not swallowed:
                                raise
                    self.assertEqual(refused.exception.code, "permission", options)
                with self.assertRaises(holdfast.Error), read.edit("a") as value:
                    value.append(2)
                self.assertEqual(read["a"], [1])

    def test_a_pool_that_is_closed_within(self):
        with self.assertRaises(holdfast.Error) as closed, self.pool.transaction():
            self.map["a"] = 1
            self.pool.close()
        self.assertEqual(closed.exception.code, "closed")
        self.pool = holdfast.open(self.path)
        self.assertEqual(holdfast.Map(self.pool), {})

    def test_objects_take_no_part(self):
        class Counter(holdfast.Object):
            def __init__(self):
                self.count = 0

            @holdfast.instant
            def add(self):
                self.count += 1

        counter = Counter.open(self.pool, "counter")
        with self.pool.transaction():
            self.assertRaises(RuntimeError, counter.add)
            self.assertRaises(RuntimeError, Counter.open, self.pool, "another")
        counter.add()
        self.assertEqual(counter.count, 1)

    def test_new_structures_and_many(self):
        with self.assertRaises(Failed), self.pool.transaction():
            holdfast.Map(self.pool, "new")["a"] = 1
            raise Failed
        self.assertEqual(holdfast.Map(self.pool, "new"), {})
        many = [holdfast.Map(self.pool, f"map {i}") for i in range(60)]
        with self.assertRaises(holdfast.Error), self.pool.transaction():
            for each in many:
                each["a"] = 1
        self.assertEqual([each.get("a") for each in many], [None] * 60)
        with self.pool.transaction():
            for each in many[:50]:
                each["a"] = 1
        self.assertEqual(sum(each.get("a", 0) for each in many), 50)

    def test_kills(self):
        self.killed("process", 15)

    def test_kills_in_mode_power(self):
        self.killed("power", 5)

    def killed(self, durability, kills):
        path = self.folder / f"{durability}.hf"
        for kill in range(kills):
            said = int(self.last_said(MOVES, self.random.randrange(1, 60), path, durability) or 0)
            with self.subTest(seed=SEED, kill=kill), holdfast.open(path, durability=durability) as pool:
                accounts, days = holdfast.Map(pool), holdfast.SortedMap(pool)
                n = accounts["n"]
                self.assertIn(n, (said, said + 1))
                some = list(range(max(1, n - 49), n + 1))
                self.assertEqual([accounts["all"], sum(accounts.get(i, 0) for i in range(7))], [n, n])
                self.assertEqual(list(days)[-49:], some[-49:])
                self.assertEqual([list(holdfast.Queue(pool))[-49:], holdfast.Set(pool)], [some[-49:], set(some)])
                self.assertEqual([len(holdfast.Vector(pool)), holdfast.Vector(pool)[-1], holdfast.Stack(pool).peek()], [n, n, n])
                pool.verify()


if __name__ == "__main__":
    unittest.main()
