# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Objects whose calls are logged.

Goal: an object is, after any end of its process, what its committed calls leave; and what would make recovery arrive
elsewhere is refused or undone. Method: children that end without closing, or are killed, beside the same calls in memory.
"""
import abc
import collections
import functools
import os
import pathlib
import signal
import subprocess
import sys
import threading
import traceback
import types
import typing
import unittest

import holdfast
from support import SEED, Pooled

SOURCE = pathlib.Path(os.environ.get("HOLDFAST_SOURCE", pathlib.Path(__file__).parents[2]))


def counter(**changed):
    """A class of this name, as another version of the program may have it."""
    class Counter(holdfast.Object):
        def __init__(self, start=0):
            self.n, self.log, self.names = start, [], {}

        @holdfast.deferrable
        def add(self, by):
            self.n += by
            self.log.append(by)

        @holdfast.instant
        def take(self, by):
            self.log.append(-by)
            if by > self.n:
                raise ValueError(f"{by} of {self.n}")
            self.n -= by
            return self.n

        @holdfast.deferrable
        def keep(self, name, value=None):
            self.names[name] = value

        @holdfast.instant
        def everything(self):
            return self.names

        @holdfast.deferrable
        def add_twice(self, by):
            self.add(by)
            self.add(by)

        def total(self):
            return self.n

        def shown(self):
            return (self.n, self.log, self.names)

    Counter.__qualname__ = "Counter"
    for name, value in changed.items():
        setattr(Counter, name, value)
    return Counter


Counter = counter()


class Between:
    """For sys.settrace: does something behind so many lines of the package, in the middle of whatever they do."""

    def __init__(self, lines, do, *files):
        self.left, self._do, self._files = lines, do, files or (holdfast._object.__file__,)

    def __call__(self, frame, event, argument):
        if frame.f_code.co_filename not in self._files:
            return None
        if event == "line":
            self.left -= 1
            if self.left == 0:
                sys.settrace(None)
                self._do()
        return self


class ObjectTest(Pooled):
    def in_child(self, work, cls=Counter):
        """Runs work(object) in a process that ends without closing anything."""
        self.pool.close()
        child = os.fork()
        if child == 0:
            try:
                work(cls.open(self.path, "c"))
                os._exit(0)
            except BaseException as error:
                print(repr(error), file=sys.stderr)
                os._exit(1)
        self.assertEqual(os.waitpid(child, 0)[1], 0)

    def again(self, cls=Counter):
        self.pool.close()
        self.pool = holdfast.open(self.path)
        return cls.open(self.pool, "c")

    def test_committed_calls_are_made_again_and_others_are_not(self):
        def work(c):
            c.add(3)
            c.add_twice(5)
            self.assertEqual(c.take(2), 11)
            c.add(100)
        self.in_child(work)
        self.assertEqual(self.again().shown(), (11, [3, 5, 5, -2], {}))
        self.in_child(lambda c: (c.add(4), c.sync(), c.add(1)))
        self.assertEqual(self.again().total(), 15)
        self.in_child(lambda c: (c.add(1), c.checkpoint(), c.add(7)))
        self.assertEqual(self.again().total(), 16)

    def test_a_close_keeps_what_is_deferred(self):
        c = Counter.open(self.pool, "c", 9)
        c.add(1)
        c = self.again()
        self.assertEqual(c.total(), 10)
        self.assertIs(Counter.open(self.pool, "c"), c)
        self.assertIsNot(Counter.open(self.pool, "other"), c)
        with self.assertRaisesRegex(holdfast.Error, "is open, of class Counter"):
            counter().open(self.pool, "c")
        self.pool.close()
        with self.assertRaisesRegex(holdfast.Error, "closed"):
            c.add(1)

    def test_settling_the_pool_commits_what_is_deferred(self):
        self.in_child(lambda c: (c.add(1), c._map.pool.settle(), c.add(7)))
        self.assertEqual(self.again().total(), 1)

    def test_an_exception_is_part_of_the_call(self):
        def work(c):
            c.add(1)
            with self.assertRaisesRegex(ValueError, "5 of 1"):
                c.take(5)
            c.sync()
        self.in_child(work)
        self.assertEqual(self.again().shown(), (1, [1, -5], {}))

    def test_a_call_of_another_object_is_refused(self):
        class Pair(holdfast.Object):
            def __init__(self):
                self.n = 0

            @holdfast.instant
            def hand_on(self, to, by):
                self.n += by
                Counter.open(Pair.pool, to).add(by)

        Pair.__qualname__ = "Pair"
        Pair.pool = self.pool
        pair, other = Pair.open(self.pool, "p"), Counter.open(self.pool, "c")
        with self.assertRaisesRegex(TypeError, "none of another object"):
            pair.hand_on("c", 3)
        with self.assertRaisesRegex(TypeError, "none of another object"):
            pair.once("me", 1).hand_on("c", 3)
        other.add(4)
        self.assertEqual((pair.n, other.total()), (6, 4))
        other = self.again()
        Pair.pool = self.pool
        self.assertEqual((Pair.open(self.pool, "p").n, other.total()), (6, 4))

    def test_nothing_is_shared_with_the_caller(self):
        def work(c):
            mine = [1, 2]
            c.keep("mine", value=mine)
            mine.append(3)
            c.everything()["mine"].append(4)
            c.keep("b", {"z": 1, "a": 2})
            self.assertEqual(c.names["mine"], [1, 2])
            self.assertEqual(list(c.names["b"]), ["a", "z"])  # as decoding has it
            c.sync()
        self.in_child(work)
        self.assertEqual(self.again().names, {"mine": [1, 2], "b": {"a": 2, "z": 1}})

    def test_attributes_are_set_by_logged_methods_alone(self):
        c = Counter.open(self.pool, "c")
        with self.assertRaisesRegex(AttributeError, "outside of a @deferrable"):
            c.n = 5
        with self.assertRaisesRegex(AttributeError, "outside of a @deferrable"):
            del c.n
        with self.assertRaisesRegex(TypeError, r"Counter.open\(file, name\)"):
            Counter()
        with self.assertRaises(TypeError):
            c.add(object())
        self.assertEqual(c.shown(), (0, [], {}))

    def test_many_groups_go_round(self):
        def work(c):
            for n in range(5000):
                c.add(n % 7)
                if n % 2 == 0:
                    c.take(0)
            for n in range(9000):
                c.add(1)
        self.in_child(work)
        n = self.again().total()
        self.assertGreaterEqual(n, sum(i % 7 for i in range(5000)) + 2 * 4096 - 1)
        self.assertEqual(n, sum(self.again().log))

    def test_what_cannot_be_stored_is_told_and_loses_nothing(self):
        class Odd(holdfast.Object):
            @holdfast.instant
            def put(self, odd):
                self.value = {1j} if odd else [1]
                self.times = getattr(self, "times", 0) + 1

        odd = Odd.open(self.pool, "odd")
        for _ in range(1024):  # committed, each of them, while there is room for groups
            odd.put(True)
        with self.assertRaisesRegex(TypeError, "cannot be stored"):
            odd.put(True)
        odd.put(False)  # and now they can be stored
        self.assertEqual(odd.times, 1026)
        odd.put(True)
        with self.assertRaisesRegex(TypeError, "object 'odd': its attributes cannot be stored"):
            odd.checkpoint()
        self.pool.close()
        self.pool = holdfast.open(self.path)
        with self.assertRaisesRegex(TypeError, "cannot be stored"):  # the log makes it so again
            Odd.open(self.pool, "odd")

    def test_another_class_or_version_is_refused_or_upgraded(self):
        self.in_child(lambda c: (c.add(1), c.sync()))
        self.pool = holdfast.open(self.path)
        with self.assertRaises(holdfast.Error) as refused:
            counter(version=2).open(self.pool, "c")
        self.assertEqual(refused.exception.code, "function_changed")
        with self.assertRaises(holdfast.Error) as refused:
            counter(__qualname__="Other").open(self.pool, "c")
        self.assertEqual(refused.exception.code, "wrong_layout")
        self.assertEqual(Counter.open(self.pool, "c").total(), 1)
        self.pool.close()
        self.pool = holdfast.open(self.path)
        with self.assertRaisesRegex(holdfast.Error, "no upgrade"):
            counter(version=2).open(self.pool, "c")
        newer = counter(version=2, upgrade=staticmethod(lambda version, old: old | {"n": old["n"] * 10 + version}))
        self.assertEqual(newer.open(self.pool, "c").total(), 11)
        self.assertEqual(self.again(newer).total(), 11)

    def test_a_method_that_is_gone_or_does_something_else_is_refused(self):
        self.in_child(lambda c: (c.add(1), c.sync()))
        self.pool = holdfast.open(self.path)
        def add(self, by):
            raise KeyError(by)
        for method, said in (None, "'add', which is no logged method"), (Counter.total, "no logged method"), \
                (holdfast.deferrable(add), "returned when it was called, and now raises KeyError"):
            with self.subTest(said), self.assertRaisesRegex(holdfast.Error, said):
                counter(add=method).open(self.pool, "c")
        self.assertEqual(Counter.open(self.pool, "c").total(), 1)  # nothing has changed

    def test_a_call_of_a_caller_is_made_once(self):
        def work(c):
            c.once("a", 1).add(5)
            c.once("a", 1).add(5)
            self.assertEqual(c.once("a", 2).take(1), 4)
            c.once(("b", 7), 1).keep("x", [1])
            with self.assertRaisesRegex(ValueError, "50 of 4"):
                c.once("b", 1).take(50)
        self.in_child(work)
        for again in range(3):
            if again == 1:
                self.again().checkpoint()
            self.in_child(lambda c: (self.assertEqual(c.once("a", 2).take(1), 4), self.assertEqual(c.total(), 4),
                                     self.assertEqual(c.log, [5, -1, -50])))
        c = self.again()
        c.once(("b", 7), 1).keep("x", [1])
        self.assertEqual((c.names, c.total()), ({"x": [1]}, 4))
        for code, call in (("bad_argument", lambda: c.once(("b", 7), 1).keep("x", [2])), ("bad_argument", lambda: c.once("a", 2).add(1)),
                           ("conflict", lambda: c.once("a", 1).add(5)), ("repeated", lambda: c.once("b", 1).take(50))):
            with self.assertRaises(holdfast.Error) as refused:
                call()
            self.assertEqual(refused.exception.code, code)
        with self.assertRaises(AttributeError):
            c.once("a", 3).total()
        for caller in ([], 1.0, True, float("nan"), ("a", True), b"a", None):
            with self.subTest(caller), self.assertRaises(TypeError):
                c.once(caller, 3)
        c.forget("a")
        self.assertEqual(self.again().once("a", 1).take(1), 3)

    def test_a_caller_of_an_older_version_is_answered_whatever_it_asks(self):
        self.in_child(lambda c: (c.add(5), c.once("a", 2).take(1), c.checkpoint()))
        self.pool = holdfast.open(self.path)
        stored = holdfast.Map(self.pool, "object c")
        state = stored["state"]
        stored["state"] = (1, *state[1:5], [(caller, its[:3]) for caller, its in state[5]])
        c = Counter.open(self.pool, "c")
        self.assertEqual((c.once("a", 2).take(3), c.total()), (4, 4))
        c.checkpoint()
        self.assertEqual(c.once("a", 2).take(3), 4)

    def test_an_actor_that_is_killed_has_what_it_answered(self):
        example = SOURCE / "examples/python/actor.py"
        ran = subprocess.run([sys.executable, example, "--calls", "300", "--words", "20", "--folder", self.folder],
                             capture_output=True, text=True, timeout=120)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        has = [line.split()[-3] for line in ran.stdout.splitlines()[1:]]
        self.assertEqual(has, ["0", "300", "300", "300"], ran.stdout)

    def test_a_read_only_open_shows_it(self):
        self.in_child(lambda c: (c.add(3), c.sync()))
        with holdfast.open(self.path, read_only=True) as pool:
            c = Counter.open(pool, "c")
            self.assertEqual(c.total(), 3)
            with self.assertRaises(holdfast.Error) as refused:
                c.take(1)
            self.assertEqual(refused.exception.code, "permission")
            self.assertEqual(c.total(), 3)

    def writer(self, path, *works):
        """A process that has the pool open for writing. Each call of what is returned has it do the next work; behind the last it ends
        without closing anything."""
        orders, to_child = os.pipe()
        done, from_child = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                os.close(to_child)
                # It takes a small range: the process that looks has other pools, and one of 4 GiB may lie where this one would.
                pool = holdfast.open(path, shared=True, create_bytes=1 << 20, max_bytes=64 << 20)
                for work in works:
                    if os.read(orders, 1):
                        work(pool)
                        os.write(from_child, b"1")
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(0)
        os.close(orders)
        os.close(from_child)
        left = len(works)

        def go_on():
            nonlocal left
            os.write(to_child, b"1")
            self.assertEqual(os.read(done, 1), b"1")
            left -= 1
            if left == 0:
                os.waitpid(child, 0)
                os.close(done)
                os.close(to_child)
        return go_on

    def code_of(self, call):
        with self.assertRaises(holdfast.Error) as refused:
            call()
        return refused.exception.code

    def test_another_process_sees_it_beside_the_writer(self):
        path = self.folder / "beside.hf"
        c = None

        def work(pool):
            c.take(2)
            with self.assertRaises(ValueError):
                c.take(100)

        def call_once(pool):
            c.once("a", 1).take(1)
            c.once("b", 1).take(0)
            c.forget("b")

        def forget(pool):  # stores other attributes, and there was no group since these were stored
            c.add(5)
            c.forget("a")

        def go_round(pool):
            for _ in range(1500):
                c.take(0)

        def begin(pool):
            nonlocal c
            c = Counter.open(pool, "c", 9)
        go_on = self.writer(path, lambda _: None, lambda pool: holdfast.Map(pool, "object c"), begin, lambda _: c.add(3),
                            lambda _: c.sync(), work, lambda _: c.checkpoint(), call_once, forget, lambda _: (c.add(1), c.sync()),
                            go_round, lambda _: (c.add(1), c.sync(), c.add(1)))
        go_on()
        with holdfast.open(path, read_only=True, shared=True) as pool:
            for _ in range(2):  # nothing of it is there; then only its map is
                self.assertEqual(self.code_of(lambda: Counter.open(pool, "c", 9)), "not_found")
                go_on()
            seen = Counter.open(pool, "c", 77)
            self.assertEqual(seen.total(), 9)
            log = []
            for n, more in ((9, []), (12, [3]), (10, [-2, -100]), (10, []), (9, [-1, 0]), (14, [5]), (15, [1]), (15, [0] * 1500), (16, [1])):
                before = seen.shown()
                go_on()
                self.assertEqual(seen.shown(), before)
                log = log + more
                for _ in range(2):
                    seen.refresh()
                    self.assertEqual(seen.shown(), (n, log, {}))
            self.assertIs(Counter.open(pool, "c"), seen)
            go_on = self.writer(path, begin, lambda _: (c.add(1), c.sync()))  # the first one has died
            go_on()
            seen.refresh()
            self.assertEqual(seen.shown(), (16, log, {}))
            go_on()
            seen.refresh()
            self.assertEqual(seen.total(), 17)
            for call in (lambda: seen.add(1), lambda: seen.take(1), seen.sync, seen.checkpoint, lambda: seen.forget("a"),
                         lambda: seen.once("a", 9).take(1)):
                self.assertEqual(self.code_of(call), "permission")
            with self.assertRaises(AttributeError):
                seen.n = 3
            self.assertEqual(seen.total(), 17)
        self.assertEqual(self.code_of(seen.refresh), "closed")
        with holdfast.open(path) as pool:
            c = Counter.open(pool, "c")
            c.add(1)
            c.refresh()
            self.assertEqual(c.total(), 18)

    def test_a_refresh_that_is_refused_shows_what_it_did(self):
        def raising(what):
            @holdfast.instant
            def take(self, by):
                self.n -= by
                raise what("of this process alone")
            return take
        path = self.folder / "beside.hf"
        for changed in ({"take": raising(KeyError)}, {"take": raising(KeyboardInterrupt)}, {"take": None}, {"version": 2}):
            path.unlink(missing_ok=True)
            c = None

            def begin(pool):
                nonlocal c
                c = Counter.open(pool, "c")
                c.add(1)
                c.checkpoint()
                c.add(2)
                if "version" not in changed:  # else no call of it could be made
                    c.sync()
            go_on = self.writer(path, begin, lambda _: (c.sync(), c.add(4), c.take(3)), lambda _: c.add(5), lambda _: c.checkpoint())
            go_on()
            other = counter(upgrade=staticmethod(lambda version, attributes: attributes), **changed)
            with self.subTest(changed), holdfast.open(path, read_only=True, shared=True) as pool:
                seen = other.open(pool, "c")
                before = (1, [1], {}) if "version" in changed else (3, [1, 2], {})
                for _ in range(2):
                    self.assertEqual(seen.shown(), before)
                    go_on()
                    with self.assertRaises((holdfast.Error, KeyboardInterrupt)) as refused:
                        seen.refresh()
                    self.assertEqual(getattr(refused.exception, "code", "function_changed"), "function_changed")
                self.assertEqual(seen.shown(), before)
                go_on()
                seen.refresh()
                self.assertEqual(seen.shown(), (9, [1, 2, 4, -3, 5], {}))

    def test_forged_maps_are_corrupt(self):
        self.in_child(lambda c: (c.add(3), c.sync()))
        self.pool = holdfast.open(self.path)
        stored = holdfast.Map(self.pool, "object c")
        good, group = stored["state"], stored[0]
        for state in ("x", None, (), good[:5], (3, *good[1:]), (*good[:3], True, *good[4:]), (*good[:4], b"\x0e", []),
                      (*good[:4], b"\0", []), (*good[:5], [1]), (*good[:5], [([], (1, b"", None, b""))]),
                      (*good[:5], [("a", (1, b"", None))]), (1, *good[1:5], [("a", (1, b"", None, b""))])):
            stored["state"] = state
            with self.subTest(state), self.assertRaises(holdfast.Error) as refused:
                Counter.open(self.pool, "c")
            self.assertEqual(refused.exception.code, "corrupt")
        stored["state"] = good
        for forged in ("x", (0,), (0, [1]), (0, [(b"\xff", None)]), (0, [(b"\x00", None)])):
            stored[0] = forged
            with self.subTest(forged), self.assertRaises(holdfast.Error) as refused:
                Counter.open(self.pool, "c")
            self.assertEqual(refused.exception.code, "corrupt")
        stored[0] = group
        self.assertEqual(Counter.open(self.pool, "c").total(), 3)

    def test_an_interrupted_call_ends_the_object_and_loses_no_other(self):
        class Slow(holdfast.Object):
            def __init__(self):
                self.n = 0

            @holdfast.deferrable
            def add(self, interrupt=False):
                self.n += 1
                if interrupt:
                    raise KeyboardInterrupt

        slow = Slow.open(self.pool, "slow")
        slow.add()
        with self.assertRaises(KeyboardInterrupt):
            slow.add(True)
        with self.assertRaisesRegex(holdfast.Error, "interrupted"):
            slow.add()
        self.pool.close()
        self.pool = holdfast.open(self.path)
        self.assertEqual(Slow.open(self.pool, "slow").n, 1)

    def test_a_name_that_recovery_would_not_find_is_refused(self):
        def wrapped(method):
            def wrapper(self, by):
                return method(self, by)
            return wrapper

        def add(self, by):
            super(Hides, self).add(by)
        Hides = type("Hides", (Counter,), {"add": add})
        Marked = type("Marked", (Counter,), {"add": holdfast.deferrable(lambda self, by: None)})
        def work(cls, call):
            with self.assertRaisesRegex(TypeError, "recovery would call"):
                call(cls.open(self.pool, cls.__name__))
        work(Hides, lambda c: c.add(1))
        work(Marked, lambda c: c.add(1))
        work(counter(add=holdfast.deferrable(wrapped(add))), lambda c: c.add(1))
        other = holdfast.deferrable(wrapped(add))
        other._holdfast_method.__name__ = "add"
        Other = type("Other", (Counter,), {"add": other})
        work(Other, lambda c: Counter.add(c, 1))
        with self.assertRaisesRegex(TypeError, "__slots__"):
            type("Slots", (holdfast.Object,), {"__slots__": ("n",)})
        cached = functools.cached_property(Counter.total)
        with self.assertRaisesRegex(TypeError, "cached_property"):
            type("Cached", (holdfast.Object,), {"all": cached})
        with self.assertRaisesRegex(TypeError, "name is a str"):
            Counter.open(self.pool, 5)

    def test_a_class_of_which_no_open_would_make_the_same_is_refused(self):
        for version in ("1.0", True, None):
            with self.assertRaisesRegex(TypeError, "Counter.version is an int"):
                counter(version=version).open(self.pool, "c")
        self.assertNotIn("state", holdfast.Map(self.pool, "object c"))
        self.in_child(lambda c: c.checkpoint())
        self.pool = holdfast.open(self.path)
        with self.assertRaisesRegex(TypeError, r"Counter.upgrade\(\) returns the new attributes, a dict, not NoneType"):
            counter(version=2, upgrade=staticmethod(lambda version, old: None)).open(self.pool, "c")
        self.assertEqual(Counter.open(self.pool, "c").total(), 0)

        def each(self):
            yield self.n

        async def add(self, by):
            self.n += by

        async def both(self):
            yield self.n
        for method in (each, add, both):
            for mark in (holdfast.instant, holdfast.deferrable):
                with self.assertRaisesRegex(TypeError, f"{method.__name__}: .*neither yield nor async"):
                    mark(method)
        for method in (property(Counter.total), staticmethod(Counter.total), classmethod(Counter.total)):
            with self.assertRaisesRegex(TypeError, f"@instant: expected a method, found a {type(method).__name__}"):
                holdfast.instant(method)
        for base in (dict, list, tuple, int, Exception, collections.Counter):
            with self.assertRaisesRegex(TypeError, f"hold as {base.__name__} would not be stored"):
                type("Holds", (base, holdfast.Object), {})
        for base in (abc.ABC, collections.UserDict, typing.Generic[typing.TypeVar("T")]):
            types.new_class("Keeps", (base, holdfast.Object))
        for mark in (staticmethod, classmethod):
            with self.assertRaisesRegex(TypeError, "belongs to an object, not to its class"):
                type("Classwide", (holdfast.Object,), {"add": mark(Counter.add)})

    def test_an_equal_object_is_another_one(self):
        def equal(self, other):
            return True

        def hand_on(self, other):
            Even.open(self.pool, other).add(3)
        Even = type("Even", (Counter,), {"__eq__": equal, "__hash__": None, "hand_on": holdfast.instant(hand_on), "pool": self.pool})
        one, other = Even.open(self.pool, "one"), Even.open(self.pool, "other")
        with self.assertRaisesRegex(TypeError, "none of another object"):
            one.hand_on("other")
        self.assertEqual(other.total(), 0)

    def test_an_answer_without_a_copy_is_told_from_a_call_that_was_not_made(self):
        def add_to(self, by):
            self.n += by
            return self
        Fluent = counter(add_to=holdfast.instant(add_to))

        def work(c):
            with self.assertRaisesRegex(TypeError, "add_to: the call was made; what it returned, a Counter, has no copy"):
                c.add_to(3)
        self.in_child(work, Fluent)
        self.assertEqual(self.again(Fluent).total(), 3)

    def test_an_exception_that_has_no_words_is_kept_for_its_caller(self):
        class Wordless(Exception):
            def __str__(self):
                return 1 // 0

        def take(self, what):
            raise Wordless if what == "nothing" else ValueError(chr(0xd800))
        Raises = counter(take=holdfast.instant(take))

        def work(c):
            for each in ("nothing", "half a character"):
                with self.assertRaises((Wordless, ValueError)):
                    c.once(each, 1).take(each)
        self.in_child(work, Raises)
        for _ in range(2):
            c = self.again(Raises)
            with self.assertRaisesRegex(holdfast.Error, r"raised .*Wordless: which has no words \(ZeroDivisionError\)"):
                c.once("nothing", 1).take("nothing")
            with self.assertRaisesRegex(holdfast.Error, r"raised ValueError: \\ud800"):
                c.once("half a character", 1).take("half a character")

    def test_a_property_is_set_by_its_setter(self):
        def set_n(self, n):
            self.n = n
        whole = property(Counter.total, lambda self, n: self.set_n(n))
        hidden = property(Counter.total, lambda self, n: setattr(self, "n", n))
        Set = counter(set_n=holdfast.instant(set_n), whole=whole, hidden=hidden, fixed=property(Counter.total))

        def work(c):
            c.whole = 5
            self.assertEqual((c.whole, c.n), (5, 5))
            for name in ("hidden", "fixed"):
                with self.assertRaises(AttributeError):
                    setattr(c, name, 6)
        self.in_child(work, Set)
        self.assertEqual(self.again(Set).n, 5)

    def test_a_child_waits_for_no_thread_of_its_parent(self):
        c = Counter.open(self.pool, "c")
        holding, free = threading.Event(), threading.Event()

        def hold():
            with holdfast._opening, holdfast._object._opening, c._lock:
                holding.set()
                free.wait()
        other = threading.Thread(target=hold)
        other.start()
        holding.wait()
        child = os.fork()
        if child == 0:
            signal.alarm(20)  # ends one that waits
            try:
                with self.assertRaisesRegex(holdfast.Error, "closed"):
                    c.add(1)
                with holdfast.open(self.folder / "child.hf") as pool:
                    Counter.open(pool, "c").add(1)
                os._exit(Counter.open(self.folder / "child.hf", "c").take(0) - 1)
            except BaseException:
                traceback.print_exc()
                os._exit(1)
        free.set()
        other.join()
        self.assertEqual(os.waitpid(child, 0)[1], 0)

    def test_what_depends_on_the_stack_is_no_outcome_of_a_call(self):
        class Deep(holdfast.Object):
            def __init__(self):
                self.n = 0

            @holdfast.instant
            def add(self):
                self.n += 1
                self.down(60)

            def down(self, left):
                return left and self.down(left - 1)

        def work(deep):
            def at(depth):
                return at(depth - 1) if depth else deep.add()
            deep.add()
            with self.assertRaises(RecursionError):
                for depth in range(0, sys.getrecursionlimit(), 20):
                    at(depth)
            with self.assertRaisesRegex(holdfast.Error, "poisoned"):
                deep.add()
        self.in_child(work, Deep)
        self.assertGreater(self.again(Deep).n, 0)

    def test_other_threads_find_all_attributes_and_no_half_made_answer(self):
        found, free = [], []

        def try_lock():
            free.append(c._lock.acquire(blocking=False))
            if free[-1]:
                c._lock.release()

        class Answer:
            def __deepcopy__(self, memo):
                other = threading.Thread(target=try_lock)
                other.start()
                other.join()
                return self

        def answer(self):
            return Answer()
        Answering = type("Answering", (Counter,), {"answer": holdfast.instant(answer)})
        c = Answering.open(self.pool, "c")
        c.answer()
        self.assertEqual(free, [False])

        def look(frame, event, argument):  # as a thread that comes between any two lines
            if frame.f_code.co_filename == holdfast._object.__file__:
                found.append({"n", "log", "names"} <= vars(c).keys())
                return look
        sys.settrace(look)
        try:
            c.checkpoint()
        finally:
            sys.settrace(None)
        self.assertGreater(len(found), 10)
        self.assertTrue(all(found))

    def test_a_full_pool_closes_and_opens_again(self):
        class Pile(holdfast.Object):
            def __init__(self):
                self.all = []

            @holdfast.deferrable
            def put(self, what):
                self.all.append(what)

            @holdfast.instant
            def put_now(self, what):
                self.all.append(what)

        small = self.folder / "small.hf"
        def fill(_):
            pool = holdfast.open(small, create_bytes=1 << 20, max_bytes=8 << 20)
            pile = Pile.open(pool)
            with self.assertRaises(holdfast.Error) as full:
                while True:
                    pile.put_now(b"x" * (1 << 20))
            self.assertEqual(full.exception.code, "pool_full")
        self.in_child(fill)
        with holdfast.open(small) as pool:  # in which no room is for the attributes that its log makes
            pile = Pile.open(pool)
            had = len(pile.all)
            self.assertGreater(had, 4)
            pile.put("more")
            with self.assertRaises(holdfast.Error):
                pile.checkpoint()
        pool = holdfast.open(small)
        pile, other = Pile.open(pool), Pile.open(pool, "other")
        self.assertEqual((len(pile.all), pile.all[-1]), (had + 1, "more"))
        pile.put(b"x" * (6 << 20))
        other.put("kept")
        with self.assertRaises(holdfast.Error):  # of one of them; it is closed, with the other one whole
            pool.close()
        self.assertTrue(pool.closed)
        with holdfast.open(small) as pool:
            self.assertEqual(Pile.open(pool, "other").all, ["kept"])
            self.assertEqual(len(Pile.open(pool).all), had + 1)

    def test_an_interrupt_between_any_two_lines_makes_no_call_twice_or_by_half(self):
        class Kept(holdfast.Object):
            def __init__(self):
                self.calls, self.more = [], {"a": 1}

            @holdfast.deferrable
            def add(self, call):
                self.calls.append(call)

            @holdfast.instant
            def add_now(self, call):
                self.calls.append(call)

        one, two = (pathlib.Path(f"/dev/shm/holdfast-object-{os.getpid()}-{each}.hf") for each in "12")
        for each in (one, two):
            self.addCleanup(each.unlink, missing_ok=True)
        steps = (lambda of: of.add(1), lambda of: of.add_now(2), lambda of: of.add(3), lambda of: of.checkpoint(),
                 lambda of: of.once("c", 1).add_now(4), lambda of: of.once("c", 1).add_now(4), lambda of: of.add(5), lambda of: of.sync())

        def interrupted(after):
            """What is in memory, or None, and in the file then, whether all calls returned."""
            def do():
                raise KeyboardInterrupt
            interrupt = Between(after, do)
            for each in (one, two):
                each.unlink(missing_ok=True)
            with holdfast.open(one, create_bytes=1 << 20) as pool:
                kept, memory = Kept.open(pool), None
                try:
                    for step in steps:
                        try:
                            sys.settrace(interrupt)
                            step(kept)
                        except KeyboardInterrupt:
                            pass
                        finally:
                            sys.settrace(None)
                    kept.sync()
                    memory = dict(calls=kept.calls, more=kept.more)
                except holdfast.Error as error:
                    self.assertEqual(error.code, "poisoned")
                pool.copy_to(two)
            with holdfast.open(two) as pool:
                kept = Kept.open(pool)
                return memory, dict(calls=kept.calls, more=kept.more), interrupt.left > 0
        after = 0
        while True:
            memory, file, ended = interrupted(after := after + self.random.randrange(1, 4))
            with self.subTest(seed=SEED, after=after):
                self.assertEqual(len(set(file["calls"])), len(file["calls"]))
                self.assertEqual(file["more"], {"a": 1})
                if memory is not None:
                    self.assertEqual(memory, file)
            if ended:
                break
        self.assertEqual(file["calls"], [1, 2, 3, 4, 5])
        self.assertGreater(after, 100)

    def test_a_signal_handler_between_any_two_lines_loses_no_call(self):
        path, copy = (pathlib.Path(f"/dev/shm/holdfast-object-{os.getpid()}-{each}.hf") for each in "12")
        for each in (path, copy):
            self.addCleanup(each.unlink, missing_ok=True)
        steps = (lambda of: of.add(1), lambda of: of.take(0), lambda of: of.add(2), lambda of: of.sync(), lambda of: of.add(3),
                 lambda of: of.checkpoint(), lambda of: of.once("c", 1).take(0), lambda of: of.add(4), lambda of: of.take(0))

        def handled(after, handler):
            """What is in memory, and in the file then, and whether the handler was called."""
            def do():
                try:
                    handler(c)
                except (RuntimeError, holdfast.Error):
                    pass
            come = Between(after, do)
            for each in (path, copy):
                each.unlink(missing_ok=True)
            with holdfast.open(path, create_bytes=1 << 20) as pool:
                c = Counter.open(pool, "c")
                sys.settrace(come)
                try:
                    for step in steps:
                        step(c)
                finally:
                    sys.settrace(None)
                memory = c.shown()
                pool.copy_to(copy)
            with holdfast.open(copy) as pool:
                return memory, Counter.open(pool, "c").shown(), come.left <= 0
        for handler in (Counter.sync, Counter.checkpoint, lambda c: c.forget("c")):
            after, came = 0, True
            while came:
                memory, file, came = handled(after := after + self.random.randrange(1, 4), handler)
                with self.subTest(seed=SEED, after=after):
                    self.assertEqual(memory, file)
                    self.assertEqual(file, (10, [1, 0, 2, 3, 0, 4, 0], {}))
            self.assertGreater(after, 100)

    def test_a_signal_handler_opens_another_pool_and_no_object_twice(self):
        other, refused, made = self.folder / "other.hf", [], 0

        def do():
            nonlocal made
            holdfast.Map(other)["a"] = "b"  # waited for the lock that its own thread has
            try:
                Counter.open(path, "c").take(0)
                made = 1
            except holdfast.Error as error:
                refused.append(error.code)
        child = os.fork()
        if child == 0:
            signal.alarm(60)
            try:
                kept = holdfast.Map(other)  # where it lies no later one will
                for after in range(1, 120, self.random.randrange(3, 6)):
                    path, made = self.folder / f"{after}.hf", 0
                    sys.settrace(Between(after, do, holdfast.__file__, holdfast._object.__file__))
                    try:
                        c = Counter.open(path, "c")
                    except holdfast.Error as error:
                        refused.append(error.code)
                        c = Counter.open(path, "c")
                    finally:
                        sys.settrace(None)
                    self.assertIs(Counter.open(path, "c"), c)
                    self.assertEqual(len(c.log), made)
                    c._map.pool.close()
                self.assertEqual((set(refused), kept["a"]), ({"in_use"}, "b"))
                os._exit(0)
            except BaseException:
                traceback.print_exc()
                os._exit(1)
        self.assertEqual(os.waitpid(child, 0)[1], 0)

    def test_what_a_signal_handler_is_refused_in_a_method_is_no_outcome_of_a_call(self):
        handler = None

        def take(self, by):
            self.n -= by
            if handler is not None:
                handler(self)
        Handled = counter(take=holdfast.instant(take))

        def work(c):
            nonlocal handler
            c.add(5)
            handler = Counter.sync
            with self.assertRaisesRegex(RuntimeError, "in the middle of a logged method"):
                c.take(3)
            handler = None
            with self.assertRaisesRegex(holdfast.Error, "poisoned"):
                c.take(3)
        self.in_child(work, Handled)
        self.assertEqual(self.again(Handled).total(), 5)

        def close(c):
            nonlocal handler
            c.add(1)
            handler = lambda c: c._map.pool.close()
            with self.assertRaisesRegex(holdfast.Error, "closed"):
                c.take(3)
            handler = None
        self.in_child(close, Handled)
        self.assertEqual(self.again(Handled).total(), 6)


KILLED = """
import sys, holdfast
class Counter(holdfast.Object):
    def __init__(self):
        self.n, self.sums = 0, [0] * 50
    @holdfast.deferrable
    def add(self, n):
        self.n += 1
        assert n == self.n
        self.sums[n % 50] += n
    @holdfast.instant
    def add_and_sum(self, n):
        self.add(n)
        return sum(self.sums)
if __name__ == "__main__":
    c = Counter.open(sys.argv[1], "c", durability=sys.argv[2], shared=sys.argv[3] == "shared")
    n = c.n
    while True:
        for _ in range(n % 5):
            n += 1
            c.add(n)
        n += 1
        assert c.add_and_sum(n) == n * (n + 1) // 2
        if n % 11 == 0:
            c.checkpoint()
        print(n, flush=True)
"""


class ObjectKillTest(Pooled):
    def test_what_was_answered_is_there(self):
        self.pool.close()
        scope = {"__name__": "child"}
        exec(KILLED, scope)
        for durability in ("process", "pmem", "power"):
            path = pathlib.Path("/dev/shm") / f"holdfast-object-{os.getpid()}.hf"
            self.addCleanup(lambda: path.unlink(missing_ok=True))
            path.unlink(missing_ok=True)
            for kill in range(12):
                program = subprocess.Popen([sys.executable, "-c", KILLED, path, durability, "alone"], stdout=subprocess.PIPE, text=True)
                for _ in range(self.random.randrange(1, 900)):
                    program.stdout.readline()
                os.kill(program.pid, signal.SIGKILL)
                said = int(([0] + program.stdout.readlines())[-1] or 0)
                program.stdout.close()
                program.wait()
                with self.subTest(seed=SEED, kill=kill, durability=durability), \
                        holdfast.open(path, durability=durability) as pool:
                    c = scope["Counter"].open(pool, "c")
                    self.assertGreaterEqual(c.n, said)
                    self.assertLessEqual(c.n, said + 6 if said else c.n)
                    self.assertEqual(sum(c.sums), c.n * (c.n + 1) // 2)

    def test_who_looks_beside_sees_all_that_was_said_and_never_less_than_before(self):
        scope = {"__name__": "child"}
        exec(KILLED, scope)
        for durability in ("process", "pmem"):
            path = pathlib.Path("/dev/shm") / f"holdfast-object-{os.getpid()}.hf"
            self.addCleanup(lambda: path.unlink(missing_ok=True))
            path.unlink(missing_ok=True)
            pool = c = None
            seen = 0
            for kill in range(6):
                program = subprocess.Popen([sys.executable, "-c", KILLED, path, durability, "shared"], stdout=subprocess.PIPE, text=True)
                said = 0
                with self.subTest(seed=SEED, kill=kill, durability=durability):
                    for _ in range(self.random.randrange(1, 600)):
                        said = int(program.stdout.readline())
                        if c is None:
                            pool = holdfast.open(path, read_only=True, shared=True)
                            c = scope["Counter"].open(pool, "c")
                        c.refresh()
                        self.assertGreaterEqual(c.n, max(said, seen))
                        self.assertEqual(sum(c.sums), c.n * (c.n + 1) // 2)
                        seen = c.n
                os.kill(program.pid, signal.SIGKILL)
                said = int(([said] + program.stdout.readlines())[-1])
                program.stdout.close()
                program.wait()
                c.refresh()
                self.assertGreaterEqual(c.n, max(said, seen))
                self.assertEqual(sum(c.sums), c.n * (c.n + 1) // 2)
                seen = c.n
            pool.close()


if __name__ == "__main__":
    unittest.main()
