# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Values other than str and bytes as they are stored: docs/format/python-values.md.

Invariants:
(1) A value has one encoding, and decode() takes no other: encode(decode(x)) == x.
(2) decode() takes any bytes. Anything but an encoding raises Error "corrupt" with the offset of the
    fault. It allocates nothing, and enters no loop, that is larger than the bytes to be read.
(3) Nothing of the program is run: no class is looked up by a name in the bytes.
(4) Types are exact. Any other type, subclasses included, would not come back as it was: TypeError.
"""
import datetime
import importlib
import re
import struct
import sys

from ._error import Error

DEPTH_MAX = 64       # of containers in containers; a list that holds itself ends here, too
DIMENSIONS_MAX = 32  # of an array

NONE, FALSE, TRUE, NATURAL, NEGATIVE, FLOAT, STR, BYTES, TUPLE, LIST, DICT, DATETIME, DATE, DELTA, ARRAY = range(15)
_DTYPE = re.compile(r"\|[biu]1|[<>](i[248]|u[248]|f[248]|c8|c16|[mM]8\[(Y|M|W|D|h|m|s|ms|us|ns|ps|fs|as)\])")
_NAN = b"\x7f\xf8" + bytes(6)
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
    kind, size = (NATURAL, value) if value >= 0 else (NEGATIVE, -1 - value)
    return _sized(kind, size.to_bytes((size.bit_length() + 7) // 8, "big"))


def _of_float(value):
    return bytes((FLOAT,)) + (struct.pack(">d", value) if value == value else _NAN)


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


def _in_order(value, depth):
    """A dict's entries, encoded, in the one order that they have (1)."""
    pairs = sorted((_encoded(key, depth, True), _encoded(each, depth, False)) for key, each in value.items())
    for (before, _), (after, _) in zip(pairs, pairs[1:]):
        if before == after:
            raise ValueError("cannot store a dict with two keys that are not a number (nan)")
    return b"".join(part for pair in pairs for part in pair)


_ENCODERS = {
    type(None): lambda value: bytes((NONE,)),
    bool: lambda value: bytes((TRUE if value else FALSE,)),
    int: _of_int,
    float: _of_float,
    str: lambda value: _sized(STR, value.encode()),
    bytes: lambda value: _sized(BYTES, value),
    datetime.datetime: _of_datetime,
    datetime.date: lambda value: struct.pack(">BHBB", DATE, value.year, value.month, value.day),
    datetime.timedelta: _of_delta,
}


def _encoded(value, depth, hashable):
    kind = type(value)
    simple = _ENCODERS.get(kind)
    if simple is not None:
        return simple(value)
    if kind is tuple or (kind in (list, dict) and not hashable):
        if depth == DEPTH_MAX:
            raise ValueError(f"cannot store what is nested deeper than {DEPTH_MAX}, or contains itself")
        if kind is dict:
            return bytes((DICT,)) + _varint(len(value)) + _in_order(value, depth + 1)
        items = b"".join([_encoded(each, depth + 1, hashable) for each in value])
        return bytes((TUPLE if kind is tuple else LIST,)) + _varint(len(value)) + items
    numpy = sys.modules.get("numpy")  # a program with an array has imported it
    if numpy is not None and kind is numpy.ndarray and not hashable:
        return _of_array(value)
    what = "a key or an element of a set" if hashable else "a value"
    raise TypeError(f"expected {what} of str, bytes, int, float, bool, None, datetime, date, timedelta, or tuple"
                    f"{'' if hashable else ', list, dict or numpy array'} of these, not {kind.__name__}")


def encode(value, hashable=False):
    """The value's one encoding. Hashable: for a key; lists, dicts and arrays are refused as dict
    refuses them."""
    return _encoded(value, 0, hashable)


class _Reader:
    """Takes values from the front of bytes that may be anything (2)."""

    def __init__(self, data):
        self.data, self.at = data, 0

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

    def count(self, bytes_each):
        """The number of items that follow, each of at least so many bytes (2)."""
        begin, number = self.at, self.varint()
        if number * bytes_each > len(self.data) - self.at:
            raise self.wrong(f"expected {number} items, found {len(self.data) - self.at} bytes", begin)
        return number

    def integer(self, kind):
        begin = self.at
        size = self.take(self.varint())
        if size[:1] == b"\0":
            raise self.wrong("expected a number in its shortest form", begin)
        number = int.from_bytes(size, "big")
        return number if kind == NATURAL else -1 - number

    def real(self):
        begin = self.at
        data = self.take(8)
        number, = struct.unpack(">d", data)
        if number != number and data != _NAN:
            raise self.wrong("expected the one not-a-number that is stored, found another", begin)
        return number

    def text(self):
        data = self.take(self.varint())
        try:
            return data.decode()
        except UnicodeDecodeError as error:
            raise self.wrong("expected UTF-8", self.at - len(data) + error.start) from None

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

    def array(self):
        begin = self.at
        name = self.take(self.varint(16)).decode("latin-1")
        if not _DTYPE.fullmatch(name):
            raise self.wrong("expected the type of an array's elements", begin)
        try:
            numpy = importlib.import_module("numpy")
        except ImportError:
            raise Error("unsupported", "unsupported: a numpy array is stored here, and numpy is not installed: install numpy") from None
        dtype = numpy.dtype(name)
        shape = [self.varint() for _ in range(self.varint(DIMENSIONS_MAX))]
        elements = 1
        for each in shape:
            elements *= each
        data = self.take(elements * dtype.itemsize)
        try:
            return numpy.frombuffer(data, dtype).reshape(shape).copy()
        except ValueError:  # empty, with other dimensions that no array has
            raise self.wrong("expected the shape of an array", begin) from None

    def entries(self, depth):
        begin, count, found, last = self.at, self.count(2), {}, b""
        for _ in range(count):
            at = self.at
            key = self.value(depth, True)
            written = self.data[at:self.at]
            if written <= last:
                raise self.wrong("expected a key that sorts above the one before it", at)
            last = written
            found[key] = self.value(depth, False)
        if len(found) != count:
            raise self.wrong("expected a dict of different keys", begin)
        return found

    def value(self, depth, hashable):
        begin = self.at
        kind, = self.take(1)
        if kind in _SIMPLE:
            return _SIMPLE[kind](self)
        if kind in (NATURAL, NEGATIVE):
            return self.integer(kind)
        if kind > ARRAY or (hashable and kind != TUPLE):
            raise self.wrong(f"expected the kind of a {'key' if hashable else 'value'}, found {kind}", begin)
        if kind == ARRAY:
            return self.array()
        if depth == DEPTH_MAX:
            raise self.wrong(f"expected at most {DEPTH_MAX} levels, found more", begin)
        if kind == DICT:
            return self.entries(depth + 1)
        items = [self.value(depth + 1, hashable) for _ in range(self.count(1))]
        return tuple(items) if kind == TUPLE else items


_SIMPLE = {
    NONE: lambda reader: None, FALSE: lambda reader: False, TRUE: lambda reader: True,
    FLOAT: _Reader.real, STR: _Reader.text, BYTES: lambda reader: bytes(reader.take(reader.varint())),
    DATETIME: _Reader.moment, DATE: _Reader.day, DELTA: _Reader.delta,
}


def decode(data):
    """The value again. Raises Error "corrupt" when the bytes are no encoding."""
    reader = _Reader(data)
    value = reader.value(0, False)
    if reader.at != len(data):
        raise reader.wrong("expected the end of the value, found more bytes")
    return value
