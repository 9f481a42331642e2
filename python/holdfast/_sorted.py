# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""SortedMap: a durable dict in the order of its keys."""
import collections.abc as abc
import types

from . import _core
from ._structures import (_as_dict, _edit, _enter, _exit, _items, _keys, _map_equal, _map_ior, _map_or, _map_ror, _map_update,
                          _prepared, _reduce, _shown, _values, _view)

_ELEMENTS, _VALUES, _PAIRS = range(3)  # what a cursor gives


def _between(self, start, stop, reverse, what):
    """start is in the range, and stop is not; nor are keys that are equal to it, whatever their types."""
    return self._between(None if start is None else (start, False), None if stop is None else (stop, False), reverse, what)


def _range(self, start=None, stop=None, *, reverse=False):
    """Pairs of key and value with start <= key < stop, in order; None is no bound."""
    return _between(self, start, stop, reverse, _PAIRS)


def _prefix(self, prefix, *, reverse=False):
    """Pairs whose key, a str or bytes as the prefix, begins with it, in order."""
    return self._beginning(prefix, reverse, _PAIRS)


def _end(self, reverse):
    for pair in _between(self, None, None, reverse, _PAIRS):
        return pair
    raise KeyError("the map is empty")


def _first(self):
    """The first key and its value. Raises KeyError if the map is empty."""
    return _end(self, False)


def _last(self):
    """The last key and its value. Raises KeyError if the map is empty."""
    return _end(self, True)


def _sorted_values(self):
    return _between(self, None, None, False, _VALUES)


def _sorted_items(self):
    return _between(self, None, None, False, _PAIRS)


def _reversed(self):
    return _between(self, None, None, True, _ELEMENTS)


class SortedMapSnapshot(_core.SortedMapSnapshot):
    """A version of a SortedMap: a read-only mapping."""

    __class_getitem__ = classmethod(types.GenericAlias)

    keys, values, items, _values, _items = _keys, _values, _items, _sorted_values, _sorted_items
    range, prefix, first, last, __reversed__ = _range, _prefix, _first, _last, _reversed
    copy, __eq__, __or__, __ror__ = _as_dict, _map_equal, _map_or, _map_ror
    __hash__ = None
    __repr__, __enter__, __exit__ = _shown(_as_dict), _enter, _exit


class SortedMap(_core.SortedMap):
    """A durable dict in the order of its keys: None, numbers, str, bytes, dates and times, and tuples of them."""

    __class_getitem__ = classmethod(types.GenericAlias)

    def __init__(self, where, name="sorted map", *, when_durable=None, **options):
        _prepared(self, super(), where, name, when_durable, options)

    keys, values, items, _values, _items = _keys, _values, _items, _sorted_values, _sorted_items
    range, prefix, first, last, __reversed__ = _range, _prefix, _first, _last, _reversed
    copy, __eq__, __or__, __ror__ = _as_dict, _map_equal, _map_or, _map_ror
    __hash__ = None
    __repr__, __enter__, __exit__ = _shown(_as_dict), _enter, _exit
    update, __ior__, edit, view = _map_update, _map_ior, _edit, _view

    def popitem(self, last=True):
        """Takes the last pair of key and value out, or the first."""
        while True:
            key, _ = _end(self, last)
            try:
                return key, self.pop(key)
            except KeyError:  # another thread has taken it
                continue

    def erase(self, start=None, stop=None):
        """Erases the keys with start <= key < stop, in one commit. Returns their number."""
        gone = list(_between(self, start, stop, False, _ELEMENTS))
        self._change((), gone)
        return len(gone)

    def snapshot(self):
        """The current version."""
        return SortedMapSnapshot(self)


SortedMap.__reduce_ex__ = SortedMapSnapshot.__reduce_ex__ = _reduce
abc.Mapping.register(SortedMapSnapshot)
abc.MutableMapping.register(SortedMap)
