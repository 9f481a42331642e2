# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Map, Set, Vector, Stack and Queue: the extension module's, with what Python's own types can do."""
import collections.abc as abc
import contextlib
import copy
import queue
import re
import threading
import time
import types

from . import _chosen, _core, _frozen, _pool_of
from ._error import Error

_NOTHING = object()  # what is stored may be None

# An extension type has one base: what several classes share is assigned in their bodies.

def _prepared(self, core, where, name, when_durable, options):
    if when_durable is not None:
        _chosen("when_durable", when_durable, ("by_next_section", "on_return"))
    if not isinstance(name, str):
        raise TypeError(f"name: expected a str, the structure's name in the pool, not {name!r}")
    pool = _pool_of(where, options)
    try:
        core.__init__(pool, name, (when_durable or pool._when_durable) == "on_return")
    except Error as error:
        raise _in_words_of_python(error, pool, name, type(self).__name__) from None


# What src/mod calls a structure, and the shape of its root.
_CLASSES = {("map", "0x10200000a0004"): "Map", ("map", "0x10100000a0004"): "Set", ("ordered_map", "0x100a0004a0004"): "SortedMap"}


def _in_words_of_python(error, pool, name, wanted):
    found = re.search(r"found (\w+) (?:of|\([^()]*;) shape (0x[0-9a-f]+)\)?$", error.message) if error.code == "wrong_layout" else None
    if found is None:
        return error
    kind = found[1].capitalize() if found[1] in ("vector", "stack", "queue") else _CLASSES.get((found[1], found[2]), f"C++ {found[1]} of other types")
    return Error(error.code, f"{pool.path}: wrong_layout: {name!r} is a {kind}, not a {wanted}: open it as what it is, or give another name")


@contextlib.contextmanager
def _edit(self, key, default=_NOTHING):
    """with m.edit(key) as value: the stored value, to be changed in the block, and stored once at its end; if the block raises,
    it is not stored. Without the key: a copy of default.

    Raises KeyError without the key and default; TypeError if the value is one that does not change, as a str; Error "conflict" at the
    end if the value was stored by others meanwhile, unless they use edit() too, which waits.
    """
    pool = self.pool
    with contextlib.nullcontext() if pool._in_transaction else pool._edits:
        before = self._stored(key)
        if before is None and default is _NOTHING:
            raise KeyError(key)
        value = copy.deepcopy(default) if before is None else _core.thawed(before)
        if not _frozen.can_change(value):
            raise TypeError(f"edit: expected a list, dict, set or array, found {type(value).__name__}, which does not change: "
                            "store another one, or use add(key, amount)")
        yield value
        if not self._exchange(key, before, value):
            raise Error("conflict", f"conflict: {key!r} was changed by others while it was edited: nothing is stored; edit it again")


def _view(self, key, /):
    """A read-only memoryview of stored bytes or of a stored array, without a copy; numpy.asarray(m.view(key)) is an array.

    It is of the current version, and stays what it is whatever is stored since. The pool cannot be closed before it is released
    (BufferError). Raises TypeError of another value.
    """
    return self.snapshot().view(key)


def _reduce(self, protocol):
    raise TypeError(f"a {type(self).__name__} is in its pool, and cannot be copied or pickled: copy() gives a value of a built-in type; another "
                    "process opens the pool by its path")


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


def _map_update(self, other=(), /, **more):
    """As dict.update, in one commit."""
    if hasattr(other, "items"):
        pairs = other.items()
    elif hasattr(other, "keys"):
        pairs = [(key, other[key]) for key in other.keys()]
    else:
        pairs = other
    self._change([*pairs, *more.items()], ())


def _map_ior(self, other):
    self.update(other)
    return self


def _map_popitem(self):
    for key in self:
        if (value := self.pop(key, _NOTHING)) is not _NOTHING:
            return key, value
    raise KeyError("popitem(): the map is empty")


class Map(_core.Map):
    """A durable dict, without dict's order."""

    __class_getitem__ = classmethod(types.GenericAlias)

    def __init__(self, where, name="map", *, when_durable=None, **options):
        _prepared(self, super(), where, name, when_durable, options)

    keys, values, items = _keys, _values, _items
    copy, __eq__, __or__, __ror__ = _as_dict, _map_equal, _map_or, _map_ror
    __hash__ = __reversed__ = None
    __repr__, __enter__, __exit__ = _shown(_as_dict), _enter, _exit

    update, __ior__, popitem, edit, view = _map_update, _map_ior, _map_popitem, _edit, _view

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

    edit, view = _edit, _view

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
        if self.pool._in_transaction:
            raise RuntimeError("get: the queue is empty, and an element cannot come while a transaction is open: get(block=False)")
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


for _each in (Map, MapSnapshot, Set, SetSnapshot, Vector, VectorSnapshot, Stack, StackSnapshot, Queue, QueueSnapshot):
    _each.__reduce_ex__ = _reduce
