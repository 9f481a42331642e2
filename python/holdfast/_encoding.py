# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Values as they are stored, as far as python/core/encoding.cpp leaves them to Python code: dates and times, arrays,
decimals, registered classes. docs/format/python-values.md.

Invariants:
(1) A value has one encoding, and decode() takes no other: encode(decode(x)) == x.
(2) decode() takes any bytes. Anything but an encoding raises Error "corrupt" with the offset of the
    fault. It allocates nothing, and enters no loop, that is larger than the bytes to be read.
(3) No code of the program is run, and no class is looked up by a name in the bytes, but those that the program has
    registered.
(4) Types are exact. Any other type, subclasses included, would not come back as it was: TypeError.
"""
import dataclasses
import datetime
import decimal
import enum
import importlib
import re
import struct
import sys
import uuid

from . import _core, _frozen
from ._core import decode, encode
from ._error import Error

__all__ = ["decode", "encode"]
_core.set_frozen_types(_frozen.FrozenList, _frozen.FrozenDict, _frozen.FrozenSet)

DIMENSIONS_MAX = 32  # of an array

# Kinds; those up to ARRAY are version 1's. encoding.cpp has the others.
DATETIME, DATE, DELTA, ARRAY = range(11, 15)
DECIMAL, UUID, TIME, SCALAR = range(18, 22)
_DTYPE = re.compile(r"\|[biu]1|[<>](i[248]|u[248]|f[248]|c8|c16|[mM]8\[(Y|M|W|D|h|m|s|ms|us|ns|ps|fs|as)\])")
_DAY_S = 86_400
_MICROSECOND = datetime.timedelta(microseconds=1)


def _varint(number):
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)
    return bytes(out)


def _signed(number):
    """Numbers near zero, of either sign, in few bytes."""
    return _varint(2 * number if number >= 0 else -2 * number - 1)


def _sized(kind, data):
    return bytes((kind,)) + _varint(len(data)) + data


def _of_int(value):
    kind, size = (3, value) if value >= 0 else (4, -1 - value)
    return _sized(kind, size.to_bytes((size.bit_length() + 7) // 8, "big"))


def large_int(data, below_zero):
    number = int.from_bytes(data, "big")
    return -1 - number if below_zero else number


def _of_datetime(value):
    zone = value.tzinfo
    if zone is not None and type(zone) is not datetime.timezone:
        raise TypeError(f"cannot store a datetime in the zone {zone!r}: only the zone's offset would be kept; store "
                        "value.astimezone(datetime.timezone.utc)")
    head = struct.pack(">BH5B", DATETIME, value.year, value.month, value.day, value.hour, value.minute, value.second)
    flags = value.fold | (2 if zone is not None else 0)
    offset = b"" if zone is None else _signed(value.utcoffset() // _MICROSECOND)
    return head + value.microsecond.to_bytes(3, "big") + bytes((flags,)) + offset


def _of_delta(value):
    return bytes((DELTA,)) + _signed(value.days) + _varint(value.seconds) + _varint(value.microseconds)


def _of_array(value):
    dtype = value.dtype.str
    if not _DTYPE.fullmatch(dtype):
        raise TypeError("cannot store this array: expected elements of bool, int, float, complex, datetime64 or timedelta64, "
                        f"found {value.dtype}")
    if value.ndim > DIMENSIONS_MAX:
        raise ValueError(f"cannot store an array of more than {DIMENSIONS_MAX} dimensions")
    shape = b"".join(map(_varint, value.shape))
    return _sized(ARRAY, dtype.encode()) + _varint(value.ndim) + shape + value.tobytes()  # in C's order


def _of_scalar(value):
    dtype = value.dtype.str
    if not _DTYPE.fullmatch(dtype):
        raise TypeError(f"cannot store this numpy scalar: expected bool, int, float, complex, datetime64 or timedelta64, found {value.dtype}")
    return _sized(SCALAR, dtype.encode()) + value.tobytes()


def _of_time(value):
    if value.tzinfo is not None:
        raise TypeError("cannot store a time with a zone: store a datetime")
    return struct.pack(">4B", TIME, value.hour, value.minute, value.second) + value.microsecond.to_bytes(3, "big") + bytes((value.fold,))


_ENCODERS = {
    int: _of_int,
    datetime.datetime: _of_datetime,
    datetime.date: lambda value: struct.pack(">BHBB", DATE, value.year, value.month, value.day),
    datetime.timedelta: _of_delta,
    datetime.time: _of_time,
    decimal.Decimal: lambda value: _sized(DECIMAL, str(value).encode()),
    uuid.UUID: lambda value: bytes((UUID,)) + value.bytes,
}
_UTC = datetime.timezone.utc


def _as_key(value):
    """The one key of those that are equal to it and of its type."""
    if type(value) is datetime.datetime:
        zone = value.tzinfo
        return (value.astimezone(_UTC) if type(zone) is datetime.timezone else value).replace(fold=0)
    if type(value) is datetime.time:
        return value.replace(fold=0)
    if type(value) is decimal.Decimal and value.is_finite():
        sign, digits, exponent = value.as_tuple()
        if not value:
            return decimal.Decimal(0)
        while digits[-1] == 0:
            digits, exponent = digits[:-1], exponent + 1
        return decimal.Decimal((sign, digits, exponent))
    return value


_CALENDAR = "datetime, date, time, timedelta"
_EXPECTED = {0: f"a value of None, bool, int, float, str, bytes, Decimal, UUID, {_CALENDAR}, of numpy, of a class that is "
                "registered (holdfast.register), or tuple, list, dict, set or frozenset",
             1: f"a key or an element of a set: None, bool, int, float, str, bytes, Decimal, UUID, {_CALENDAR}, of a class that "
                "is registered (holdfast.register), or tuple or frozenset"}


def leaf(value, role):
    """What encoding.cpp stores of a value that it does not know: bytes; a tuple of another value; or a tuple of a
    registered class's name, and a value. role 0: a value, 1: it has to be hashable, 2: it is a key, too."""
    kind = type(value)
    if role == 2:
        if isinstance(value, (int, float, str, bytes)) and isinstance(value, enum.Enum):
            return (value.value,)  # to which it is equal
        value = _as_key(value)
        if isinstance(value, (str, bytes)) and kind not in _classes:
            return ((str.__str__(value) if isinstance(value, str) else bytes.__getitem__(value, slice(None))),)  # to which it is equal
    known = _classes.get(kind)
    if known is not None:
        return known.name, known.encode(value)
    simple = _ENCODERS.get(kind)
    if simple is not None:
        return simple(value)
    numpy = sys.modules.get("numpy")  # a program with an array has imported it
    if numpy is not None and isinstance(value, numpy.generic) and type(value).__module__ == "numpy":
        plain = value.item()
        return (plain,) if role == 2 and type(plain) in (bool, int, float, str, bytes) else _of_scalar(value)
    if numpy is not None and kind is numpy.ndarray and not role:
        return _of_array(value)
    if isinstance(value, enum.Enum) or dataclasses.is_dataclass(value):
        raise TypeError(f"cannot store a {kind.__name__} before its class is registered: @holdfast.register")
    for plain in (str, bytes, int, float, tuple, list, dict, set, frozenset):
        if isinstance(value, plain) and kind is not plain:
            raise TypeError(f"cannot store a {kind.__name__}, which would come back as a {plain.__name__}: store {plain.__name__}(value), or "
                            "register its class (holdfast.register)")
    raise TypeError(f"expected {_EXPECTED[min(role, 1)]} of these, not {kind.__name__}")


# ---- Registered classes


@dataclasses.dataclass(frozen=True)
class _Known:
    name: str
    encode: object
    decode: object


_classes = {}  # class: _Known
_names = {}    # name: class


def register(cls=None, *, name=None, encode=None, decode=None):
    """Lets instances of a class be stored, under a name that is the same in every program that uses the pool: by default the
    class's __qualname__. A decorator, too.

    An Enum, or a frozen dataclass, needs no more. Other classes give encode, which makes a value that can be stored of an
    instance, and decode, which makes the instance again.
    """
    if cls is None:
        return lambda given: register(given, name=name, encode=encode, decode=decode)
    if not isinstance(cls, type):
        raise TypeError(f"register: expected a class, not {cls!r}")
    name = cls.__qualname__ if name is None else name
    if (encode is None) != (decode is None):
        raise TypeError("register: expected both encode and decode, or neither")
    if encode is None and issubclass(cls, enum.Enum):
        encode, decode = (lambda member: member.name if member.name in cls.__members__ else member.value), _member_of(cls)
    elif encode is None and dataclasses.is_dataclass(cls):
        if not cls.__dataclass_params__.frozen:
            raise TypeError(f"register: {cls.__qualname__}: expected a frozen dataclass (@dataclass(frozen=True)): a change of an instance that "
                            "was read would be lost")
        encode, decode = _fields_of, _instance_of(cls)
    elif encode is None:
        raise TypeError(f"register: {cls.__qualname__}: expected an Enum, a frozen dataclass, or encode and decode")
    there = _names.get(name)
    if there is not None and (there.__module__, there.__qualname__) != (cls.__module__, cls.__qualname__):
        raise ValueError(f"register: {name!r} is the name of {there.__module__}.{there.__qualname__} already: give another name")
    _classes.pop(there, None)  # a module that was loaded again
    _names[name] = cls
    _classes[cls] = _Known(name, encode, decode)
    return cls


def _member_of(cls):
    def member(stored):
        if type(stored) is str and stored in cls.__members__:
            return cls.__members__[stored]
        try:
            return cls(stored)  # of a Flag: several members
        except (ValueError, TypeError):
            raise Error("unsupported", f"unsupported: {stored!r} is stored here, which {cls.__qualname__} has no more") from None
    return member


def _fields_of(value):
    return {each.name: getattr(value, each.name) for each in dataclasses.fields(value)}


def _instance_of(cls):
    def instance(stored):
        fields = {each.name: each for each in dataclasses.fields(cls)}
        for name, each in fields.items():
            if name in stored:
                continue
            if each.default is dataclasses.MISSING and each.default_factory is dataclasses.MISSING:
                raise Error("unsupported", f"unsupported: the {cls.__qualname__} that is stored here has no {name!r}: give the field a default")
        if not fields.keys() >= stored.keys():
            raise Error("unsupported", f"unsupported: the {cls.__qualname__} that is stored here has fields that the class has not: "
                                       f"{', '.join(sorted(map(str, stored.keys() - fields.keys())))}")
        made = object.__new__(cls)  # no code of the class is run
        for name, each in fields.items():
            value = stored[name] if name in stored else each.default if each.default_factory is dataclasses.MISSING else each.default_factory()
            object.__setattr__(made, name, value)
        return made
    return instance


def of_class(name, stored):
    """The instance of a registered class."""
    cls = _names.get(name)
    if cls is None:
        raise Error("unsupported", f"unsupported: an instance of {name!r} is stored here: call holdfast.register(…) with its class first")
    if _classes[cls].decode is None or (dataclasses.is_dataclass(cls) and not isinstance(stored, dict)):
        raise Error("corrupt", f"corrupt: expected the fields of a {name}, found {type(stored).__name__}")
    return _classes[cls].decode(stored)


# ---- Keys of a SortedMap


def _clock(value):
    return struct.pack(">H5B", value.year, value.month, value.day, value.hour, value.minute, value.second) + value.microsecond.to_bytes(3, "big")


def sortable(value):
    """The ordered part of a date's or time's key in bytes; or a key for it that encoding.cpp knows."""
    value, kind = _as_key(value), type(value)
    if kind is datetime.datetime:
        if value.tzinfo is not None and value.tzinfo is not _UTC:
            _of_datetime(value)  # raises
        return bytes((0x31 if value.tzinfo is None else 0x32,)) + _clock(value)
    if kind is datetime.date:
        return struct.pack(">BHBB", 0x30, value.year, value.month, value.day)
    if kind is datetime.timedelta:
        return struct.pack(">BI", 0x33, value.days + 10**9) + value.seconds.to_bytes(3, "big") + value.microseconds.to_bytes(3, "big")
    if isinstance(value, (int, float, str, bytes)) and isinstance(value, enum.Enum):
        return value.value
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(value, numpy.generic) and type(value.item()) in (bool, int, float):
        return value.item()
    raise TypeError("expected a key with a place in an order: None, bool, int, float, str, bytes, datetime, date, timedelta, or tuple of these, "
                    f"not {kind.__name__}")


def from_sortable(data):
    try:
        if data[0] == 0x33:
            return datetime.timedelta(int.from_bytes(data[1:5], "big") - 10**9, int.from_bytes(data[5:8], "big"), int.from_bytes(data[8:], "big"))
        if data[0] == 0x30:
            return datetime.date(*struct.unpack(">HBB", data[1:]))
        return datetime.datetime(*struct.unpack(">H5B", data[1:8]), int.from_bytes(data[8:], "big"), None if data[0] == 0x31 else _UTC)
    except (ValueError, OverflowError):
        raise Error("corrupt", "corrupt: a key of a SortedMap: expected a date or time") from None


# ---- Reading


class _Reader:
    """Takes values from the front of bytes that may be anything (2)."""

    def __init__(self, data, at, frozen):
        self.data, self.at, self.frozen = data, at, frozen

    def wrong(self, what, at=None):
        at = self.at if at is None else at
        return Error("corrupt", f"corrupt: a value's byte {at} of {len(self.data)}: {what}")

    def take(self, count):
        at = self.at
        if count > len(self.data) - at:
            raise self.wrong(f"expected {count} bytes, found {len(self.data) - at}")
        self.at = at + count
        return self.data[at:self.at]

    def varint(self, most=(1 << 63) - 1):
        begin, number, shift = self.at, 0, 0
        while True:
            byte, = self.take(1)
            number |= (byte & 127) << shift
            if byte < 128:
                break
            shift += 7
            if shift > 63:
                raise self.wrong("expected the end of a number, found more of it", begin)
        if (byte == 0 and shift) or number > most:
            raise self.wrong(f"expected a number of at most {most}, in its shortest form", begin)
        return number

    def signed(self):
        number = self.varint()
        return number >> 1 if number % 2 == 0 else -(number + 1) >> 1

    def moment(self):
        begin = self.at
        year, *rest = struct.unpack(">H5B", self.take(7))
        microsecond = int.from_bytes(self.take(3), "big")
        flags, = self.take(1)
        offset = self.signed() * _MICROSECOND if flags & 2 else None
        try:
            if flags > 3:
                raise ValueError
            zone = None if offset is None else datetime.timezone(offset)
            return datetime.datetime(year, *rest, microsecond, zone, fold=flags & 1)
        except ValueError:
            raise self.wrong("expected a date and time", begin) from None

    def day(self):
        begin = self.at
        try:
            return datetime.date(*struct.unpack(">HBB", self.take(4)))
        except ValueError:
            raise self.wrong("expected a date", begin) from None

    def delta(self):
        begin = self.at
        days, seconds, microseconds = self.signed(), self.varint(_DAY_S - 1), self.varint(999_999)
        try:
            return datetime.timedelta(days, seconds, microseconds)
        except OverflowError:
            raise self.wrong("expected the length of a time", begin) from None

    def elements(self):
        """numpy, and the type of an array's elements."""
        begin = self.at
        name = self.take(self.varint(16)).decode("latin-1")
        if not _DTYPE.fullmatch(name):
            raise self.wrong("expected the type of an array's elements", begin)
        try:
            numpy = importlib.import_module("numpy")
        except ImportError:
            raise Error("unsupported", "unsupported: an array or number of numpy is stored here, and numpy is not installed: install numpy") from None
        return numpy, numpy.dtype(name)

    def scalar(self):
        numpy, dtype = self.elements()
        return numpy.frombuffer(self.take(dtype.itemsize), dtype)[0]

    def array(self):
        begin = self.at
        numpy, dtype = self.elements()
        shape = [self.varint() for _ in range(self.varint(DIMENSIONS_MAX))]
        elements = 1
        for each in shape:
            elements *= each
        data = self.take(elements * dtype.itemsize)
        try:
            found = numpy.frombuffer(data, dtype).reshape(shape)  # which cannot be changed: the bytes are
            return found if self.frozen else found.copy()
        except ValueError:  # empty, with other dimensions that no array has
            raise self.wrong("expected the shape of an array", begin) from None

    def time(self):
        begin = self.at
        hour, minute, second = self.take(3)
        microsecond = int.from_bytes(self.take(3), "big")
        fold, = self.take(1)
        try:
            return datetime.time(hour, minute, second, microsecond, fold=fold)
        except ValueError:
            raise self.wrong("expected a time", begin) from None

    def decimal(self):
        begin = self.at
        text = self.take(self.varint()).decode("latin-1")
        try:
            found = decimal.Decimal(text)
        except decimal.InvalidOperation:
            found = None
        if str(found) != text:
            raise self.wrong("expected a decimal", begin)
        return found


_READERS = {
    DATETIME: _Reader.moment, DATE: _Reader.day, DELTA: _Reader.delta, ARRAY: _Reader.array, TIME: _Reader.time,
    DECIMAL: _Reader.decimal, UUID: lambda reader: uuid.UUID(bytes=reader.take(16)), SCALAR: _Reader.scalar,
}


def read_leaf(data, where):
    """The value of the encoding that begins there, and where it ends. where: offset, and whether arrays are frozen."""
    at, frozen = where
    reader = _Reader(data, at + 1, frozen)
    return _READERS[data[at]](reader), reader.at
