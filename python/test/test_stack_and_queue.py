# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Stack and Queue against a list and a deque; a queue's getters that wait, and are woken."""
import collections
import queue
import threading
import unittest

import holdfast
from support import SEED, Pooled, random_element


class StackTest(Pooled):
    def test_random_calls_do_what_they_do_to_a_list(self):
        stack, model = holdfast.Stack(self.pool), []
        for step in range(1500):
            element = random_element(self.random, 100)
            some = [random_element(self.random, 100) for _ in range(self.random.randrange(80))]
            ours, theirs = self.random.choice([
                (lambda: stack.push(element), lambda: model.append(element)),
                (lambda: stack.extend(some), lambda: model.extend(some)),
                (stack.pop, model.pop), (stack.pop, model.pop), (stack.peek, lambda: model[-1]),
                (lambda: [stack.pop() for _ in some], lambda: [model.pop() for _ in some])])
            self.assertEqual(self.outcome(lambda _: ours(), 0), self.outcome(lambda _: theirs(), 0),
                             f"seed {SEED}, step {step}")
            self.assertEqual((len(stack), bool(stack)), (len(model), bool(model)))
        stack.extend(model[:5] + ["end"])
        model.extend(model[:5] + ["end"])
        self.assertEqual(list(stack), model[::-1])
        self.assertEqual(list(self.reopen(holdfast.Stack)), model[::-1])

    def test_empty(self):
        stack = holdfast.Stack(self.pool)
        self.assertRaises(IndexError, stack.pop)
        self.assertRaises(IndexError, stack.peek)
        self.assertRaises(IndexError, stack.snapshot().peek)
        self.assertRaises(TypeError, stack.push, 1j)
        self.assertRaises(TypeError, stack.extend, ["a", 1j])
        self.assertEqual(list(stack), [])

    def test_snapshots_stay_as_they_were(self):
        stack = holdfast.Stack(self.pool)
        stack.extend("abc")
        snapshot, going = stack.snapshot(), iter(stack)
        stack.clear()
        stack.push("d")
        self.assertEqual((list(snapshot), snapshot.peek(), len(snapshot)), (list("cba"), "c", 3))
        self.assertEqual((list(going), list(stack)), (list("cba"), ["d"]))
        self.assertEqual(repr(stack), "Stack(['d'])")


class QueueTest(Pooled):
    def setUp(self):
        super().setUp()
        self.queue = holdfast.Queue(self.pool)

    def test_random_calls_do_what_they_do_to_a_deque(self):
        model = collections.deque()
        for step in range(1500):
            element = random_element(self.random, 100)
            some = [random_element(self.random, 100) for _ in range(self.random.randrange(80))]
            call = self.random.choice([
                lambda q: q.append(element), lambda q: q.extend(some), lambda q: q.popleft(),
                lambda q: [q.popleft() for _ in some], lambda q: len(q)])
            self.same(call, self.queue, model)
            if model:
                self.assertEqual(self.queue.peek(), model[0], f"seed {SEED}, step {step}")
        self.queue.extend(["x", "y"])
        model.extend(["x", "y"])
        self.assertEqual(list(self.queue), list(model))
        self.assertEqual(list(self.reopen(holdfast.Queue)), list(model))

    def test_has_the_methods_of_simple_queue(self):
        wanted = {each for each in dir(queue.SimpleQueue) if not each.startswith("_")}
        self.assertLessEqual(wanted, set(dir(self.queue)))
        self.queue.put("a", False)
        self.queue.put_nowait(b"b")
        self.assertEqual((self.queue.qsize(), self.queue.empty()), (2, False))
        self.assertEqual((self.queue.get(), self.queue.get_nowait()), ("a", b"b"))
        self.assertTrue(self.queue.empty())
        self.assertRaises(queue.Empty, self.queue.get_nowait)
        self.assertRaises(queue.Empty, self.queue.get, False)
        self.assertRaises(queue.Empty, self.queue.get, timeout=0.01)
        self.assertRaises(ValueError, self.queue.get, timeout=-1)
        self.assertRaises(IndexError, self.queue.peek)
        self.assertRaises(IndexError, self.queue.popleft)
        self.assertRaises(TypeError, self.queue.put, 1j)

    def test_getters_wait_and_each_element_is_taken_once(self):
        taken = [[] for _ in range(3)]

        def getter(mine):
            other = holdfast.Queue(self.pool)       # waiting is for the queue, not for the handle
            while (element := other.get()) != "end":
                mine.append(element)

        threads = [threading.Thread(target=getter, args=(mine,)) for mine in taken]
        for thread in threads:
            thread.start()
        for i in range(500):
            self.queue.put(str(i))
            if i % 50 == 0:
                self.queue.extend(f"{i} {j}" for j in range(100))
        self.queue.extend(["end"] * 3)
        for thread in threads:
            thread.join(60)
            self.assertFalse(thread.is_alive())
        expected = {str(i) for i in range(500)} | {f"{i} {j}" for i in range(0, 500, 50)
                                                   for j in range(100)}
        found = [element for mine in taken for element in mine]
        self.assertEqual(len(found), len(expected))
        self.assertEqual(set(found), expected)

    def waiting(self, work):
        """A thread that waits at the queue."""
        thread = threading.Thread(target=work)
        thread.start()
        while not self.queue._arrivals._waiting_count:
            pass
        return thread

    def test_each_way_to_add_wakes_who_waits(self):
        for add in (self.queue.put, self.queue.put_nowait, self.queue.append,
                    lambda element: self.queue.extend([element])):
            taken = []
            thread = self.waiting(lambda: taken.append(self.queue.get(timeout=60)))
            add("a")
            thread.join(10)
            self.assertEqual(taken, ["a"])

    def test_closing_wakes_those_who_wait(self):
        raised = []

        def getter():
            try:
                self.queue.get()
            except holdfast.Error as error:
                raised.append(error.code)

        thread = self.waiting(getter)
        self.pool.close()
        thread.join(60)
        self.assertEqual(raised, ["closed"])

    def test_snapshots_stay_as_they_were(self):
        self.queue.extend("abc")
        snapshot = self.queue.snapshot()
        self.queue.clear()
        self.assertEqual((list(snapshot), snapshot.peek(), len(snapshot)), (list("abc"), "a", 3))
        self.assertEqual(list(self.queue), [])


if __name__ == "__main__":
    unittest.main()
