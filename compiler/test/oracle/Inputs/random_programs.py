# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes random failure-atomic programs for the oracle.

Program INDEX of SEED is the same text whatever else is written with it: its random numbers come from
'SEED/INDEX' alone. A program is a failure-atomic function with helpers of its own. It works on two
arrays of words that may be one or overlap, bytes of them, a ring of items (nested structs, arrays,
bit-fields, packed fields of several widths) reached by two pointers that may be one, fresh blocks, a
slot whose type changes, and preserved volatile words; in loops whose indices and pointers change,
branches, switches, early returns, recursion, copies and moves of constant and variable length. A throwing
program, for engine redo, has exceptions besides: thrown anywhere, caught inside, thrown on, or leaving the section. A calling
program, for engine redo, has those, and calls functions by their addresses: of tables that others might change, of virtual functions,
of members. A locking
program, for engine justdo, takes and releases locks inside, in every way that the standard library has.

'features' says what a program contains, so that a test can see that the mix has not degenerated.
"""
import random

PRELUDE = """#include "oracle.hpp"

#include <cstring>
#include <new>

using oracle::at;
using word = unsigned long;
struct part {
    int x;
    short y[2];
};
struct __attribute__((packed)) tight {
    unsigned char c;
    unsigned u;
    unsigned short s;
    word w;
};
struct item {
    item* next;
    word d;
    unsigned a;
    unsigned short c;
    unsigned char b;
    part in[2];
    unsigned lo : 7, mid : 18, hi : 7;
    unsigned char tail[9];
    tight t;
    word many[4];
};
struct words {
    word x[3];
};
struct thrown {
    word what;
};
using oracle::digested;

static constexpr int item_count = 6;
static item* items() { return at<item>(1024); }
static word volatile_words[4];
static void fill() {
    for (word i = 0; i < 80; ++i) at<word>(0)[i] = i * i * 37 + 11;
    for (int i = 0; i < item_count; ++i) {
        std::memset(static_cast<void*>(&items()[i]), 17 * i + 3, sizeof(item));
        items()[i].next = &items()[(i * 5 + 1) % item_count];
    }
    for (word i = 0; i < 4; ++i) volatile_words[i] = i * 1000003 + 77;
    for (int i = 0; i < 4; ++i) { // to be taken
        auto* spare = ::new (at<item>(2048) + i) item;
        std::memset(static_cast<void*>(spare), 5 * i + 1, sizeof(item));
        spare->next = *at<item*>(2040);
        *at<item*>(2040) = spare;
    }
}
static inline void scaled(word* __restrict to, const word* __restrict from) { *to = *from * 3 + 1; }
__attribute__((noinline)) static word read_two(const word* p) { return p[0] ^ p[1]; }
__attribute__((noinline)) static void write_one(word* p, word v) { *p = v; }
__attribute__((noinline, malloc)) static item* take(item** head) {
    item* taken = *head;
    *head = taken->next;
    return taken;
}
__attribute__((noinline)) static item* fresh_item(word v) {
    auto* made = static_cast<item*>(hf_alloc(sizeof(item)));
    if (made == nullptr) return nullptr;
    std::memset(static_cast<void*>(made), 0, sizeof(item));
    made->d = v;
    return made;
}
__attribute__((noinline)) static item* fresh_or(item* other, word v) {
    item* made = v & 1 ? fresh_item(v) : nullptr;
    return made != nullptr ? made : other;
}
"""


class Writer:
    KIND = "random"
    PROMISE = " noexcept"

    def __init__(self, seed, index):
        self.name = f"{self.KIND}_{seed}_{index}"
        self.random = random.Random(f"{seed}/{index}")
        self.features = set()
        self.helpers = []   # names of this program's own
        self.locals = 0
        self.returns = ""   # what 'return' takes here

    # --- Expressions -----------------------------------------------------------------------------

    def pick(self, *forms):
        return self.random.choice(forms)

    def number(self, below):
        return self.random.randrange(below)

    def array(self):
        return self.pick("a", "b")

    def index(self, loops):
        forms = ["{c}", "((x + {c}) & 15)", "(y & 15)", f"({self.array()}[{{c}}] & 15)"]
        forms += [f"(({i} + {{c}}) & 15)" for i in loops] * 3
        forms += [f"((15 - {i}) & 15)" for i in loops]
        return self.pick(*forms).format(c=self.number(16))

    def item(self):
        return self.pick("p", "q", "p", "q", "p->next", "q->next")

    def field(self, loops):
        one = self.pick("d", "d", "a", "c", "b", "in[0].x", "in[1].x", f"in[{self.number(2)}].y[{self.number(2)}]",
                        "lo", "mid", "hi", f"tail[{self.number(9)}]", "t.c", "t.u", "t.s", "t.w",
                        f"many[{self.number(4)}]", "many[{i} & 3]")
        if "{i}" in one:
            one = one.format(i=self.pick("x", "y", *loops))
        if one in ("lo", "mid", "hi"):
            self.features.add("bit-field")
        return f"{self.item()}->{one}"

    def place(self, loops):
        return self.pick(f"{self.array()}[{self.index(loops)}]", f"{self.array()}[{self.index(loops)}]",
                         self.field(loops))

    def operand(self, loops):
        place = f"static_cast<word>({self.place(loops)})"
        return self.pick("x", "y", str(1 + self.number(9)), place, place)

    def value(self, loops):
        return f"{self.operand(loops)} {self.pick('+', '*', '^', '-', '|')} {self.operand(loops)}"

    def condition(self, loops):
        return self.pick(f"({self.value(loops)}) & {1 << self.number(3)}",
                         f"{self.operand(loops)} < {self.operand(loops)}",
                         f"({self.value(loops)}) % 3 == 1")

    # --- Statements ------------------------------------------------------------------------------

    def store(self, loops):
        place = self.place(loops)
        return f"{place} = static_cast<decltype(+{place})>({self.value(loops)});"

    def update(self, loops):
        place = self.place(loops)
        return f"{place} = static_cast<decltype(+{place})>({place} {self.pick('+', '*', '^')} ({self.value(loops)}));"

    def load(self, loops):
        return f"{self.pick('x', 'y')} = {self.value(loops)};"

    def bytewise(self, loops):
        at = self.pick(str(self.number(128)), "((x + y) & 127)", *[f"(({i} * 5 + 3) & 127)" for i in loops])
        return f"reinterpret_cast<unsigned char*>({self.array()})[{at}] += static_cast<unsigned char>({self.operand(loops)});"

    def unaligned(self, loops):
        del loops
        kind, bytes_ = self.pick(("unsigned short", 2), ("unsigned", 4), ("word", 8))
        here, there = self.number(128 - bytes_), self.number(128 - bytes_)
        return (f"{{ {kind} u; std::memcpy(&u, reinterpret_cast<char*>({self.array()}) + {here}, {bytes_}); "
                f"u = static_cast<{kind}>(u * 3 + x); "
                f"std::memcpy(reinterpret_cast<char*>({self.array()}) + {there}, &u, {bytes_}); }}")

    def move(self, loops):
        self.features.add("memmove")
        length = self.pick(str(8 * (1 + self.number(6))), str(1 + self.number(40)), f"({self.operand(loops)} & 31)")
        return (f"std::memmove(reinterpret_cast<char*>({self.array()}) + {self.number(80)}, "
                f"reinterpret_cast<char*>({self.array()}) + {self.number(80)}, {length});")

    def copy(self, loops):
        self.features.add("memcpy")
        length = self.pick(str(1 + self.number(48)), f"({self.operand(loops)} & 31)")
        # Apart, whatever the arguments are: the halves of two items.
        here, there = self.pick(("p", "q"), ("q", "p"), ("p->next", "p"))
        return self.pick(
            f"if ({here} != {there}) std::memcpy({here}->many, {there}->many, {8 * (1 + self.number(4))});",
            f"{{ char local[48]; std::memcpy(local, {self.array()} + {self.number(9)}, {length}); "
            f"local[{self.number(48)}] = 'x'; std::memcpy(local + 40, &y, 8); "
            f"std::memcpy({self.array()} + {self.number(9)}, local + 40, 8); }}",
            # They may overlap, and one assignment would then mean nothing.
            f"{{ const words w = *reinterpret_cast<words*>({self.array()} + {self.number(13)}); "
            f"*reinterpret_cast<words*>({self.array()} + {self.number(13)}) = w; }}",
            f"{here}->in[{self.number(2)}] = {there}->in[{self.number(2)}];",
            f"{here}->t = {there}->t;")

    def string(self, loops):
        self.features.add("memset")
        length = self.pick(str(1 + self.number(30)), f"({self.operand(loops)} & 31)")
        return (f"std::memset(reinterpret_cast<char*>({self.array()}) + {self.number(96)}, "
                f"static_cast<int>(y & 127), {length});")

    def compare(self, loops):
        del loops
        return (f"x += std::memcmp({self.array()} + {self.number(8)}, {self.array()} + {self.number(8)}, "
                f"{1 + self.number(60)}) > 0;")

    def helper(self, loops):
        self.features.add("helper")
        shared = [f"x += read_two({self.array()} + {self.number(14)});",
                  f"write_one(&{self.array()}[{self.index(loops)}], {self.value(loops)});",
                  # Two pointers to one word would break what 'restrict' promises.
                  f"{{ word* to = &{self.array()}[{self.index(loops)}]; word* from = &{self.array()}[{self.index(loops)}]; "
                  "if (to != from) scaled(to, from); }"]
        own = [f"x += {h}({self.pick('a, b', 'b, a', 'a + 1, b')}, {self.pick('p, q', 'q, p', 'p->next, p')}, "
               f"{self.operand(loops)}, DEPTH);" for h in self.helpers if len(loops) < 2]
        return self.pick(*shared, *own, *own)

    def chase(self, loops):
        self.features.add("pointer chasing")
        return self.pick("p = p->next;", "q = q->next;", "q = p;", "p = q->next;",
                         f"p->next = {self.pick('q', 'q->next', 'p->next->next')};",
                         "{ item* r = p->next; p->next = r->next; hf_free(r); }",
                         f"if ({self.condition(loops)}) q = p->next;",
                         f"q = {self.condition(loops)} ? p : q->next;")

    def fresh(self, loops):
        self.features.add("allocation")
        place = self.place(loops)
        return self.pick(
            f"if (auto* f = static_cast<word*>(hf_alloc(16))) {{ f[0] = {self.value(loops)}; f[1] = f[0] + x; "
            f"{place} = static_cast<decltype(+{place})>(f[0] ^ f[1]); hf_free(f); }}",
            f"if (item* f = fresh_item({self.value(loops)})) {{ f->next = p->next; f->a = q->a + 1; p->next = f; "
            f"f->d += {self.operand(loops)}; }}",
            f"{{ item* f = fresh_or(q, x); f->d = f->d * 5 + y; f->a = static_cast<unsigned>(f->d); }}",
            f"{{ item* f = fresh_item(y); item* m = f != nullptr && {self.condition(loops)} ? f : p; "
            f"m->d += 3; m->many[1] = m->many[0] + x; }}",
            # One that no other pointer leads to, as 'malloc' promises.
            "if (auto** spare = static_cast<item**>(oracle_place(2040)); *spare != nullptr) { item* own = take(spare); "
            "own->d ^= x; own->next = p->next; p->next = own; }")

    def recreate(self, loops):
        self.features.add("type change")
        return (f"{{ long* slot = static_cast<long*>(oracle_place(904)); long t = *slot & 1023; auto* d = new (slot) double(double(t) * 1.5); "
                f"d[0] += double({self.operand(loops)} & 255); double e = *d; new (slot) long(long(e) + 1); }}")

    def pure(self, loops):
        self.features.add("pure call")
        where = f"reinterpret_cast<digested*>({self.pick('p', 'q')}->many)"
        return self.pick(f"x += oracle_digest(*{where});", f"*{where} = oracle_spread({self.operand(loops)});",
                         f"p->many[{self.number(4)}] = oracle_digest(*{where});")

    def leave(self, loops):
        self.features.add("early return")
        return f"if ({self.condition(loops)}) return{self.returns};"

    SIMPLE = [(store, 5), (update, 4), (load, 4), (bytewise, 1), (unaligned, 1), (move, 1), (copy, 2), (string, 1),
              (compare, 1), (helper, 2), (chase, 2), (fresh, 1), (recreate, 1), (pure, 1)]

    def block(self, depth, loops, most=4):
        return "".join(self.statement(depth, loops) for _ in range(1 + self.number(most)))

    def statement(self, depth, loops):
        pad = "    " * depth
        if depth < 4 and self.number(10) < 3:
            return self.compound(depth, loops, pad)
        if depth > 1 and self.number(20) == 0:
            return f"{pad}{self.leave(loops)}\n"
        makers, weights = zip(*self.SIMPLE)
        return pad + self.random.choices(makers, weights)[0](self, loops) + "\n"

    def compound(self, depth, loops, pad):
        kind = self.pick("if", "if", "switch", "for", "for", "while", "walk") if len(loops) < 2 else self.pick("if", "switch")
        if kind == "if":
            other = f"{pad}}} else {{\n{self.block(depth + 1, loops)}" if self.number(2) else ""
            return f"{pad}if ({self.condition(loops)}) {{\n{self.block(depth + 1, loops)}{other}{pad}}}\n"
        if kind == "switch":
            self.features.add("switch")
            case = lambda label, end="": f"{pad}{label}: {{\n{self.block(depth + 1, loops, 2)}{pad}}} {end}\n"
            return (f"{pad}switch (({self.value(loops)}) & 3) {{\n{case('case 0', '[[fallthrough]];')}"
                    f"{case('case 1', 'break;')}{pad}case 2: break;\n{case('default')}{pad}}}\n")
        self.features.add("loop")
        self.locals += 1
        i = f"i{self.locals}"
        body = self.block(depth + 1, loops + [i])
        low, high = self.number(3), 3 + self.number(3)
        if kind == "while":
            return (f"{pad}word {i} = {low};\n{pad}do {{\n{body}{pad}    {i} += 1 + ({self.operand(loops + [i])} & 1);\n"
                    f"{pad}}} while ({i} < {high});\n")
        if kind == "walk":
            self.features.add("pointer chasing")
            step = self.pick(f"p = p->next;", f"q = p, p = p->next;")
            body += f"{'    ' * (depth + 1)}{step}\n"
        head = self.pick(f"for (word {i} = {low}; {i} < {high}; ++{i})", f"for (word {i} = {high}; {i} > {low}; --{i})",
                         f"for (word {i} = {low}; {i} < 2 + (y & 3); ++{i})")
        return f"{pad}{head} {{\n{body}{pad}}}\n"

    # --- Functions -------------------------------------------------------------------------------

    def helper_function(self, which):
        name = f"{self.name}_helper{which}"
        inline = self.pick("__attribute__((noinline)) static", "static", "static inline")
        recursive = self.number(3) == 0
        if recursive:
            self.features.add("recursion")
            self.helpers.append(name)
        self.returns = " x"
        body = self.block(1, ["depth"], 5).replace("DEPTH", "depth + 1")
        if not recursive:
            self.helpers.append(name)
        self.returns = ""
        return (f"{inline} word {name}(word* a, word* b, item* p, item* q, word x, word depth) {{\n"
                f"    if (depth > 2) return x;\n    word y = x * 5 + depth;\n{body}    return x + y;\n}}\n")

    def call(self, arguments):
        return f"{self.name}({arguments});"

    def program(self):
        helpers = "".join(self.helper_function(i) for i in range(self.number(3)))
        body = "".join(self.statement(1, []) for _ in range(self.pick(1, 2, 3, 5, 8, 11))).replace("DEPTH", "0")
        first, second = self.pick((0, 256), (0, 256), (0, 0), (0, 8), (0, 24), (16, 0), (120, 0), (64, 40))
        p, q = self.pick((0, 1), (0, 1), (2, 2), (3, 0))
        if abs(first - second) < 128 or p == q:
            self.features.add("aliasing arguments")
        preserved = self.number(4) == 0
        if preserved:
            self.features.add("preserved input")
        same = "word* a, word* b, item* p, item* q, word x"
        given = f"at<word>({first}), at<word>({second}), items() + {p}, items() + {q}, {1 + self.number(98)}"
        end = "    a[3] += x ^ y;\n}\n"
        if not preserved:
            return (f"{helpers}HF_TXFUNC void {self.name}({same}){self.PROMISE} {{\n    word y = x * 7;\n{body}{end}"
                    f"SCENARIO({self.name}, [] {{ fill(); }}, [] {{ {self.call(given)} }})\n\n")
        return (f"{helpers}__attribute__((noinline)) static void {self.name}_body({same}, word y) {{\n{body}{end}"
                f"HF_TXFUNC void {self.name}({same}, const word* given){self.PROMISE} {{\n"
                f"    const word* kept = hf::vlog_preserve(given, 4);\n    a[1] ^= kept[0] + b[2];\n"
                f"    {self.name}_body(a, b, p, q, x, kept[1]);\n    b[5] ^= kept[2] + a[3];\n}}\n"
                f"SCENARIO({self.name}, [] {{ fill(); }}, [] {{ word local[4]; std::memcpy(local, volatile_words, sizeof local); "
                f"{self.call(given + ', local')} std::memset(local, 0, sizeof local); }})\n\n")


class ThrowingWriter(Writer):
    KIND = "throwing"
    PROMISE = ""

    def throw(self, loops):
        self.features.add("throw")
        return f"if ({self.condition(loops)}) throw thrown{{static_cast<word>({self.value(loops)})}};"

    SIMPLE = [*Writer.SIMPLE, (throw, 2)]

    def compound(self, depth, loops, pad):
        if self.number(3):
            return super().compound(depth, loops, pad)
        self.features.add("catch")
        then = self.pick("", "", f"{pad}    if ({self.condition(loops)}) throw;\n", f"{pad}    throw thrown{{y + t.what}};\n")
        return (f"{pad}try {{\n{self.block(depth + 1, loops)}{pad}    {self.throw(loops)}\n{pad}}} catch (const thrown& t) {{\n"
                f"{pad}    x += t.what;\n{self.block(depth + 1, loops, 2)}{then}{pad}}}\n")

    def call(self, arguments):
        return f"try {{ {self.name}({arguments}); }} catch (const thrown&) {{ oracle::left_by_exception(); }}"


class CallingWriter(ThrowingWriter):
    """What is called is chosen when it is called. Helpers call each other through their table outside of loops
    only: each may call all, as deep as 'depth' lets them."""
    KIND = "calling"

    def table_call(self, loops):
        self.features.add("call by address")
        arguments = f"{self.pick('a, b', 'b, a', 'a + 1, b')}, {self.pick('p, q', 'q, p', 'p->next, p')}, {self.operand(loops)}, DEPTH"
        return self.pick(f"x += {self.name}_table[({self.value(loops)}) & 3]({arguments});",
                         f"{{ helper_type* const f = {self.condition(loops)} ? {self.name}_table[x & 3] : twice; y ^= f({arguments}); }}",
                         f"write_by({self.array()} + {self.number(14)}, {self.operand(loops)});")

    def virtual_call(self, loops):
        arguments = f"{self.array()} + {self.number(12)}, {self.pick('p', 'q', 'p->next')}, {self.operand(loops)}"
        kind = self.pick("shared", "shared", "local", "member")
        self.features.add("virtual call" if kind == "shared" else f"virtual call, {kind}")
        if kind == "local":
            return (f"{{ adder one; mover other; one.kept = {self.operand(loops)}; changer* const both[] = {{&one, &other}}; "
                    f"x ^= both[({self.value(loops)}) & 1]->change({arguments}); }}")
        if kind == "member":
            return f"y += (changers[({self.operand(loops)}) % 3]->*members[x & 1])({arguments});"
        return f"x += changers[({self.value(loops)}) % 3]->change({arguments});"

    def by_address(self, loops):
        # 'depth' counts as a loop of a helper.
        return self.virtual_call(loops) if len(loops) > 1 or self.number(2) else self.table_call(loops)

    SIMPLE = [*ThrowingWriter.SIMPLE, (by_address, 7)]

    def helper_function(self, which):
        text = super().helper_function(which)
        self.made.append(f"{self.name}_helper{which}")
        return text

    def program(self):
        self.made = []
        text = super().program()
        filled = (self.made + ["twice", "crossed", "links"])[:3] + ["quiet"]
        table = f"extern helper_type* {self.name}_table[4];\n"
        defined = f"helper_type* {self.name}_table[4] = {{{', '.join(filled)}}};\n"
        where = text.index("SCENARIO(")
        return table + text[:where] + defined + text[where:]


class LockingWriter(Writer):
    """Each lock is taken in one place of the text: no order of calls takes one that is held."""
    KIND = "locking"
    LOCKS = 40

    def __init__(self, seed, index):
        super().__init__(seed, index)
        self.locks = 1  # the first one is the program's

    def lock(self):
        self.locks += 1
        return f"locks()[{self.locks - 1}]", f"held{self.locks - 1}"

    def compound(self, depth, loops, pad):
        if self.number(2) or self.locks + 2 >= self.LOCKS:
            return super().compound(depth, loops, pad)
        self.features.add("lock")
        (one, held), body = self.lock(), lambda: self.block(depth + 1, loops, 3)
        kind = self.pick("guard", "several", "tried", "hand over hand", "shared", "asked")
        self.features.add(f"lock: {kind}")
        if kind == "several":
            other, _ = self.lock()
            return f"{pad}{{\n{pad}    const std::scoped_lock {held}{{{one}, {other}}};\n{body()}{pad}}}\n"
        if kind == "tried":
            return (f"{pad}{{\n{pad}    std::unique_lock {held}{{{one}, std::defer_lock}};\n"
                    f"{pad}    while (!{held}.try_lock()) {{\n{pad}    }}\n{body()}{pad}}}\n")
        if kind == "hand over hand":
            other, held_other = self.lock()
            return (f"{pad}{{\n{pad}    std::unique_lock {held}{{{one}}};\n{body()}{pad}    std::unique_lock {held_other}{{{other}}};\n"
                    f"{pad}    {held}.unlock();\n{body()}{pad}}}\n")
        if kind == "asked":  # what is stored where it is free is stored where it is not
            store = self.store(loops)
            return (f"{pad}if (std::unique_lock {held}{{{one}, std::try_to_lock}}; {held}.owns_lock()) {{\n{pad}    {store}\n"
                    f"{pad}}} else {{\n{pad}    {held}.lock();\n{pad}    {store}\n{pad}}}\n")
        guard = "shared_lock" if kind == "shared" else "unique_lock"
        return f"{pad}{{\n{pad}    const std::{guard} {held}{{{one}}};\n{body()}{pad}}}\n"

    def program(self):
        text = super().program()
        if "vlog_preserve" in text:
            return text
        # Its first lock begins the section, where nobody has marked it.
        return text.replace("{\n    word y = x * 7;\n", "{\n    const std::unique_lock whole{locks()[0]};\n    word y = x * 7;\n")


# What other files might change keeps the compiler from knowing what is called.
CALLING_PRELUDE = """
using helper_type = word(word*, word*, item*, item*, word, word);
static word twice(word* a, word* b, item*, item* q, word x, word) {
    q->d += *a * 2;
    return b[x & 7];
}
static word crossed(word* a, word* b, item* p, item* q, word x, word) {
    const word kept = a[1];
    a[1] = b[2] + x;
    p->a = q->a + static_cast<unsigned>(kept);
    return a[1] ^ kept;
}
static word links(word* a, word*, item* p, item*, word x, word) {
    item* const f = fresh_item(x);
    if (f == nullptr) return 0;
    f->next = p->next;
    p->next = f;
    f->many[x & 3] = *a;
    return f->d;
}
static word quiet(word* a, word* b, item*, item*, word x, word) { return a[x & 7] + b[3]; }
void (*write_by)(word*, word) = write_one;

class changer {
public:
    virtual ~changer() = default;
    virtual word change(word* a, item* p, word x) = 0;
    virtual word other(word* a, item* p, word x) {
        *a += x;
        return *a ^ p->d;
    }
    word kept = 5;
};
class adder : public changer {
public:
    word change(word* a, item* p, word x) override {
        a[x & 3] += p->d;
        p->c = static_cast<unsigned short>(p->c + 1);
        return other(a, p, kept);
    }
};
class mover final : public changer {
public:
    word change(word* a, item* p, word x) override {
        std::memmove(a + 1, a, 24);
        p->many[x & 3] ^= a[1];
        return changer::other(a + 2, p, x);
    }
    word other(word* a, item* p, word x) override {
        p->next->t.w = a[1];
        return a[x & 3] = p->t.w;
    }
};
class thrower final : public adder {
public:
    word other(word* a, item* p, word x) override {
        a[2] = p->d;
        if (((p->d ^ x) & 7) == 3) throw thrown{a[2]};
        return x;
    }
};
static adder one_changer;
static mover other_changer;
static thrower throwing_changer;
changer* changers[] = {&one_changer, &other_changer, &throwing_changer};
word (changer::*members[])(word*, item*, word) = {&changer::change, &changer::other};
"""

LOCKING_PRELUDE = """#include <holdfast/lock.hpp>

#include <mutex>
#include <shared_mutex>

#ifdef LOCKS_UNMARKED
#undef HF_TXFUNC
#define HF_TXFUNC __attribute__((noinline))
#endif
static hf::mutex* locks() { return static_cast<hf::mutex*>(oracle_place(3584)); }
"""


def write(seed, indices, writer=Writer):
    """The text of these programs as one file, and the features of each by name."""
    writers = [writer(seed, index) for index in indices]
    more = {LockingWriter: LOCKING_PRELUDE, CallingWriter: CALLING_PRELUDE}.get(writer, "")
    text = f"// Seed {seed}, programs {indices[0]} to {indices[-1]}.\n{PRELUDE}{more}\n"
    text += "".join(w.program() for w in writers)
    return text, {w.name: sorted(w.features) for w in writers}
