# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Cache: a bounded, durable mapping that forgets what is old, or was not used for longest.

Invariants:
(1) One transaction makes each change: the four structures below have the same keys before and after every kill.
(2) The bytes of all values and keys, as they are stored, are at most max_bytes.
(3) A read writes nothing. It is noted in memory, and the order of use is stored before the next eviction that needs
    it, or after _NOTED_MAX reads: a kill forgets so many uses at most, and no value.
"""
import collections.abc as abc
import math
import time
import types

from . import _core, _pool_of
from ._error import Error
from ._sorted import SortedMap
from ._structures import Map, _NOTHING

_NOTED_MAX = 1024
_BYTES = None  # in the order of use, whose other keys are numbers: the sum of all bytes, and the number of the next change


class Cache:
    """A durable mapping of at most max_bytes, whose values may have a time to live.

    ttl is in seconds, for values that are set without one of their own; None: they live until they are evicted. When there is no
    room, what has expired goes first, and then what was not used for longest. Behaves as cachetools' caches, and has the calls of
    diskcache.Cache: set, get, add, incr, touch, pop, expire, evict, stats.
    """

    __class_getitem__ = classmethod(types.GenericAlias)
    __hash__ = None

    def __init__(self, where, name="cache", *, max_bytes, ttl=None, when_durable=None, timer=time.time, **options):
        if type(max_bytes) is not int or max_bytes <= 0:
            raise ValueError(f"max_bytes: expected a number of bytes above 0, found {max_bytes!r}")
        self.pool = _pool_of(where, options)
        self.name, self.max_bytes, self.ttl, self._timer = name, max_bytes, ttl, timer
        self._values = Map(self.pool, f"{name} values", when_durable=when_durable)      # key: (value, expires or None)
        self._places = Map(self.pool, f"{name} places", when_durable=when_durable)      # key: (number of its use, of its setting, expires, bytes)
        self._uses = SortedMap(self.pool, f"{name} uses", when_durable=when_durable)    # number: key
        self._ends = SortedMap(self.pool, f"{name} ends", when_durable=when_durable)    # (expires, number of the setting): key
        self._noted = {}  # keys that were read since, in the order of use
        self._hits = self._misses = self._evictions = self._expirations = 0

    # Reading

    def get(self, key, default=None):
        """The value of the key, or default if it is not there or has expired."""
        found = self._values.get(key, _NOTHING)
        if found is _NOTHING or self._is_over(found[1]):
            self._misses += 1
            return default
        self._hits += 1
        self._noted.pop(key, None)
        self._noted[key] = None
        if len(self._noted) >= _NOTED_MAX and not self.pool._read_only:
            with self.pool.transaction():
                self._store_uses()
        return found[0]

    def __getitem__(self, key):
        found = self.get(key, _NOTHING)
        if found is _NOTHING:
            return self.__missing__(key)
        return found

    def __missing__(self, key):
        raise KeyError(key)

    def __contains__(self, key):
        found = self._values.get(key, _NOTHING)
        return found is not _NOTHING and not self._is_over(found[1])

    def __iter__(self):
        """The keys, the one that was not used for longest first."""
        self._store_uses_soon()
        now = self._timer()
        with self._places.snapshot() as places:
            for number, key in self._uses.range():
                if number is not _BYTES and key in places and not self._is_over(places[key][2], now):
                    yield key

    def __len__(self):
        """The number of keys that have not expired."""
        return len(self._places) - sum(1 for _ in self._ends.range(stop=(self._timer(), math.inf)))

    def __bool__(self):
        return len(self) != 0

    @property
    def currsize(self):
        """The bytes of all values and keys as they are stored, as in cachetools."""
        return self._bytes()[0]

    @property
    def maxsize(self):
        return self.max_bytes

    def keys(self):
        return abc.KeysView(self)

    def items(self):
        return abc.ItemsView(self)

    def values(self):
        return abc.ValuesView(self)

    def stats(self):
        """What this object did since it was made, and the bytes that are stored."""
        return {"hits": self._hits, "misses": self._misses, "evictions": self._evictions, "expirations": self._expirations,
                "bytes": self.currsize, "max_bytes": self.max_bytes, "count": len(self._places)}

    # Changing

    def set(self, key, value, expire=None):
        """Stores the value; it expires in so many seconds, or in ttl. Raises ValueError if it is larger than the cache."""
        ttl = self.ttl if expire is None else expire
        expires = None if ttl is None else self._timer() + ttl
        stored_bytes = len(_core.encode(key, True)) + len(_core.encode(value))
        if stored_bytes > self.max_bytes:
            raise ValueError(f"value too large: the cache has {self.max_bytes} bytes, and it needs {stored_bytes}")
        with self.pool.transaction():
            self._drop(key)
            self._make_room(stored_bytes)
            total, number = self._bytes()
            self._values[key] = (value, expires)
            self._places[key] = (number, number, expires, stored_bytes)
            self._uses.update({number: key, _BYTES: (total + stored_bytes, number + 1)})
            if expires is not None:
                self._ends[expires, number] = key
            if self._noted:  # its use comes behind those reads
                self._noted[key] = None

    __setitem__ = set

    def add(self, key, value, expire=None):
        """Stores the value unless the key has one. Returns whether it did."""
        with self.pool.transaction():
            if key in self:
                return False
            self.set(key, value, expire)
            return True

    def incr(self, key, delta=1, default=0):
        """Adds to a number, and returns the sum; the number keeps its time. Without the key: adds to default."""
        with self.pool.transaction():
            found = self._values.get(key, _NOTHING)
            there = found is not _NOTHING and not self._is_over(found[1])
            value = (found[0] if there else default) + delta
            self.set(key, value, None if not there or found[1] is None else found[1] - self._timer())
            return value

    def decr(self, key, delta=1, default=0):
        return self.incr(key, -delta, default)

    def touch(self, key, expire=None):
        """Gives the key another time to live. Says whether it is there."""
        with self.pool.transaction():
            found = self._values.get(key, _NOTHING)
            if found is _NOTHING or self._is_over(found[1]):
                return False
            self.set(key, found[0], expire)
            return True

    def pop(self, key, default=_NOTHING):
        with self.pool.transaction():
            there = key in self
            value = self._drop(key)
        if there:
            return value
        if default is _NOTHING:
            raise KeyError(key)
        return default

    def delete(self, key):
        """Says whether the key was there."""
        return self.pop(key, _NOTHING_THERE) is not _NOTHING_THERE

    def __delitem__(self, key):
        self.pop(key)

    def popitem(self):
        """Takes out what was not used for longest."""
        with self.pool.transaction():
            for key in self:
                return key, self.pop(key)
        raise KeyError("popitem(): the cache is empty")

    def setdefault(self, key, default=None):
        with self.pool.transaction():
            self.add(key, default)
            return self[key]

    def update(self, other=(), /, **more):
        """In one commit."""
        with self.pool.transaction():
            for key, value in [*dict(other).items(), *more.items()]:
                self[key] = value

    def clear(self):
        """Returns the number of keys."""
        with self.pool.transaction():
            count = len(self._places)
            for each in (self._values, self._places, self._uses, self._ends):
                each.clear()
            self._noted.clear()
            return count

    def expire(self):
        """Removes what has expired; returns the number of keys. Without it, that happens when room is needed."""
        with self.pool.transaction():
            gone = [key for _, key in self._ends.range(stop=(self._timer(), math.inf))]
            for key in gone:
                self._drop(key)
            self._expirations += len(gone)
            return len(gone)

    def evict(self, count=1):
        """Removes so many keys, those that were not used for longest; returns their number."""
        with self.pool.transaction():
            self._store_uses()
            gone = [key for number, key in self._uses.range() if number is not _BYTES][:count]
            for key in gone:
                self._drop(key)
            self._evictions += len(gone)
            return len(gone)

    def close(self):
        """Closes the structures, not the pool."""
        for each in (self._values, self._places, self._uses, self._ends):
            each.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def __repr__(self):
        try:
            return f"<holdfast.Cache {self.name!r}, {self.currsize} of {self.max_bytes} bytes>"
        except Error as error:
            return f"<holdfast.Cache {self.name!r}, {error.code}>"

    # Within a transaction

    def _is_over(self, expires, now=None):
        return expires is not None and expires <= (self._timer() if now is None else now)

    def _bytes(self):
        return self._uses.get(_BYTES, (0, 0))

    def _drop(self, key):
        """Takes the key out of everything; returns its value."""
        self._noted.pop(key, None)
        place = self._places.pop(key, None)
        if place is None:
            return None
        use, setting, expires, stored_bytes = place
        total, number = self._bytes()
        self._uses._change([(_BYTES, (total - stored_bytes, number))], [use])
        if expires is not None:
            del self._ends[expires, setting]
        return self._values.pop(key)[0]

    def _make_room(self, wanted_bytes):
        if self._bytes()[0] + wanted_bytes <= self.max_bytes:
            return
        self.expire()
        if self._bytes()[0] + wanted_bytes <= self.max_bytes:
            return
        self._store_uses()
        for number, key in self._uses.range():
            if number is _BYTES:
                continue
            self._drop(key)
            self._evictions += 1
            if self._bytes()[0] + wanted_bytes <= self.max_bytes:
                return

    def _store_uses_soon(self):
        if self._noted and not self.pool._read_only:
            with self.pool.transaction():
                self._store_uses()

    def _store_uses(self):
        """What was read since comes to the end of the order, as it was read."""
        noted = list(self._noted)
        self._noted.clear()
        total, number = self._bytes()
        put, gone = {}, []
        for key in noted:
            place = self._places.get(key)
            if place is None:
                continue
            gone.append(place[0])
            put[number] = key
            self._places[key] = (number, *place[1:])
            number += 1
        if put:
            self._uses._change([*put.items(), (_BYTES, (total, number))], gone)


_NOTHING_THERE = object()
abc.MutableMapping.register(Cache)
