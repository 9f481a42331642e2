# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""gdb shows what is in a pool: `source …/share/holdfast/gdb/holdfast.py`, in ~/.gdbinit for good.

    (gdb) print ages               handles of mod::map, set, ordered_map, vector, stack, queue, with their elements
    $1 = hf::mod::map of 2 elements = {["Ada"] = 36, ["Bob"] = 41}
    (gdb) print *opened            hf::result, hf::status
    (gdb) print $hf_offset(node)   where in its pool's file an address is
    (gdb) holdfast where node      the same in words, with the file and the part of it
    (gdb) print $hf_seen(*node)    what the thread's section sees there: stores of engine redo wait in a buffer

Reads memory and calls nothing except in $hf_seen: core files are as good as processes. It
understands nodes as docs/format/mod.md describes them; for a damaged pool it prints a line that
says so.
"""
import collections
import itertools
import re
import struct

import gdb
import gdb.printing

GRANULE = 16
BIT31 = 1 << 31
LINE = 64
ROOT_WORDS = 8192
ANCHOR_OF_MOD = ROOT_WORDS + 64 + 8 * 2
HEADER = 4096
LANES, EXTENTS = 12288, 240


READS_MAX = 1 << 19


class Damaged(Exception):
    """The pool has contents that no intact pool has."""


class Reads:
    """Counts reads since the last element found: in a damaged pool, nodes may form a cycle without elements."""
    count = 0


def read(address, layout):
    Reads.count += 1
    if Reads.count > READS_MAX:
        raise Damaged("%d nodes and no element" % READS_MAX)
    size = struct.calcsize(layout)
    return struct.unpack(layout, gdb.selected_inferior().read_memory(int(address), size).tobytes())


def aligned(count, to):
    return (count + to - 1) // to * to


class Slot:
    """How an element lies in a node: bits 0-15 bytes, 16-18 log2 of the alignment, 19 it is a blob's ref."""

    def __init__(self, bits, base, kind):
        self.bytes = bits & 0xffff
        self.align = 1 << (bits >> 16 & 7)
        self.ref = bits >> 19 & 1
        self.base = base
        self.type = kind

    def value(self, at):
        if self.ref:
            return blob(self.base, read(at, "<I")[0])[0]
        return gdb.Value(at).cast(self.type.pointer()).dereference()


def node(base, ref):
    return base + (ref & ~BIT31) * GRANULE


def blob(base, ref):
    """A key's string and a value's."""
    key, value = read(node(base, ref), "<II")
    if key + value > 1 << 30:
        raise Damaged("a string of %d bytes" % (key + value))
    text = gdb.selected_inferior().read_memory(node(base, ref) + 8, key + value).tobytes()
    return tuple(gdb.Value(part.decode("utf-8", "backslashreplace")) for part in (text[:key], text[key:]))


class Cell:
    """A root: its word, and the shape that its nodes have."""

    def __init__(self, base, index):
        self.base = base
        superblock = base + read(base + ANCHOR_OF_MOD, "<Q")[0]
        if bytes(read(superblock, "<8s")[0]) != b"HFSTMOD1":
            raise Damaged("no superblock of MOD")
        at = superblock + 1024 + 128 * index
        self.word, _, self.kind, family, member, _, self.shape = read(at, "<QQIIIIQ")
        if family:  # a member's word is in the node that the family's word names
            group = read(superblock + 1024 + 128 * (family - 1), "<Q")[0]
            self.word = read(node(base, group) + 8 * member, "<Q")[0] if group else 0

    @property
    def top(self):
        return self.word & 0xffffffff

    @property
    def count(self):
        return self.word >> 32

    def slot(self, shift, kind):
        return Slot(self.shape >> shift & 0xfffff, self.base, kind)


def entries(at, head, key, value, count):
    """Keys, then values, behind a node's head."""
    keys = at + aligned(head, key.align)
    values = at + aligned(aligned(head, key.align) + count * key.bytes, value.align)
    return ((keys + i * key.bytes, values + i * value.bytes) for i in range(count))


def trie(cell, ref, key, value, depth=0):
    at = node(cell.base, ref)
    if ref & BIT31:
        head = read(at, "<B3xI")
        in_keys = cell.shape >> 41 & 1
        for k, v in entries(at, 8, key, value, head[1] if head[0] == 0xff else head[0]):
            if in_keys:
                yield blob(cell.base, read(k, "<I")[0])
            else:
                yield key.value(k), value.value(v) if value.type else None
    elif ref:
        if depth == 16:
            raise Damaged("a way of more than 16 levels")
        for child in read(at, "<16I"):
            yield from trie(cell, child, key, value, depth + 1)


def bplus(cell, ref, key, value, depth=0):
    if not ref:
        return
    if depth == 32:
        raise Damaged("a tree of more than 32 levels")
    at = node(cell.base, ref)
    count = read(at, "<I")[0]
    if count > 255:
        raise Damaged("a node of %d entries" % count)
    if ref & BIT31:
        for k, v in entries(at, 4, key, value, count):
            yield key.value(k), value.value(v)
    else:
        child = Slot(4 | 2 << 16, cell.base, None)
        for _, place in entries(at, 4, key, child, count):
            yield from bplus(cell, read(place, "<I")[0], key, value, depth + 1)


def vector(cell, each):
    size = max(1, each.bytes)
    wanted = 64 if each.ref else 128
    bits = 0 if size >= wanted else (wanted // size).bit_length() - 1

    def below(ref, count, height):
        at = node(cell.base, ref)
        if height == 0:
            for i in range(count):
                yield each.value(at + i * size)
            return
        children = read(at, "<16I")
        if ref & BIT31:
            *ends, height, used = read(at + 64, "<15IBB")
            if used > 16 or height > 10:
                raise Damaged("a node of %d children, %d high" % (used, height))
            counts = [b - a for a, b in zip([0] + ends[:used - 1], ends[:used - 1] + [count])]
        else:
            full = 1 << bits + 4 * (height - 1)
            counts = [full] * (count // full) + ([count % full] if count % full else [])
        for child, held in zip(children, counts):
            yield from below(child, held, height - 1)

    wanted_bits = (cell.count - 1).bit_length() if cell.count else 0
    height = 0 if wanted_bits <= bits else -(-(wanted_bits - bits) // 4)
    if cell.count:
        yield from below(cell.top, cell.count, height or (1 if cell.top & BIT31 else 0))


def chunk(each, head):
    """The place of elements behind a head, and how many there are: as many as fit a line, or
    one."""
    first = max(head, each.align)
    if each.bytes == 0:
        return first, LINE
    fit = (LINE - first) // each.bytes if first + each.bytes <= LINE else 0
    return first, fit if fit >= 2 else 1


def stack(cell, each):
    first, capacity = chunk(each, 4)
    at, left = cell.top, cell.count
    while left:
        here = (left - 1) % capacity + 1
        for i in reversed(range(here)):
            yield each.value(node(cell.base, at) + first + i * each.bytes)
        left -= here
        at = read(node(cell.base, at), "<I")[0]


def queue(cell, each):
    if not cell.count:
        return
    first, capacity = chunk(each, 8)
    header = node(cell.base, cell.top)
    level, used = read(header, "<II")
    used = min(used, capacity)

    def chunks(ref, depth):  # of a level or group, oldest first; a chunk is at depth 0
        if depth == 0:
            yield ref
            return
        _, filled, *at = read(node(cell.base, ref), "<II14I")
        for below in at[:min(filled, 14)]:
            if below:
                yield from chunks(below, depth - 1)

    def levels(ref, number):  # deeper ones are older
        if ref and number <= 8:
            deeper = read(node(cell.base, ref), "<I")[0]
            yield from levels(deeper, number + 1)
            yield from chunks(ref, number)

    in_chunks = max(0, cell.count - used)
    wanted = aligned(in_chunks, capacity) // capacity
    alive = collections.deque(levels(level, 1), wanted)
    if len(alive) < wanted:
        raise Damaged("%d chunks where %d are alive" % (len(alive), wanted))
    places = (node(cell.base, c) + i * each.bytes for c in alive for i in range(capacity))
    for place in itertools.islice(places, wanted * capacity - in_chunks, None):
        yield each.value(place)
    for i in range(max(0, used - cell.count), used):
        yield each.value(header + first + i * each.bytes)


class Container:
    """A handle of a MOD container."""

    def __init__(self, value, name):
        self.value = value
        self.name = name
        self.error = ""
        self.cell = None
        Reads.count = 0
        try:  # as mod::root lies: clang describes its members only where the library is built
            _, base, _, _, _, cell = read(value["root_"], "<QQQQB3xI")
            self.cell = Cell(base, cell)
        except (Damaged, gdb.MemoryError, gdb.error, struct.error) as error:
            self.error = ": " + str(error)

    def to_string(self):
        if self.cell is None:
            return "hf::mod::%s%s" % (self.name, self.error)
        return "hf::mod::%s of %d element%s" % (self.name, self.cell.count, "" if self.cell.count == 1 else "s")

    def display_hint(self):
        return "map" if self.name in ("map", "ordered_map") else "array"

    def elements(self):
        cell = self.cell
        kind = self.value.type.strip_typedefs().template_argument
        if self.name in ("map", "ordered_map"):
            walk = trie if self.name == "map" else bplus
            for key, value in walk(cell, cell.top, cell.slot(0, kind(0)), cell.slot(20, kind(1))):
                yield from (key, value)
        elif self.name == "set":
            for key, _ in trie(cell, cell.top, cell.slot(0, kind(0)), cell.slot(20, None)):
                yield key
        else:
            walk = {"vector": vector, "stack": stack, "queue": queue}[self.name]
            yield from walk(cell, cell.slot(0, kind(0)))

    def children(self):
        if self.cell is None:
            return
        Reads.count = 0
        try:
            for i, element in enumerate(self.elements()):
                Reads.count = 0
                yield "[%d]" % i, element
        except (Damaged, gdb.MemoryError, struct.error) as error:
            yield "[damaged]", str(error)


class Status:
    def __init__(self, value):
        self.value = value

    def to_string(self):
        text = self.value["what_"]
        code = str(self.value["code_"]).rsplit("::", 1)[-1]
        return "hf::status " + code + (": " + str(text.format_string()) if code != "ok" else "")


class Result:
    def __init__(self, value):
        self.held = value["held_"] if any(f.name == "held_" for f in value.type.fields()) else None

    def to_string(self):
        if self.held is None:  # clang leaves out a class whose constructors another file has
            return "hf::result, but its class is not in the debug information: compile with -fstandalone-debug"
        found = re.search(r"\[index \d\] = \{(.*)\}$", self.held.format_string(), re.S)  # libstdc++'s printer
        return "hf::result " + (found[1] if found else str(self.held.format_string(raw=True)))


def printers():
    found = gdb.printing.RegexpCollectionPrettyPrinter("holdfast")
    for name in ("map", "set", "ordered_map", "vector", "stack", "queue"):
        found.add_printer(name, "^hf::mod::%s<.*>$" % name, lambda value, name=name: Container(value, name))
    found.add_printer("status", "^hf::status$", Status)
    found.add_printer("result", "^hf::result<.*>$", Result)
    return found


def place(address):
    """The pool that an address lies in: (file, base), or None."""
    Reads.count = 0
    try:
        text = gdb.execute("info proc mappings", to_string=True)
    except gdb.error:
        return None
    for line in text.splitlines():
        found = re.match(r"\s*(0x[0-9a-f]+)\s+(0x[0-9a-f]+)\s+0x[0-9a-f]+\s+(0x[0-9a-f]+)\s+(?:[-rwxps]+\s+)?(\S.*)$", line)
        if found and int(found[1], 16) <= address < int(found[2], 16):
            base = int(found[1], 16) - int(found[3], 16)
            try:
                if bytes(read(base, "<8s")[0]) == b"HOLDFAST":
                    return found[4], base
            except gdb.MemoryError:
                pass
    return None


class Offset(gdb.Function):
    """$hf_offset(ADDRESS): bytes from the start of the pool's file; -1: in no pool."""

    def __init__(self):
        super().__init__("hf_offset")

    def invoke(self, address):
        found = place(int(address))
        return -1 if found is None else int(address) - found[1]


class Seen(gdb.Function):
    """$hf_seen(OBJECT): the object as the section of the selected thread sees it, by a call in the process."""

    def __init__(self):
        super().__init__("hf_seen")

    def invoke(self, value):
        if value.is_optimized_out or value.address is None:
            raise gdb.GdbError("$hf_seen(OBJECT): this value is not in memory")
        kind = value.type.strip_typedefs()
        if kind.code in (gdb.TYPE_CODE_REF, gdb.TYPE_CODE_RVALUE_REF):
            value = value.referenced_value()
        try:
            seen = gdb.parse_and_eval("*(unsigned(*)(const void*))hf_redo_seen")
        except gdb.error:  # a program without engine redo: its sections store in place
            return value
        first = int(value.address)
        found = bytes(int(seen(gdb.Value(first + i).cast(value.address.type))) for i in range(value.type.sizeof))
        return gdb.Value(found, value.type)


class Where(gdb.Command):
    """holdfast where EXPRESSION: in which pool an address lies, and in which part of its file."""

    def __init__(self):
        gdb.Command("holdfast", gdb.COMMAND_DATA, prefix=True)
        super().__init__("holdfast where", gdb.COMMAND_DATA, gdb.COMPLETE_EXPRESSION)

    def invoke(self, argument, from_tty):
        if not argument:
            raise gdb.GdbError("holdfast where EXPRESSION")
        address = int(gdb.parse_and_eval(argument))
        found = place(address)
        if found is None:
            gdb.write("%#x is in no pool\n" % address)
            return
        file, base = found
        layout = bytes(read(base + 168, "<64s")[0]).split(b"\0")[0].decode("utf-8", "backslashreplace")
        gdb.write("%#x is %#x bytes into %s (layout %s): %s\n" %
                  (address, address - base, file, layout, self.part(base, address - base)))

    @staticmethod
    def part(base, offset):
        lane_bytes, lanes = read(base + 96, "<QI")
        if offset < 2 * HEADER:
            return "header"
        if offset < LANES:
            return "root words"
        if offset < LANES + lane_bytes * lanes:
            return "log lane %d" % ((offset - LANES) // lane_bytes)
        for i in range(min(128, read(base + 232, "<I")[0])):
            start, size = read(base + EXTENTS + 16 * i, "<QQ")
            if start <= offset < start + size:
                return "heap, extent %d" % i
        return "behind the heap"


gdb.printing.register_pretty_printer(None, printers(), replace=True)
Offset()
Seen()
Where()
