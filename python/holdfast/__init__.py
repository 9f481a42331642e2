# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Durable dict, set, list, stack and queue, in a file that survives kill -9.

    >>> import holdfast
    >>> prices = holdfast.Map("prices.hf")
    >>> prices["apple"] = "1.20"

Every call that changes something is failure-atomic: after a kill the file has the state before the
call or the state after it. Values are str, bytes, int, float, bool, None, dates and times, numpy
arrays, and tuples, lists and dicts of them. Keys, and elements of sets, are those of these that can
be hashed.

Invariants:
(1) A path has at most one open pool in this process; structures opened by the same path share it.
(2) A call makes one commit, however much it changes.
(3) Iterators, comparisons and printing see one version, while anything changes meanwhile.
"""
import atexit
import collections.abc as abc
import os
import queue
import threading
import time
import types
import typing
import warnings
import weakref

from . import _core
from ._error import Error

__all__ = ["Element", "Error", "Map", "MapSnapshot", "Object", "Pool", "Queue", "QueueSnapshot", "Set",
           "SetSnapshot", "Stack", "StackSnapshot", "Vector", "VectorSnapshot", "deferrable", "instant", "open"]
__version__ = "0.1.0"

Element = typing.Union[str, bytes]
_CREATION = {"if_missing": 0, "never": 1, "always_new": 2}
_MODES = {"process": 0, "pmem": 1, "power": 2}
_pools = weakref.WeakValueDictionary()  # real path: Pool (1)
_opening = threading.RLock()  # a signal handler may open one while its thread does
_NOTHING = object()  # what is stored may be None


def _chosen(name, choice, choices):
    if choice not in choices:
        raise ValueError(f"{name}: expected one of {', '.join(map(repr, choices))}, not {choice!r}")
    return choice


class Pool(_core.Pool):
    """A file of durable structures. Open one with holdfast.open()."""

    def __init__(self, path, *, layout="python/1", durability="process", create="if_missing",
                 create_bytes=0, max_bytes=0, max_threads=0, salvage=False, read_only=False, shared=False):
        mode = _MODES[_chosen("durability", durability, tuple(_MODES))]
        creation = _CREATION[_chosen("create", create, tuple(_CREATION))]
        super().__init__(os.fsencode(path), layout, mode, creation, create_bytes, max_bytes,
                         max_threads, salvage, read_only, shared)
        self.path = os.fsdecode(path)
        self._options = {}
        self._read_only = read_only
        # In mode power a kill takes changes that are not durable yet, so there a change is durable
        # on return by default.
        self._when_durable = "on_return" if durability == "power" else "by_next_section"
        self._arrivals = {}  # of queues, by name
        self._file = _file_at(path)
        _pools[os.path.realpath(path)] = self

    def close(self):
        """Closes the file cleanly; nothing in it can be used any more.

        Raises Error, when it is closed, if there was no room for an object's deferred calls.
        """
        failed = None if self.closed else _object._settle(self)
        super().close()
        for arrivals in list(self._arrivals.values()):
            arrivals.wake_all()
        if failed is not None:
            raise failed

    def settle(self):
        """Makes all work that has returned durable: changes of structures, and deferred calls of
        objects, on any thread."""
        for (of, _), each in list(_object._objects.items()):
            if of is self and not each._shown:
                each.sync()
        super().settle()

    def copy_to(self, path):
        """Copies all that is committed at one moment to a new file, while other threads work on.

        Returns the file's bytes and the milliseconds for which every thread stood still: no change waits longer.
        The copy is on the disk, and opens as any pool. Raises Error: exists, pool_full (the disk), permission (the
        system lets no process be stopped), closed (of a parent's pool, too), mode_unavailable (durability "power").
        """
        return super().copy_to(os.fsencode(path))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def __repr__(self):
        return f"<holdfast.Pool {self.path!r}{', closed' if self.closed else ''}>"


def open(path, **options):
    """Opens, or creates, the pool at path.

    layout       the name of what is in it; the default is what Map("file") and its siblings take
    durability   "process" survives the death of the process; "pmem" power loss, too, on persistent
                 memory with a DAX mapping; "power" power loss on any disk, with a log beside the pool
    create       "if_missing", "never" or "always_new"
    create_bytes, max_bytes   size of a new pool, and limit of its growth (neither: 1 MiB, 4 GiB; no
                 max_bytes: 64 times create_bytes)
    salvage      open a pool that was open when the machine, not the process, went down
    read_only    look at a pool; nothing is written to its file, and changing it raises Error
    shared       others may read it beside this process, if they open it with read_only and shared;
                 they read the current state, and their snapshots do not change

    Raises Error: in_use if another process has it open, or this one; missing_engine if a crash left
    failure-atomic sections of a C or C++ program in it, which only that program, or the command
    `holdfast`, can end.
    """
    return Pool(path, **options)


def _file_at(path):
    """The identity of the file at this path; None if it does not exist."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _pool_of(where, options):
    """The pool itself, or the one at that path (1)."""
    if isinstance(where, Pool):
        if options:
            raise TypeError(f"the pool is open: {', '.join(options)} cannot be given any more")
        return where
    with _opening:
        pool = _pools.get(os.path.realpath(where))
        if pool is not None and not pool.closed and pool._file != _file_at(where):
            warnings.warn(f"{pool.path}: the pool that is open has lost its name: its file was removed or renamed; "
                          "what has the name now is opened", RuntimeWarning, stacklevel=3)
            pool = None
        if pool is None or pool.closed:
            pool = Pool(where, **options)
            pool._options = options
        elif options and options != pool._options:
            raise ValueError(f"{pool.path} is open already, with other options")
        return pool


def _close_all():
    failed = None
    for pool in list(_pools.values()):
        try:
            pool.close()
        except Error as error:  # the others are closed all the same
            failed = failed or error
    if failed is not None:
        raise failed


atexit.register(_close_all)


def _forked():
    """A child has none of the threads that may have held it."""
    global _opening
    _opening = threading.RLock()


os.register_at_fork(after_in_child=_forked)


# An extension type has one base: what several classes share is assigned in their bodies.

def _prepared(self, core, where, name, when_durable, options):
    if when_durable is not None:
        _chosen("when_durable", when_durable, ("by_next_section", "on_return"))
    pool = _pool_of(where, options)
    core.__init__(pool, name, (when_durable or pool._when_durable) == "on_return")


def _enter(self):
    return self


def _exit(self, *_):
    self.close()


def _shown(builtin):
    def __repr__(self):
        try:
            return f"{type(self).__name__}({builtin(self)!r})"
        except Error as error:
            return f"<holdfast.{type(self).__name__}, {error.code}>"
    return __repr__


# ---- Map


class _Values(abc.ValuesView):
    __slots__ = ()

    def __iter__(self):
        return self._mapping._values()

    def __contains__(self, value):
        return any(value == each for each in self)


class _Items(abc.ItemsView):
    __slots__ = ()

    def __iter__(self):
        return self._mapping._items()


def _keys(self):
    return abc.KeysView(self)


def _values(self):
    return _Values(self)


def _items(self):
    return _Items(self)


def _as_dict(self):
    return dict(self.items())


def _map_equal(self, other):
    if not isinstance(other, abc.Mapping):
        return NotImplemented
    return _as_dict(self) == _as_dict(other)


def _map_or(self, other):
    return _as_dict(self) | _as_dict(other) if isinstance(other, abc.Mapping) else NotImplemented


def _map_ror(self, other):
    return _as_dict(other) | _as_dict(self) if isinstance(other, abc.Mapping) else NotImplemented


class MapSnapshot(_core.MapSnapshot):
    """A version of a Map: a read-only mapping."""

    __class_getitem__ = classmethod(types.GenericAlias)

    keys, values, items = _keys, _values, _items
    copy, __eq__, __or__, __ror__ = _as_dict, _map_equal, _map_or, _map_ror
    __hash__ = __reversed__ = None
    __repr__, __enter__, __exit__ = _shown(_as_dict), _enter, _exit


class Map(_core.Map):
    """A durable dict, without dict's order."""

    __class_getitem__ = classmethod(types.GenericAlias)

    def __init__(self, where, name="map", *, when_durable=None, **options):
        _prepared(self, super(), where, name, when_durable, options)

    keys, values, items = _keys, _values, _items
    copy, __eq__, __or__, __ror__ = _as_dict, _map_equal, _map_or, _map_ror
    __hash__ = __reversed__ = None
    __repr__, __enter__, __exit__ = _shown(_as_dict), _enter, _exit

    def update(self, other=(), /, **more):
        """As dict.update, in one commit."""
        if hasattr(other, "items"):
            pairs = other.items()
        elif hasattr(other, "keys"):
            pairs = [(key, other[key]) for key in other.keys()]
        else:
            pairs = other
        self._update([*pairs, *more.items()])

    def __ior__(self, other):
        self.update(other)
        return self

    def popitem(self):
        for key in self:
            if (value := self.pop(key, _NOTHING)) is not _NOTHING:
                return key, value
        raise KeyError("popitem(): the map is empty")

    def snapshot(self):
        """The current version."""
        return MapSnapshot(self)


abc.Mapping.register(MapSnapshot)
abc.MutableMapping.register(Map)


# ---- Set


def _on_sets(operation):
    def method(self, other):
        return operation(set(self), set(other)) if isinstance(other, abc.Set) else NotImplemented
    return method


def _on_sets_reflected(name):
    def method(self, other):
        if not isinstance(other, abc.Set):
            return NotImplemented
        kind = frozenset if isinstance(other, frozenset) else set
        return getattr(kind, name)(kind(other), set(self))
    return method


def _on_any(operation):
    def method(self, *others):
        return operation(set(self), *others)
    return method


def _like_set(cls):
    """Gives a class what reads a set; results are the built-in type."""
    for name in ("eq", "le", "lt", "ge", "gt", "and", "or", "sub", "xor"):
        setattr(cls, f"__{name}__", _on_sets(getattr(set, f"__{name}__")))
    for name in ("and", "or", "sub", "xor"):
        setattr(cls, f"__r{name}__", _on_sets_reflected(f"__{name}__"))
    for name in ("union", "intersection", "difference", "symmetric_difference", "isdisjoint",
                 "issubset", "issuperset"):
        setattr(cls, name, _on_any(getattr(set, name)))
    cls.copy = lambda self: set(self)
    cls.__hash__ = None
    cls.__repr__, cls.__enter__, cls.__exit__ = _shown(set), _enter, _exit
    return cls


@_like_set
class SetSnapshot(_core.SetSnapshot):
    """A version of a Set: a read-only set."""

    __class_getitem__ = classmethod(types.GenericAlias)


@_like_set
class Set(_core.Set):
    """A durable set."""

    __class_getitem__ = classmethod(types.GenericAlias)

    def __init__(self, where, name="set", *, when_durable=None, **options):
        _prepared(self, super(), where, name, when_durable, options)

    def update(self, *others):
        """As set.update, in one commit; so the three below."""
        self._change([each for other in others for each in other], ())

    def difference_update(self, *others):
        self._change((), [each for other in others for each in other])

    def intersection_update(self, *others):
        mine = set(self)
        self._change((), mine - mine.intersection(*others))

    def symmetric_difference_update(self, other):
        mine, other = set(self), set(other)
        self._change(other - mine, mine & other)

    def __ior__(self, other):
        return self._in_place(self.update, other)

    def __isub__(self, other):
        return self._in_place(self.difference_update, other)

    def __iand__(self, other):
        return self._in_place(self.intersection_update, other)

    def __ixor__(self, other):
        return self._in_place(self.symmetric_difference_update, other)

    def _in_place(self, update, other):
        if not isinstance(other, abc.Set):
            return NotImplemented
        update(other)
        return self

    def snapshot(self):
        """The current version."""
        return SetSnapshot(self)


abc.Set.register(SetSnapshot)
abc.MutableSet.register(Set)


# ---- Vector


def _on_lists(operation):
    def method(self, other):
        if not isinstance(other, (list, Vector, VectorSnapshot)):
            return NotImplemented
        return operation(list(self), list(other))
    return method


def _like_list(cls):
    """Gives a class what reads a list; results are the built-in type."""
    for name in ("eq", "le", "lt", "ge", "gt", "add"):
        setattr(cls, f"__{name}__", _on_lists(getattr(list, f"__{name}__")))
    cls.__radd__ = _on_lists(lambda mine, other: other + mine)
    cls.__mul__ = cls.__rmul__ = lambda self, count: list(self) * count
    cls.__reversed__ = lambda self: iter(self[::-1])
    cls.copy = lambda self: list(self)
    cls.__hash__ = None
    cls.__repr__, cls.__enter__, cls.__exit__ = _shown(list), _enter, _exit
    return cls


@_like_list
class VectorSnapshot(_core.VectorSnapshot):
    """A version of a Vector: a read-only sequence."""

    __class_getitem__ = classmethod(types.GenericAlias)


@_like_list
class Vector(_core.Vector):
    """A durable list; slices are lists."""

    __class_getitem__ = classmethod(types.GenericAlias)

    def __init__(self, where, name="vector", *, when_durable=None, **options):
        _prepared(self, super(), where, name, when_durable, options)

    def __iadd__(self, other):
        self.extend(other)
        return self

    def __imul__(self, count):
        self[:] = list(self) * count
        return self

    def sort(self, *, key=None, reverse=False):
        """As list.sort, in one commit."""
        self[:] = sorted(self, key=key, reverse=reverse)

    def snapshot(self):
        """The current version."""
        return VectorSnapshot(self)


abc.Sequence.register(VectorSnapshot)
abc.MutableSequence.register(Vector)


# ---- Stack and queue


class StackSnapshot(_core.StackSnapshot):
    """A version of a Stack."""

    __class_getitem__ = classmethod(types.GenericAlias)

    __repr__, __enter__, __exit__ = _shown(list), _enter, _exit


class Stack(_core.Stack):
    """A durable stack; iteration starts at the top."""

    __class_getitem__ = classmethod(types.GenericAlias)

    def __init__(self, where, name="stack", *, when_durable=None, **options):
        _prepared(self, super(), where, name, when_durable, options)

    __repr__, __enter__, __exit__ = _shown(list), _enter, _exit

    def snapshot(self):
        """The current version."""
        return StackSnapshot(self)


class _Arrivals:
    """Where threads wait for an element of a queue."""

    def __init__(self):
        self._arrived = threading.Condition()
        self._waiting_count = 0

    def wake(self):
        # A getter counts itself before it looks: it has seen the element, or is counted here.
        if self._waiting_count:
            with self._arrived:
                self._arrived.notify()

    def wake_all(self):
        with self._arrived:
            self._arrived.notify_all()

    def await_one(self, take, timeout):
        ends = None if timeout is None else time.monotonic() + timeout
        with self._arrived:
            self._waiting_count += 1
            try:
                while (element := take(_NOTHING)) is _NOTHING:
                    left = None if ends is None else ends - time.monotonic()
                    if left is not None and left <= 0:
                        raise queue.Empty
                    self._arrived.wait(left)
                return element
            finally:
                self._waiting_count -= 1


class QueueSnapshot(_core.QueueSnapshot):
    """A version of a Queue."""

    __class_getitem__ = classmethod(types.GenericAlias)

    __repr__, __enter__, __exit__ = _shown(list), _enter, _exit


class Queue(_core.Queue):
    """A durable queue: queue.SimpleQueue's methods, and a deque's at its ends."""

    __class_getitem__ = classmethod(types.GenericAlias)

    def __init__(self, where, name="queue", *, when_durable=None, **options):
        _prepared(self, super(), where, name, when_durable, options)
        self._arrivals = self.pool._arrivals.setdefault(name, _Arrivals())

    __repr__, __enter__, __exit__ = _shown(list), _enter, _exit

    def put(self, element, block=True, timeout=None):
        """Adds at the back. Never waits; block and timeout are there as in queue.SimpleQueue."""
        self._put(element)
        self._arrivals.wake()

    append = put_nowait = lambda self, element: self.put(element)

    def extend(self, elements):
        """Adds all at the back, in one commit."""
        self._extend(elements)
        self._arrivals.wake_all()

    def get(self, block=True, timeout=None):
        """Takes from the front; waits for an element, timeout seconds at most.

        Raises queue.Empty if there is still no element.
        """
        if timeout is not None and timeout < 0:
            raise ValueError("'timeout' must be a non-negative number")
        element = self._take(_NOTHING)
        if element is not _NOTHING:
            return element
        if not block:
            raise queue.Empty
        return self._arrivals.await_one(self._take, timeout)

    def get_nowait(self):
        return self.get(block=False)

    def popleft(self):
        """Takes from the front. Raises IndexError if the queue is empty."""
        element = self._take(_NOTHING)
        if element is _NOTHING:
            raise IndexError("pop from an empty queue")
        return element

    def qsize(self):
        return len(self)

    def empty(self):
        return len(self) == 0

    def close(self):
        super().close()
        self._arrivals.wake_all()

    def snapshot(self):
        """The current version."""
        return QueueSnapshot(self)


from . import _object  # noqa: E402  it is made of a Map
from ._object import Object, deferrable, instant  # noqa: E402

for _each in (Object, deferrable, instant):
    _each.__module__ = "holdfast"
