# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Replicas of an object on a stream that loses answers and entries; test/attacks/kill/replicas_test.py has Redis itself."""
import sys
import types
import unittest
from unittest import mock

import holdfast
import holdfast.replication
from support import Pooled


class ResponseError(Exception):
    pass


class Lost(Exception):
    """As redis.ConnectionError."""


class Kept:
    """What outlives the replicas."""

    def __init__(self):
        self.entries, self.leases, self.last = [], set(), b"0-0"


def place(text):
    epoch, number = (text if isinstance(text, str) else text.decode()).split("-")
    return int(epoch), int(number)


class Client:
    """What a Replica asks of redis.Redis."""

    def __init__(self, kept):
        self.kept, self.loses_answer, self.before_add = kept, False, None

    def eval(self, script, keys, stream, behind, id, field, value):
        """As its script."""
        if self.before_add is not None:
            before, self.before_add = self.before_add, None
            before()
        if behind.encode() != self.kept.last:
            return 0
        self.kept.last = id.encode()
        self.kept.entries.append((self.kept.last, {field.encode(): value}))
        if self.loses_answer:
            self.loses_answer = False
            raise Lost
        return 1

    def xread(self, streams, count, block=0):
        (stream, after), = streams.items()
        found = [each for each in self.kept.entries if place(each[0]) > place(after)][:count]
        return [[stream.encode(), found]] if found else []

    def xrange(self, stream, first, last):
        return [each for each in self.kept.entries if place(first) <= place(each[0]) <= place(last)]

    def xinfo_stream(self, stream):
        if self.kept.last == b"0-0":
            raise ResponseError("no such key")
        return {"last-generated-id": self.kept.last}

    def set(self, name, value, px):
        self.kept.leases.add(name)

    def exists(self, name):
        return name in self.kept.leases


class Digits(holdfast.Object):
    def __init__(self):
        self.text = ""

    @holdfast.deferrable
    def add(self, digit):
        self.text += str(digit)

    @holdfast.instant
    def add_and_get(self, digit, *, fail=False):
        self.text += str(digit)
        if fail:
            raise ValueError("as asked")
        return self.text


class ReplicationTest(Pooled):
    def setUp(self):
        super().setUp()
        patched = mock.patch.dict(sys.modules, redis=types.SimpleNamespace(ResponseError=ResponseError))
        patched.start()
        self.addCleanup(patched.stop)
        self.kept = Kept()

    def replica(self, name, client=None):
        pool = holdfast.open(self.folder / f"{name}.hf")
        self.addCleanup(pool.close)
        return holdfast.replication.Replica(Digits.open(pool, "it"), client or Client(self.kept), "digits")

    def reopened(self, replica, name):
        replica.object._map.pool.close()
        return self.replica(name)

    def lead(self, replica):
        self.kept.leases.clear()
        self.assertTrue(any(replica.step(0) for _ in range(4)))

    def refused(self, code, call, *args):
        with self.assertRaises(holdfast.Error) as caught:
            call(*args)
        self.assertEqual(caught.exception.code, code, caught.exception)

    def test_followers_make_the_leaders_calls(self):
        a, b = self.replica("a"), self.replica("b")
        self.lead(a)
        a.call.add(1)
        self.assertEqual(a.call.add_and_get(2), "12")
        self.assertEqual(a.read().text, "12")
        self.assertFalse(b.step(0))
        self.assertEqual(b.object.text, "12")
        self.refused("conflict", b.read)
        self.refused("conflict", b.call.add, 3)
        b = self.reopened(b, "b")
        b.step(0)
        self.assertEqual(b.object.text, "12")

    def test_a_former_leader_answers_nothing(self):
        a, b = self.replica("a"), self.replica("b")
        self.lead(a)
        a.call.add(1)
        self.lead(b)
        self.assertTrue(a.leads)    # as it believes
        self.refused("conflict", a.read)
        self.assertFalse(a.leads)
        b.call.add(2)
        a.step(0)
        self.lead(a)
        self.refused("conflict", b.call.add_and_get, 3)
        self.assertFalse(b.leads)
        self.assertEqual((a.object.text, b.object.text), ("12", "12"))

    def test_a_call_whose_answer_is_lost_is_made_once(self):
        a = self.replica("a")
        self.lead(a)
        for digit in (1, 2):
            a._client.loses_answer = True
            with self.assertRaises(Lost):
                a.call.add_and_get(digit)
            self.assertFalse(a.leads)
            if digit == 2:
                a = self.reopened(a, "a")
            self.lead(a)
        self.assertEqual(a.object.text, "12")
        self.assertEqual(a.call.add_and_get(3), "123")

    def test_a_client_that_tries_twice_is_no_other_leader(self):
        a = self.replica("a")
        self.lead(a)
        add = a._client.eval

        def twice(*args):
            add(*args)
            return add(*args)
        a._client.eval = twice
        self.assertEqual(a.call.add_and_get(1), "1")
        self.lead(self.replica("b"))
        self.refused("conflict", a.call.add_and_get, 2)

    def test_an_exception_is_part_of_the_call(self):
        a, b = self.replica("a"), self.replica("b")
        self.lead(a)
        with self.assertRaises(ValueError):
            a.call.add_and_get(1, fail=True)
        self.assertTrue(a.leads)
        self.assertEqual(a.call.add_and_get(2), "12")
        b.step(0)
        self.assertEqual(b.object.text, "12")
        calls = len(self.kept.entries)
        with self.assertRaises(TypeError):
            a.call.add(object())    # no value: it does not reach the stream
        self.assertEqual(len(self.kept.entries), calls)
        with self.assertRaises(AttributeError):
            a.call.text
        self.assertTrue(a.leads)

    def test_a_leader_has_the_last_calls_of_the_one_before(self):
        a, b = self.replica("a"), self.replica("b")
        self.lead(a)
        a.call.add(1)
        b.step(0)
        b._client.before_add = lambda: a.call.add(2)
        self.lead(b)
        self.assertEqual(b.call.add_and_get(3), "123")

    def test_a_replica_that_lacks_a_call_refuses_to_go_on(self):
        a, b = self.replica("a"), self.replica("b")
        self.lead(a)
        for digit in (1, 2, 3):
            a.call.add(digit)
        whole = list(self.kept.entries)
        del self.kept.entries[2]
        self.refused("conflict", b.step, 0)
        self.assertEqual(b.object.text, "1")
        self.kept.entries[:] = whole
        b.step(0)
        self.assertEqual(b.object.text, "123")
        self.kept.entries.pop()    # the stream has lost its end
        self.kept.last = self.kept.entries[-1][0]
        self.refused("conflict", b.step, 0)
        holdfast.replication.Replica.leave(b.object)
        self.kept.__init__()
        b = holdfast.replication.Replica(b.object, b._client, "digits")
        self.lead(b)
        self.assertEqual(b.call.add_and_get(4), "1234")

    def test_a_leader_ends_when_its_stream_is_deleted(self):
        for reads in (False, True):
            self.kept.__init__()
            a, b = self.replica(f"a{reads}"), self.replica(f"b{reads}")
            self.lead(a)
            a.call.add(1)
            self.kept.__init__()
            self.lead(b)    # another stream, which has as many calls
            b.call.add(2)
            if reads:
                self.refused("conflict", a.read)
            self.refused("conflict", a.call.add, 3)
            self.assertFalse(a.leads)
            self.refused("conflict", a.step, 0)
            self.assertEqual(b.call.add_and_get(4), "24")
            self.refused("conflict", a.step, 0)
            self.assertEqual(a.object.text, "1")

    def test_one_leads_when_the_stream_has_lost_another(self):
        for reads in (False, True):
            self.kept.__init__()
            a, b = self.replica(f"a{reads}"), self.replica(f"b{reads}")
            self.lead(a)
            a.call.add(1)
            entries, last = list(self.kept.entries), self.kept.last
            self.lead(b)
            b.call.add(2)
            self.kept.entries, self.kept.last = entries, last    # Redis was started again, and no client has seen it
            if reads:
                self.refused("conflict", b.read)
            self.assertEqual(a.call.add_and_get(3), "13")
            self.refused("conflict", b.call.add, 4)
            self.assertFalse(b.leads)
            self.refused("conflict", b.step, 0)
            self.assertEqual(a.call.add_and_get(5), "135")
            self.assertEqual(b.object.text, "12")

    def test_a_replica_behind_a_trimmed_stream_says_so(self):
        a, b = self.replica("a"), self.replica("b")
        self.lead(a)
        a.call.add(1)
        b.step(0)
        a.call.add(2)
        self.kept.entries.clear()
        self.refused("conflict", b.step, 0)
        self.kept.leases.clear()
        self.refused("conflict", b.step, 0)
        a = self.reopened(a, "a")
        self.lead(a)    # its beginning is all that is there
        self.assertEqual(len(self.kept.entries), 1)
        self.refused("conflict", b.step, 0)
        self.kept.leases.clear()
        self.refused("conflict", b.step, 0)
        self.assertEqual(a.call.add_and_get(3), "123")

    def test_a_last_entry_that_is_trimmed_is_passed_where_no_call_can_be_missing(self):
        a, b = self.replica("a"), self.replica("b")
        self.lead(a)
        self.kept.entries.clear()
        self.lead(b)    # the leader before had made none
        b.call.add(1)
        self.refused("conflict", a.read)
        a.step(0)
        self.lead(a)
        self.refused("conflict", b.read)
        b.step(0)
        self.kept.entries.clear()
        self.assertFalse(b.step(0))    # it has passed that entry
        b = self.reopened(b, "b")
        self.refused("conflict", b.step, 0)    # it cannot know
        a.call.add(2)
        b.step(0)    # now it can
        self.assertEqual(b.object.text, "12")

    def test_what_is_no_call_of_this_class_is_refused(self):
        a, b = self.replica("a"), self.replica("b")
        self.lead(a)
        a.call.add(1)
        at, good = self.kept.entries.pop()
        self.kept.entries.append((at, {b"call": b"hfcall01 of C++"}))
        self.refused("corrupt", b.step, 0)
        self.kept.entries[-1] = at, {b"call": good[b"call"].replace(b"add", b"sub")}
        self.refused("function_changed", b.step, 0)
        self.kept.entries[-1] = at, good
        b.step(0)
        self.assertEqual(b.object.text, "1")


if __name__ == "__main__":
    unittest.main()
