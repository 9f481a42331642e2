# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes random failure-atomic functions for the oracle: random_functions.py SEED COUNT.

Each works on two arrays that may be one, or overlap; on words, parts of words and pairs; in loops,
branches and helpers, some of them inlined with restrict parameters. The same seed writes the same
program.
"""
import random
import sys

WORDS = 16  # an index is taken modulo this


class Writer:
    def __init__(self, seed):
        self.random = random.Random(seed)
        self.helpers = 0

    def index(self, loops):
        forms = ["{c}", "(x + {c}) % 16", "y % 16", "{p}[{c}] % 16"]
        forms += [f"({i} + {{c}}) % 16" for i in loops] * 3
        form = self.random.choice(forms)
        return form.format(c=self.random.randrange(WORDS), p=self.array())

    def array(self):
        return self.random.choice("ab")

    def place(self, loops):
        return f"{self.array()}[{self.index(loops)}]"

    def value(self, loops):
        operand = lambda: self.random.choice(
            ["x", "y", str(self.random.randrange(1, 9)), self.place(loops), self.place(loops)])
        return f"{operand()} {self.random.choice(['+', '*', '^', '-'])} {operand()}"

    def statement(self, depth, loops):
        kinds = ["store"] * 4 + ["update"] * 3 + ["load"] * 3 + ["part", "move", "pair", "string",
                                                                "helper", "scaled", "fresh"]
        if depth < 3:
            kinds += ["if", "if", "for", "for", "switch"]
        pad = "    " * (depth + 1)
        kind = self.random.choice(kinds)
        r = self.random
        if kind == "store":
            return f"{pad}{self.place(loops)} = {self.value(loops)};\n"
        if kind == "update":
            return f"{pad}{self.place(loops)} += {self.value(loops)};\n"
        if kind == "load":
            return f"{pad}{r.choice('xy')} = {self.value(loops)};\n"
        if kind == "part":
            return (f"{pad}reinterpret_cast<unsigned char*>({self.array()})"
                    f"[{r.randrange(8 * WORDS)}] += static_cast<unsigned char>(x);\n")
        if kind == "move":
            count = r.randrange(1, 7)
            return (f"{pad}std::memmove({self.array()} + {r.randrange(WORDS - count)}, "
                    f"{self.array()} + {r.randrange(WORDS - count)}, {8 * count});\n")
        if kind == "pair":
            to, source = r.randrange(WORDS - 1), r.randrange(WORDS - 1)
            return (f"{pad}*reinterpret_cast<words*>({self.array()} + {to}) = "
                    f"*reinterpret_cast<words*>({self.array()} + {source});\n")
        if kind == "string":
            count = r.randrange(1, 20)
            return (f"{pad}std::memset(reinterpret_cast<char*>({self.array()}) + "
                    f"{r.randrange(8 * WORDS - count)}, static_cast<int>(y & 127), {count});\n")
        if kind == "helper":
            return f"{pad}x += helper({self.array()} + {r.randrange(WORDS - 2)}, {self.value(loops)});\n"
        if kind == "scaled":
            return f"{pad}scaled(&{self.place(loops)}, &{self.place(loops)});\n"
        if kind == "fresh":
            return (f"{pad}if (auto* f = static_cast<word*>(hf_alloc(16))) {{\n"
                    f"{pad}    f[0] = {self.value(loops)};\n{pad}    f[1] = f[0] + x;\n"
                    f"{pad}    {self.place(loops)} = f[0] ^ f[1];\n{pad}}}\n")
        inner = lambda more=(): "".join(
            self.statement(depth + 1, loops + list(more)) for _ in range(r.randrange(1, 4)))
        if kind == "if":
            other = f"{pad}}} else {{\n{inner()}" if r.random() < 0.5 else ""
            return f"{pad}if (({self.value(loops)}) & {1 << r.randrange(3)}) {{\n{inner()}{other}{pad}}}\n"
        if kind == "switch":
            return (f"{pad}switch ({self.value(loops)} & 3) {{\n{pad}case 0:\n{inner()}{pad}[[fallthrough]];\n"
                    f"{pad}case 1:\n{inner()}{pad}break;\n{pad}default:\n{inner()}{pad}}}\n")
        i = "ijk"[depth]
        if r.random() < 0.5:
            head = f"for (word {i} = {r.randrange(3)}; {i} < {r.randrange(3, 6)}; ++{i})"
        else:
            head = f"for (word {i} = {r.randrange(3, 6)}; {i} > 0; --{i})"
        return f"{pad}{head} {{\n{inner([i])}{pad}}}\n"

    def function(self, name):
        body = "".join(self.statement(0, []) for _ in range(self.random.randrange(2, 7)))
        where = self.random.choice([(0, 256), (0, 0), (0, 24), (16, 0)])
        return (f"HF_TXFUNC void {name}(word* a, word* b, word x) noexcept {{\n    word y = x * 7;\n"
                f"{body}    a[3] += x ^ y;\n}}\n"
                f"SCENARIO({name}, [] {{ fill(); }}, [] {{ {name}(at<word>({where[0]}), "
                f"at<word>({where[1]}), {self.random.randrange(1, 99)}); }})\n\n")


def main():
    seed, count = int(sys.argv[1]), int(sys.argv[2])
    writer = Writer(seed)
    print(f"// Seed {seed}.\n"
          '#include "oracle.hpp"\n\n#include <cstring>\n\nusing oracle::at;\n'
          "using word = unsigned long;\nstruct words {\n    word x[2];\n};\n\n"
          "static void fill() {\n    for (word i = 0; i < 64; ++i) at<word>(0)[i] = i * i * 37 + 11;\n}\n"
          "static inline void scaled(word* __restrict to, const word* __restrict from) {\n"
          "    *to = *from * 3 + 1;\n}\n"
          "__attribute__((noinline)) static word helper(word* p, word v) {\n"
          "    if (v & 1) p[1] = p[0] + v;\n    else p[0] ^= v;\n    return p[1];\n}\n")
    for i in range(count):
        print(writer.function(f"random_{seed}_{i}"))


if __name__ == "__main__":
    main()
