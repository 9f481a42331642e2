# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""One object in the pools of several machines, through a stream of Redis: docs/guide/replication.md.

    stock = holdfast.replication.Replica(Stock.open("stock.hf", "stock"), redis.Redis(), "stock")
    while True:
        if stock.step(0.1):                    # makes the calls of another leader, or takes over
            print(stock.call.take("tea", 1))   # in the stream, then here

Invariants:
(1) A call is in the stream before any pool has it, the leader's included.
(2) An entry's ID is EPOCH-NUMBER, and Redis refuses one that is not greater than the last. A leader begins with the first
    ID of the next epoch, and numbers its calls from a random number on: if the stream is lost, no ID of another one is the same.
(3) A pool makes the calls of the stream in their order, each once: its place is the number of a call that Object.once makes,
    so it is in the call's own record.
(4) Each entry names the call before it. A replica that lacks that one refuses to go on.
(5) A leader adds an entry only behind the last one that it has seen; Redis compares that in the same step. So it leads no
    longer when another one does, whatever it believes, nor when the stream has lost an entry.
"""
import functools
import secrets
import threading
import time
import uuid
from typing import Generic, TypeVar

from . import _object
from ._encoding import decode, encode
from ._error import Error

__all__ = ["Replica"]

_CALLER = "holdfast.replication"
_T = TypeVar("_T")
_NUMBER_BITS = 40
_READ_MAX = 1000
_PREFIX = b"hfpy01"
# Upholds (5). Arguments: the last ID that is expected, the new one, its field and value.
_ADDS = """
    local last, of = '0-0', redis.pcall('XINFO', 'STREAM', KEYS[1])
    if of.err and not string.find(of.err, 'no such key', 1, true) then return of end
    for i = 1, #of, 2 do if of[i] == 'last-generated-id' then last = of[i + 1] end end
    if last ~= ARGV[1] then return 0 end
    redis.call('XADD', KEYS[1], ARGV[2], ARGV[3], ARGV[4])
    return 1
"""


def _number_of(place):
    return place[0] << _NUMBER_BITS | place[1]


def _text(place):
    return f"{place[0]}-{place[1]}"


def _place(text):
    epoch, number = text.split(b"-")
    return int(epoch), int(number)


class Replica(Generic[_T]):
    """An object of a holdfast.Object's class as one replica of it. Other code calls only methods that look.

    object_  the object, in a pool that is open for writing
    client   a redis.Redis, without decode_responses, used by this replica alone. What it raises, redis.RedisError, comes
             through; whether a call was made is not known then. The replica follows until it leads again.
    stream   the stream's key in Redis
    lease    seconds that a leader may be silent before another replica takes over
    """

    def __init__(self, object_, client, stream, *, lease=2.0):
        self.object, self.stream, self.lease = object_, stream, lease
        self._client, self._lock = client, threading.RLock()
        known = object_._callers.get(_CALLER)
        number = known[0] if known is not None else 0
        self._last = self._seen = (number >> _NUMBER_BITS, number & (1 << _NUMBER_BITS) - 1)
        self._epoch, self._next, self._renewed = None, 0, 0.0

    @staticmethod
    def leave(object_):
        """The object belongs to no stream any more: its state begins another one, where the first was lost.

        The pools of the others are made from a copy of this one.
        """
        object_.forget(_CALLER)

    @property
    def leads(self):
        """What step() has returned, if no call was refused since."""
        return self._epoch is not None

    @property
    def call(self):
        """replica.call.take("tea", 1): puts the call into the stream, makes it here and returns its result, or raises its exception.

        Raises Error: conflict, where this replica does not lead, or the stream does not end where it left it; then the call is
        not made.
        """
        return _Calls(self)

    def read(self):
        """The object, if this replica leads: with each call that any leader has answered before.

        Raises Error: conflict, where it does not lead. replica.object answers sooner, and may be late.
        """
        with self._lock:
            self._must_lead()
            return self.object

    def step(self, wait):
        """Call it again and again. Returns whether this replica leads.

        A follower makes the calls that have come, or waits so many seconds for one. If the leader is silent it takes over,
        and has made all calls of the stream when it does. A leader notes that it is alive, and returns at once.

        Raises Error: conflict, where the stream does not have the call behind this pool's last one, is trimmed beyond it, or
        ends before it: make this pool from a copy of another one. function_changed: a call of a method that this class does
        not have.
        """
        with self._lock:
            if self.leads:
                return self._renew()
            if self._take(wait):
                return False
            last = self._last_entry()
            if last < self._seen:
                raise Error("conflict", f"conflict: stream {self.stream!r}: expected one that goes to {_text(self._seen)}, found one that ends "
                                        f"at {_text(last)}: it has lost calls that this pool has")
            if last > self._seen and not self._passed_unseen(last) or self._client.exists(self._lease_of(last[0])):
                return False
            return self._take_over(last[0] + 1)

    def _lease_of(self, epoch):
        return f"{self.stream}:lease:{epoch}"

    def _keep_lease(self, epoch):
        self._client.set(self._lease_of(epoch), 1, px=int(self.lease * 1000))
        self._renewed = time.monotonic()

    def _last_entry(self):
        import redis
        try:
            return _place(self._client.xinfo_stream(self.stream)["last-generated-id"])
        except redis.ResponseError as error:
            if "no such key" in str(error):
                return 0, 0
            raise

    def _append(self, place, field, value):
        """False: the stream's last entry is not the one that this replica has seen (5), and the new one is not there."""
        if self._client.eval(_ADDS, 1, self.stream, _text(self._seen), _text(place), field, value):
            return True
        there = self._client.xrange(self.stream, _text(place), _text(place))    # perhaps the client has tried it twice
        return bool(there) and there[0][1].get(field.encode()) == value

    def _must_lead(self):
        if self.leads:
            epoch, self._epoch = self._epoch, None
            if self._last_entry() == self._seen:
                self._epoch = epoch
                return
        raise Error("conflict", f"conflict: stream {self.stream!r}: expected to lead, found that another replica does: ask it")

    def _renew(self):
        if time.monotonic() - self._renewed >= self.lease / 3:
            try:
                self._must_lead()
            except Error:
                return False
            self._keep_lease(self._epoch)
        return True

    def _take_over(self, epoch):
        self._keep_lease(epoch)
        if not self._append((epoch, 0), "leads", _PREFIX + encode((self._last, uuid.uuid4().bytes))):
            return False    # another one was first, or the leader is alive
        self._epoch, self._seen, self._next = epoch, (epoch, 0), 1 + secrets.randbits(_NUMBER_BITS - 1)
        return True

    def _passed_unseen(self, last):
        """Whether this replica passes the stream's last entry without seeing it: it is trimmed, and no call can be before it.

        False: entries have come meanwhile.
        """
        if self._take(0):
            return False
        if self._seen != (0, 0) or last != (1, 0):
            raise Error("conflict", f"conflict: stream {self.stream!r}: expected the entries behind {_text(self._seen)}, found none of them and "
                                    f"that it goes to {_text(last)}: it was trimmed; make this pool from a copy of another replica's")
        self._seen = last    # the first leader had made no call
        return True

    def _take(self, wait):
        """Makes the calls that have come; how many entries it were."""
        came = self._client.xread({self.stream: _text(self._seen)}, count=_READ_MAX, **({"block": max(1, int(wait * 1000))} if wait else {}))
        entries = came[0][1] if came else []
        try:
            for at, fields in entries:
                place = _place(at)
                self._make(place, fields.get(b"call"), fields.get(b"leads"))
                self._seen = place
        finally:
            if entries:
                self.object.sync()
        return len(entries)

    def _make(self, place, call, leads):
        entry = call or leads or b""
        if not entry.startswith(_PREFIX):
            raise Error("corrupt", f"corrupt: stream {self.stream!r}, entry {_text(place)}: expected a call of a Python object, found "
                                   f"{entry[:16]!r}")
        before, *made = decode(entry[len(_PREFIX):])
        if before != self._last:
            raise Error("conflict", f"conflict: stream {self.stream!r}: expected the call behind {_text(self._last)}, found {_text(place)}, which "
                                    f"is behind {_text(before)}: make this pool from a copy of another replica's")
        if call is None:
            return
        version, name, args, more = made
        if version != type(self.object).version or not hasattr(getattr(type(self.object), name, None), "_holdfast_method"):
            raise Error("function_changed", f"function_changed: stream {self.stream!r}, entry {_text(place)}: found {name}() of version {version} "
                                            f"of the class; this one has version {type(self.object).version}, or lacks it")
        try:
            getattr(self.object.once(_CALLER, _number_of(place)), name)(*args, **more)
        except Exception:    # part of the call, if it was made
            if self.object._callers.get(_CALLER, (None,))[0] != _number_of(place):
                raise
        self._last = place

    def _call(self, name, args, more):
        with self._lock:
            if not self.leads:
                self._must_lead()
            if time.monotonic() - self._renewed >= self.lease / 3:
                self._keep_lease(self._epoch)
            if getattr(_object._making, "of", None) is not None:
                raise TypeError(f"{name}: a logged method makes no call of a replica: recovery would make that call once more")
            place = (self._epoch, self._next)
            entry = _PREFIX + encode((self._last, type(self.object).version, name, args, more))
            self.object._usable()
            epoch, self._epoch = self._epoch, None    # if the entry is there although this raises, following finds it
            if not self._append(place, "call", entry):
                self._must_lead()
            try:
                return getattr(self.object.once(_CALLER, _number_of(place)), name)(*args, **more)
            finally:
                if self.object._callers.get(_CALLER, (None,))[0] == _number_of(place):
                    self._last = self._seen = place
                    self._next += 1
                    if self.object._broken is None:
                        self.object.sync()
                        self._epoch = epoch


class _Calls:
    def __init__(self, of):
        self._of = of

    def __getattr__(self, name):
        method = getattr(getattr(type(self._of.object), name, None), "_holdfast_method", None)
        if method is None:
            raise AttributeError(f"{name!r} is no @deferrable or @instant method of {type(self._of.object).__qualname__}")
        if _object._method_of(self._of.object, method.__name__) is not method:
            raise TypeError(f"{name}: class {type(self._of.object).__qualname__} has something else under the name {method.__name__}")

        @functools.wraps(method)
        def call(*args, **more):
            return self._of._call(method.__name__, args, more)
        return call
