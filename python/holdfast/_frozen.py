# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Lists, dicts and sets as they are read from a structure: docs/guide/python-values.md.

They compare, print and behave as the built-in types, but cannot be changed: a change would be lost, for the structure
has bytes, and what is read is made of them. Copies are of the built-in types.
"""
import copy


def _refused(name):
    def method(self, *_, **__):
        raise TypeError(f"{name}: this {self._plain.__name__} was read from a structure and is frozen, as a change of it would be lost: "
                        "change the stored value in 'with m.edit(key) as value:', or change a copy (copy.deepcopy) and store that")
    method.__name__ = name
    return method


def _frozen(plain, *changing):
    def make(cls):
        cls._plain = plain
        for name in changing:
            setattr(cls, name, _refused(name))
        cls.__copy__ = lambda self: plain(self)
        cls.__deepcopy__ = lambda self, memo: copy.deepcopy(plain(self), memo)
        cls.__reduce_ex__ = lambda self, protocol: (plain, (plain(self),))
        cls.__module__ = "holdfast"
        return cls
    return make


@_frozen(list, "append", "clear", "extend", "insert", "pop", "remove", "reverse", "sort", "__setitem__", "__delitem__", "__iadd__",
         "__imul__")
class FrozenList(list):
    __slots__ = ()


@_frozen(dict, "clear", "pop", "popitem", "setdefault", "update", "__setitem__", "__delitem__", "__ior__")
class FrozenDict(dict):
    __slots__ = ()


@_frozen(set, "add", "clear", "difference_update", "discard", "intersection_update", "pop", "remove", "symmetric_difference_update",
         "update", "__iand__", "__ior__", "__isub__", "__ixor__")
class FrozenSet(set):
    __slots__ = ()

    def __repr__(self):
        return repr(set(self))


def can_change(value):
    """Whether a change of the value can be seen in it."""
    if type(value) is tuple:
        return any(map(can_change, value))
    return isinstance(value, (list, dict, set)) or type(value).__module__ == "numpy" and hasattr(value, "__setitem__")
