#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""holdfast classify says of every function of a corpus what the comment above it says, and refuses bad input.

usage: classify_test.py BUILD SOURCE_ROOT WORK

In the corpus '//! deferrable', or one '//! instant: TEXT @mark' for each reason, stands above a function. TEXT is part of
the reason; '//@mark' stands on the line that is its cause, and {mark} in TEXT is that line's number.
"""
import json
import pathlib
import re
import shutil
import subprocess
import sys

build, root, work = (pathlib.Path(word).resolve() for word in sys.argv[1:4])
tool = build / "bin/holdfast"
corpus = root / "tools/classify/test"
CLANGXX = next(filter(shutil.which, ["clang++-19", "clang++-21"]))
FLAGS = ["--", "-std=c++2b", f"-I{root}/include"]


def run(*words, status=0, cwd=None):
    done = subprocess.run([tool, "classify", *map(str, words)], capture_output=True, text=True, cwd=cwd or work, timeout=100)
    assert done.returncode == status, f"{words}: status {done.returncode}, not {status}\n{done.stdout}{done.stderr}"
    return done.stdout, done.stderr


def expectations(path):
    """Maps each annotated function's line to None, if deferrable, or to reasons (text, line of the cause or None)."""
    lines = path.read_text().splitlines()
    marks = {mark: number for number, line in enumerate(lines, 1) for mark in re.findall(r"//@(\w+)", line)}
    out, pending = {}, []
    for number, line in enumerate(lines, 1):
        if found := re.match(r"\s*//! (.*)", line):
            pending.append(found[1])
        elif pending:
            reasons = []
            for each in (text for text in pending if text != "deferrable"):
                text, _, mark = each.removeprefix("instant: ").partition(" @")
                text = re.sub(r"\{(\w+)\}", lambda m: str(marks[m[1]]), text)
                reasons.append((text, marks[mark] if mark else None))
            out[number], pending = reasons, []
    return out


def compare(path, classes):
    """What the tool says differs from the comments: lines of complaint, and how many functions were compared."""
    out, _ = run(path.name, *(word for name in classes for word in ("--class", name)), "--json", *FLAGS, cwd=corpus)
    said = {f["line"]: f for c in json.loads(out)["classes"] for f in c["functions"]}
    wrong, expected = [], expectations(path)
    for line, reasons in expected.items():
        where = f"{path.name}:{line}"
        if line not in said:
            wrong.append(f"{where}: not classified")
            continue
        got = said[line]
        left = list(got["reasons"])
        for text, cause in reasons:
            match = [r for r in left if text in r["text"] and cause in (None, r["cause"]["line"])]
            if match:
                left.remove(match[0])
            else:
                wrong.append(f"{where}: {got['signature']}: no reason '{text}' at {cause}")
        wrong += [f"{where}: {got['signature']}: says {r['text']}" for r in left]
        if (got["type"] == "deferrable") != (not reasons):
            wrong.append(f"{where}: {got['signature']} is {got['type']}")
    return wrong, len(expected)


def test_corpus():
    wrong, count = [], 0
    for name, classes in {
            "table3.cpp": ["array", "queue", "heap", "stack", "tree", "graph"],
            "adversarial.cpp": ["subject"], "implicit.cpp": ["subject"],
            "layout.cpp": ["keeps_pointer", "keeps_reference", "inherits_pointer", "keeps_text", "is_virtual",
                           "copies_itself", "shelf"]}.items():
        found, compared = compare(corpus / name, classes)
        wrong, count = wrong + found, count + compared
    print(f"{count} functions compared")
    assert not wrong, "\n".join(wrong)
    assert count > 200, count


# SIMPO's Table 3, beside what each function is called in holdfast/simpo/.
TABLE3 = {
    "array<long, 1024>": {"increaseAll": ("increase_all", "deferrable"), "zero": ("zero", "deferrable"),
                          "printAll": ("print_all", "instant")},
    "queue<long, 64>": {"clearQueue": ("clear", "deferrable"), "enQueue": ("enqueue", "deferrable"),
                        "deQueue": ("dequeue", "instant"), "isEmpty": ("is_empty", "instant"),
                        "isFull": ("is_full", "instant")},
    "heap<long, 64>": {"enHeap": ("enheap", "deferrable"), "deHeap": ("deheap", "instant"),
                       "getNumElements": ("count", "instant"), "printAll": ("print_all", "instant")},
    "stack<long, 64>": {"push": ("push", "deferrable"), "pop": ("pop", "instant"), "peek": ("peek", "instant"),
                        "isEmpty": ("is_empty", "instant")},
    "tree<long, 64>": {"insertElement": ("insert", "deferrable"), "balance": ("balance", "deferrable"),
                       "deleteElement": ("remove", "deferrable"), "searchElement": ("contains", "instant")},
    "graph<16>": {"joinwt": ("join", "deferrable"), "removewt": ("separate", "deferrable"),
                  "adjacent": ("adjacent", "instant")},
}


def test_structures_are_as_table_3_has_them():
    heads = "".join(f"#include <holdfast/simpo/{name.partition('<')[0]}.hpp>\n" for name in TABLE3)
    write("structures.cpp", heads + "".join(f"template class hf::simpo::{name};\n" for name in TABLE3))
    out, _ = run("structures.cpp", "--json", *FLAGS)
    said = {c["name"].removeprefix("hf::simpo::"): {f["name"]: f["type"] for f in c["functions"]}
            for c in json.loads(out)["classes"]}
    wanted = {name: {ours: kind for ours, kind in rows.values()} for name, rows in TABLE3.items()}
    got = {name: {f: said[name].get(f) for f in rows} for name, rows in wanted.items()}
    assert got == wanted, (got, wanted)


def write(name, text):
    (work / name).write_text(text)
    return name


ROW = """#pragma once
#include <holdfast/simpo.hpp>
void log(int n);
class row {
public:
    static constexpr hf::simpo::class_name simpo_class{"row", 1};
    void add(int n) noexcept { n_ += n; }
    void add(double x) noexcept { n_ += static_cast<int>(x); }
    void tell(int n) noexcept { log(n); }
    int draw() noexcept;
    int take() noexcept { return n_--; }
    int sum() const noexcept { return n_; }
    int read() const noexcept { extern int elsewhere; return n_ + elsewhere; }
private:
    int n_ = 0;
};
"""


def test_bodies_in_other_files():
    write("row.hpp", ROW)
    write("row.cpp", '#include "row.hpp"\n#include <cstdlib>\nint row::draw() noexcept { return std::rand(); }\n')
    write("log.cpp", "#include <iostream>\nvoid log(int n) { std::cout << n; }\n")
    alone, _ = run("row.hpp", *FLAGS)
    assert "row.hpp:9: calls log(), whose body is not visible" in alone, alone
    assert "row.hpp:10: has no visible body" in alone, alone
    out, _ = run("row.hpp", "row.cpp", "log.cpp", *FLAGS)
    assert "row.hpp:9: calls log(), which does I/O through std::cout (log.cpp:2)" in out, out
    assert "row.cpp:3: draws a random number (rand)" in out, out
    assert out.count("deferrable  ") == 2, out


def test_lint():
    write("user.cpp", '#include "row.hpp"\n'
          "void log(int) {}\nint row::draw() noexcept { extern int seed; return n_ = seed; }\n"
          "template <class O> void generic(O& o) { o.template defer<&row::tell>(1); }\n"
          "void good(hf::simpo::object<row>& o) {\n"
          "    o.defer<static_cast<void (row::*)(int) noexcept>(&row::add)>(1);\n"
          "    o.call<&row::take>();\n    o.call<&row::sum>();\n    generic(o);\n}\n")
    out, _ = run("user.cpp", "--lint", *FLAGS)
    assert out == "", out
    write("bad.cpp", '#include "row.hpp"\n#include <iostream>\n#include <cstdlib>\n'
          "void log(int n) { std::cout << n; }\nint row::draw() noexcept { return n_ = std::rand(); }\n"
          "template <class O> void generic(O& o) { o.template defer<&row::tell>(1); }\n"
          "void bad(hf::simpo::object<row>& o) {\n"
          "    o.call<&row::draw>();\n    generic(o);\n    o.defer_beside<&row::tell>(hf::simpo::hint{1}, 1);\n}\n")
    out, _ = run("bad.cpp", "--lint", *FLAGS, status=1)
    assert "bad.cpp:6: error: defer<&row::tell>: this function is not deferrable" in out, out
    assert "bad.cpp:8: error: call<&row::draw>: recovery may call this function again" in out, out
    assert "bad.cpp:10: error: defer_beside<&row::tell>: this function is not deferrable" in out, out
    assert out.count("error:") == 3 and "(bad.cpp:4)" in out, out
    out, _ = run("bad.cpp", "--lint", "--json", *FLAGS, status=1)
    assert [c["line"] for c in json.loads(out)["complaints"]] == [6, 8, 10], out


def test_lint_of_callers():
    write("callers.cpp", '#include "row.hpp"\n#include <holdfast/simpo/caller.hpp>\n#include <iostream>\n'
          "void log(int n) { std::cout << n; }\nint row::draw() noexcept { return n_; }\n"
          "void user(hf::simpo::caller<row>& c, hf::simpo::retraced<row>& r) {\n"
          "    c.defer<&row::tell>(1, 1);\n    r.defer<&row::tell>(1);\n"
          "    (void)c.call<&row::take>(2);\n    (void)r.call<&row::sum>();\n"
          "    (void)r.call<&row::read>();\n}\n")
    out, _ = run("callers.cpp", "--lint", *FLAGS, status=1)
    assert "callers.cpp:7: error: defer<&row::tell>" in out, out
    assert "callers.cpp:8: error: defer<&row::tell>" in out, out
    assert "callers.cpp:11: error: call<&row::read>: recovery may call this" in out, out
    assert out.count("error:") == 3, out


def test_expectations():
    write("row.hpp", ROW)
    run("row.hpp", "--expect-deferrable", "add", *FLAGS)
    run("row.hpp", "--expect-deferrable=row::add", *FLAGS)
    _, said = run("row.hpp", "--expect-deferrable", "add,take,gone", *FLAGS, status=1)
    assert "row.hpp:11: error: row::take is not deferrable" in said, said
    assert "no class has a public function 'gone'" in said, said


def test_bad_input():
    write("broken.cpp", "class a { void f( };\n")
    write("plain.cpp", "class a { public: void f() noexcept {} };\n")
    write("wrong.json", "{")
    for words, text in [
            ((), "expected a file, found none"), (("gone.cpp",), "gone.cpp: there is no such file"),
            (("broken.cpp",), "broken.cpp:1:"), (("plain.cpp", "broken.cpp"), "broken.cpp: what does not compile"),
            (("plain.cpp",), "no class in the files has a simpo_class"),
            (("plain.cpp", "--class", "b"), "the files define no class 'b'"),
            (("plain.cpp", "--clas", "a"), "no option '--clas'"), (("plain.cpp", "--class"), "expected a word after it"),
            (("plain.cpp", "-p", "."), "compile_commands.json"), (("plain.cpp", "-p", ".", "--"), "from -p or from behind --, found both"),
            ((".",), "there is no such file"),
            (("plain.cpp", "--class", "a", "--generate", "a.hpp"), "has no simpo_class"),
            (("row.hpp", "--generate", "gone/a.hpp", *FLAGS), "gone/a.hpp: No such file")]:
        _, said = run(*words, status=2)
        assert text in said, (words, said)
    out, _ = run("--help")
    assert "--expect-deferrable" in out


def test_compile_commands():
    """Flags of each file, the compiler's plugin left out, in folders whose names have spaces."""
    folder = work / "a build"
    folder.mkdir(exist_ok=True)
    source = write("flagged.cpp", "#ifndef FLAG\n#error no flag\n#endif\nclass a { public: void f() noexcept {} };\n")
    (folder / "compile_commands.json").write_text(json.dumps([{
        "directory": str(work), "file": source,
        "arguments": [CLANGXX, "-DFLAG", "-fplugin=/gone.so", "-fpass-plugin=/gone.so", "-c", source]}]))
    out, _ = run(source, "-p", folder, "--class", "a")
    assert "deferrable  void f()" in out, out


def test_generated_interface():
    """Compiles, and says beside each function what it does; what cannot be called is a comment."""
    write("odd.hpp", """#pragma once
#include <holdfast/simpo.hpp>
namespace shop {
enum class colour { red };
struct item { int n; };
template <class T> struct counted {
    void tick(T by) noexcept { ticks += by; }
    T ticks;
};
class shelf : public counted<int> {
    struct hidden { int n; };
public:
    static constexpr hf::simpo::class_name simpo_class{"shelf", 1};
    void put(item what, colour c) noexcept { n_ = what.n + static_cast<int>(c); }
    void put(const item& what) noexcept { n_ = what.n; }
    int* address() noexcept { return &n_; }
    void unsafe() { ++n_; }
    void from(int* p) noexcept { n_ = *p; }
    void sync() noexcept { n_ = 0; }
    void keep(hidden h) noexcept { n_ = h.n; }
    int total(const int* more) const { return n_ + *more; }
    void operator++() noexcept { ++n_; }
    int next() noexcept { return ++n_; }
    int seeded() noexcept { static int seeds = 0; return n_ = ++seeds; }
private:
    int n_ = 0;
};
}
""")
    run("odd.hpp", "--generate", "odd_calls.hpp", *FLAGS)
    text = (work / "odd_calls.hpp").read_text()
    for wanted in ["no call, it returns an address", "no call, it is not noexcept", "no call, its argument p holds",
                   "sync(): no call, its name", "no call, the type of an argument is private", "no call, an operator"]:
        assert wanted in text, (wanted, text)
    for name, wanted in [("next", "durable on return."), ("seeded", "and it would not do the same.")]:
        about = text[:text.index(f"    auto {name}(")].split("// odd.hpp:")[-1]
        assert wanted in about.splitlines()[1], (name, about)
    write("uses.cpp", '#include "odd.hpp"\n#include "odd_calls.hpp"\nint f(hf::pool& pool, const int* p) {\n'
          '    auto made = shop::shelf_calls::create(pool, "s");\n'
          '    made->put(shop::item{1}, shop::colour::red);\n    made->put(shop::item{1});\n    made->sync();\n    made->tick(2);\n'
          '    made->tick(hf::simpo::hint{1}, 2);\n'
          '    auto again = shop::shelf_calls::find(pool, "s");\n    return again->total(p);\n}\n')
    subprocess.run([CLANGXX, "-std=c++20", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", f"-I{root}/include",
                    "uses.cpp"], check=True, cwd=work)


def test_generated_names():
    """Names of the user's that the interface has for itself; a class that derives from a structure, as the guide says."""
    write("names.hpp", """#pragma once
#include <holdfast/simpo/heap.hpp>
struct job {
    int number, priority;
    bool operator<(const job& than) const { return priority < than.priority; }
};
class jobs : public hf::simpo::heap<job, 10> {
public:
    static constexpr hf::simpo::class_name simpo_class{"jobs", 1};
};
inline namespace version_1 {
class names {
public:
    static constexpr hf::simpo::class_name simpo_class{"names", 1};
    int through(int (*f)(int), const int (&more)[2]) const { return f(n_ + more[0]); }
    void all(const int (&of)[2]) noexcept { n_ = of[0]; }
    void put(int beside, int on_) noexcept { n_ = beside + on_; }
    void object_type() noexcept { n_ = 0; }
private:
    int n_ = 0;
};
}
""")
    run("names.hpp", "--generate", "names_calls.hpp", *FLAGS)
    text = (work / "names_calls.hpp").read_text()
    assert "// hf::simpo::heap<job, 10> is a version of a template" in text, text
    assert "object_type(): no call, its name" in text, text
    assert "no call, its argument of is an array" in text, text
    write("names.cpp", '#include "names.hpp"\n#include "names_calls.hpp"\nvoid f(names_calls n, jobs_calls j) {\n'
          '    n.put(1, 2);\n    n.put(hf::simpo::hint{1}, 1, 2);\n    j.enheap(job{1, 2});\n    j.print_all();\n'
          '    (void)j.deheap();\n'
          '    const int two[] = {1, 2};\n    (void)n.through(+[](int i) { return i; }, two);\n}\n')
    subprocess.run([CLANGXX, "-std=c++20", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", f"-I{root}/include",
                    "names.cpp"], check=True, cwd=work)
    out, _ = run("names.hpp", "--class", "heap", "--generate", "none.hpp", *FLAGS, status=2)


def test_generated_example():
    pool = work / "readings.hf"
    pool.unlink(missing_ok=True)
    for wanted in ["1000 readings\n", "2001 readings\n", "3002 readings\ncleared 3003\n", "1000 readings\n"]:
        out = subprocess.run([build / "bin/example_simpo_calls", pool], capture_output=True, text=True, check=True)
        assert out.stdout == wanted, (out.stdout, wanted)
    pool.unlink()


def test_members_that_nobody_uses():
    """Those of a template have bodies, too, with any statement in them: a for over a range ended the tool."""
    write("unused.hpp", """#pragma once
#include <holdfast/simpo/array.hpp>
class numbers : public hf::simpo::array<long, 16> {
public:
    static constexpr hf::simpo::class_name simpo_class{"numbers", 1};
};
template <class T> class rows {
public:
    static constexpr hf::simpo::class_name simpo_class{"rows", 1};
    void each(int by) noexcept { for (auto& row : of_) for (T& cell : row) add(cell, by); }
    void loops(int by) noexcept { while (T n = by--) { for (int i = 0; i < by; ++i) add(of_[0][0], n); } }
    void picks(int which) noexcept { switch (which) { case 0: { T n = 1; add(of_[0][0], n); } break; default: [&] { of_ = {}; }(); } }
    void unknown(T with) noexcept { of_[0][0] = with.nothing; }
private:
    static void add(T& to, int n) noexcept { if (T by = n; by != 0) to += by; }
    std::array<std::array<T, 3>, 3> of_{};
};
inline rows<int> used;
""")
    out, _ = run("unused.hpp", *FLAGS)
    for wanted in ["deferrable  void increase_all(long)", "deferrable  void each(int)", "deferrable  void loops(int)",
                   "deferrable  void picks(int)", "instant     void unknown(int)"]:
        assert wanted in out, (wanted, out)


def test_guide():
    """The guide shows what the tool says."""
    page = (root / "docs/guide/simpo.md").read_text()
    shown = re.search(r"^\$ holdfast (classify .*)\n((?:.*\n)*?)```", page, re.M)
    out, _ = run(*shown[1].split()[1:], cwd=root)
    assert out == shown[2], out


def main():
    tests = [value for name, value in globals().items() if name.startswith("test_")]
    work.mkdir(parents=True, exist_ok=True)
    for test in [t for t in tests if not sys.argv[4:] or t.__name__ in sys.argv[4:]]:
        test()
        print(f"{test.__name__}: passed", flush=True)


if __name__ == "__main__":
    main()
