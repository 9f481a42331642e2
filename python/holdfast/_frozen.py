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


def _as_list(name):
    operation = getattr(list, name)

    def method(self, other):
        if type(other) is FrozenList:
            other = list(other)
        elif isinstance(other, tuple):  # whose own comparison would find a tuple in this
            if name in ("__eq__", "__ne__"):
                return name == "__ne__"
            raise TypeError(f"{name}: expected a list, found {type(other).__name__}")
        return operation(list(self), other)
    return method


@_frozen(list, "append", "clear", "extend", "insert", "pop", "remove", "reverse", "sort", "__setitem__", "__delitem__", "__iadd__",
         "__imul__")
class FrozenList(tuple):
    """A tuple below, so that no C function that takes lists, as those of heapq, changes it unseen; else it is as a list."""

    __slots__ = ()
    __class__ = property(lambda self: list)  # for isinstance(value, list)
    __hash__ = None
    __eq__, __ne__, __lt__, __le__, __gt__, __ge__ = map(_as_list, ("__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__"))
    __repr__ = __str__ = lambda self: repr(list(self))
    __add__ = lambda self, other: list(self) + other
    __radd__ = lambda self, other: other + list(self)
    __mul__ = __rmul__ = lambda self, count: list(self) * count
    __reversed__ = lambda self: reversed(list(self))
    copy = lambda self: list(self)

    def __getitem__(self, index):
        found = tuple.__getitem__(self, index)
        return list(found) if isinstance(index, slice) else found


@_frozen(dict, "clear", "pop", "popitem", "setdefault", "update", "__setitem__", "__delitem__", "__ior__")
class FrozenDict(dict):
    __slots__ = ()


def _as_set(name):
    operation = getattr(set, name)
    return lambda self, *others: operation(set(self), *others)


@_frozen(set, "add", "clear", "difference_update", "discard", "intersection_update", "pop", "remove", "symmetric_difference_update",
         "update", "__iand__", "__ior__", "__isub__", "__ixor__")
class FrozenSet(frozenset):
    """A frozenset below, with its hash, for it is equal to one: a set of sets can be asked for it. What is made of it is a set."""

    __slots__ = ()
    __class__ = property(lambda self: set)
    __repr__ = lambda self: repr(set(self))


for _name in ("union", "intersection", "difference", "symmetric_difference", "copy", *(f"__{side}{name}__" for side in ("", "r")
                                                                                      for name in ("and", "or", "sub", "xor"))):
    setattr(FrozenSet, _name, _as_set(_name))


def can_change(value):
    """Whether a change of the value can be seen in it."""
    if type(value) is tuple:
        return any(map(can_change, value))
    return isinstance(value, (list, dict, set)) or type(value).__module__ == "numpy" and hasattr(value, "__setitem__")
