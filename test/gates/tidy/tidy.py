#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks of the source text that no compiler makes.

usage: tidy.py ROOT          check the tree, print every finding, exit 1 if there is one
       tidy.py --lower ROOT  shorten ratchet.txt: take out what is no longer needed, lower limits to what is there
       tidy.py --self-test   plant one fault of each kind and require that each is found

Rules are functions of a tree (path -> text) that yield findings. ratchet.txt beside this script
lists what old files may still break. An entry without a use is itself a finding.
"""
import ast
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
import habits  # noqa: E402
import messages  # noqa: E402
import public_names  # noqa: E402
import references  # noqa: E402
import source_text  # noqa: E402

SPDX = "SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception"
FUNCTION_LINES_MAX = 70
FILE_LINES_MAX = 600   # except in tests
COMMENT_COLUMNS_MAX = 100
LABELS = ["Requires", "Cost", "Ordering", "Crash", "Errors", "Threads", "Source"]
CODE = {".cpp", ".hpp", ".c", ".h", ".cc"}

# One direction: a module includes itself and lower levels only; equals never meet.
LEVEL = {"base": 0, "cli": 1, "trace": 1, "persist": 2, "power": 2.5, "pool": 3, "alloc": 4, "log": 5, "open": 6, "section": 7,
         "clobber": 8, "undo": 8, "selective": 8, "redo": 8, "justdo": 8, "mod": 8, "simpo": 8, "verify": 8.5, "auto": 8.5, "engines": 9, "structures": 9, "c": 10,
         "crash": 10,       # what a crash program is written against; the checker implements it
         "apps": 11, "bench": 12, "examples": 11, "tools": 13,
         "sim": 2, "slpmt": 3, "peer": 10, "bfs": 11, "vacation": 11, "yada": 11,        # research/, whose folders are modules, too
         "simpo_applications": 13, "justdo_recovery": 13, "flushes": 13, "shadows": 13, "server": 13,
         "check": 12}        # for tests: no module may include it
PUBLIC = {"result": "base", "log": "base", "layout": "base", "statistics": "open", "copy": "pool", "migration": "open", "recovery": "base", "persist": "persist", "options": "pool", "sizes": "pool", "pool": "open", "alloc": "open", "blocks": "open", "staged": "section",
          "lock": "section", "txfunc": "section", "tx": "section", "allocator": "section", "containers": "section", "root": "c", "libstdcxx": "section",
          "clobber": "clobber", "undo": "undo", "selective": "selective", "derived": "selective", "redo": "redo", "justdo": "justdo", "mod": "mod", "simpo": "simpo", "engines": "engines", "holdfast": "c",
          "mod.h": "c", "mark": "base", "crash": "crash"}
# How large each tier of public headers may be: headers, names. To be lowered only (public_names.py counts).
TIERS = {"application": (50, 700), "application in C": (2, 275), "author": (11, 249)}


def public_name(header):
    """As PUBLIC has it: its whole name, or its first word, since a folder is its module's, mod/map.hpp. In author/ it is the same."""
    header = header.removeprefix("author/")
    return header if header in PUBLIC else re.split("[./]", header)[0]


def public_module(header):
    return PUBLIC.get(public_name(header))


def module_of(path):
    """The module of a file, or None where layering has no rule (tests, the plugin)."""
    parts = path.split("/")
    if re.search(r"_(test|fuzz|program|sections)\.\w+$|^test_", parts[-1]) or "/test/" in path:
        return None
    if parts[0] in ("src", "research") and len(parts) > 2:
        return parts[1]
    if parts[:2] == ["include", "holdfast"]:
        return public_module("/".join(parts[2:]))
    return parts[0] if parts[0] in LEVEL else None


def module_included(include):
    head, _, rest = include.partition("/")
    if head == "holdfast":
        return public_module(rest)
    if head == "research":
        return module_included(rest)
    return head if head in LEVEL and rest else None


def layering(tree):
    for path, text in tree.items():
        if pathlib.PurePath(path).suffix not in CODE or (own := module_of(path)) is None:
            continue
        if own not in LEVEL:
            yield f"{path}:1: module '{own}' has no level in tidy.py"
            continue
        for number, line in enumerate(text.splitlines(), 1):
            found = re.match(r'\s*#\s*include\s*[<"]([^>"]+)[>"]', line)
            other = module_included(found[1]) if found else None
            if other and other != own and LEVEL[other] >= LEVEL[own]:
                yield f"{path}:{number}: layering: {own} includes {other}"


def file_length(tree):
    for path, text in tree.items():
        if pathlib.PurePath(path).suffix not in CODE | {".py"} or is_test(path):
            continue
        if (lines := text.count("\n")) > FILE_LINES_MAX:
            yield f"{path}:1: file of {lines} lines, limit {FILE_LINES_MAX}"


def comment_width(tree):
    """A line with columns of its own stays as it is, and all of compiler/, whose formatter has its
    width, and of corpora."""
    for path, text in tree.items():
        if pathlib.PurePath(path).suffix not in CODE or path.startswith(("compiler/", "tools/classify/test/")):
            continue        # expected by line: the corpora of the second
        for number, line in enumerate(text.splitlines(), 1):
            said = line.strip()
            if len(line) > COMMENT_COLUMNS_MAX and said.startswith("//") and not re.search(r"\S\s\s+\S", said):
                yield f"{path}:{number}: comment of {len(line)} columns, limit {COMMENT_COLUMNS_MAX}"


def is_test(path):
    return re.search(r"_(test|fuzz|suite|program)\.\w+$|(^|/)(test|tests)/", path)


def circles(tree):
    """Headers that include each other, directly or not."""
    includes = {path: [other for name in re.findall(r'^#include [<"]([^>"]+)[>"]', text, re.M)
                       for other in (f"src/{name}", f"include/{name}", f"research/{name}") if other in tree]
                for path, text in tree.items() if path.endswith((".hpp", ".h"))}
    done = set()

    def visit(path, way):
        if path in way:
            yield f"{path}:1: included by itself: {' -> '.join([*way[way.index(path):], path])}"
        elif path not in done:
            for other in includes.get(path, ()):
                yield from visit(other, [*way, path])
            done.add(path)

    for path in includes:
        yield from visit(path, [])


def levels(tree):
    """Every public header belongs to some module, so that layering covers it."""
    for path in tree:
        found = re.match(r"include/holdfast/(?!abi/)(.+)", path)
        if found and not public_module(found[1]):
            yield f"{path}:1: public header without a module in tidy.py"


def implementers(tree):
    """Public headers that modules include are of one that includes any of the name, if by another header of its own."""
    includers = {}
    for path, text in tree.items():
        own = module_of(path)
        for name in re.findall(r'^#include <holdfast/([^>]+)>', text, re.M) if own else ():
            if path.startswith("src/") or own == public_module(name):
                includers.setdefault(public_name(name), set()).add(own)
    folders = {path.split("/")[1] for path in tree if path.startswith("src/")}
    for path in tree:
        name = path.removeprefix("include/holdfast/")
        module = public_module(name) if name != path and not name.startswith("abi/") else None
        if module in folders and module not in includers.get(public_name(name), {module}):
            yield f"{path}:1: {module} does not include it, which tidy.py says implements it"


def functions_python(text):
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node.lineno, node.end_lineno - node.lineno + 1


def function_length(tree):
    for path, text in tree.items():
        suffix = pathlib.PurePath(path).suffix
        if suffix in CODE:
            lengths = ((f.line, f.lines) for f in source_text.functions(text))
        elif suffix == ".py":
            lengths = functions_python(text)
        else:
            continue
        for line, lines in lengths:
            if lines > FUNCTION_LINES_MAX:
                yield f"{path}:{line}: function of {lines} lines, limit {FUNCTION_LINES_MAX}"


def intrinsics(tree):
    pattern = re.compile(r"\b_mm\d*_\w+|\b\w*intrin\.h\b|\bcpuid\.h\b|__builtin_ia32_\w+")
    for path, text in tree.items():
        if (pathlib.PurePath(path).suffix not in CODE
                or path.startswith(("src/persist/", "compiler/test/", "test/across/language/gather_test.cpp"))):
            continue
        for number, line in enumerate(text.splitlines(), 1):
            if found := pattern.search(line):
                yield f"{path}:{number}: '{found[0]}': intrinsics live in src/persist only"


def is_source(path, text):
    name = pathlib.PurePath(path)
    return (name.suffix in CODE | {".py", ".cmake", ".sh", ".ll"}
            or name.name in ("CMakeLists.txt", "Makefile") or text.startswith("#!"))


def seeds(tree):
    """A failure that nobody can repeat helps nobody: tests draw from a seed that is written, or given to them."""
    pattern = re.compile(r"\burandom\(|\brandom_device\b|(?<![\w.])random\.(?:(?:random|randrange|randint|randbytes|sample|choices?|shuffle|uniform)"
                         r"\(|(?:Random|seed)\(\))")
    for path, text in tree.items():
        if not is_test(path) or path.startswith(("compiler/test/", "test/gates/tidy/", "test/gates/compile_fail/")):
            continue        # inputs, some of them random; the pattern above
        for number, line in enumerate(text.splitlines(), 1):
            if found := pattern.search(line):
                yield f"{path}:{number}: '{found[0]}': draw from a seed that is written here, or is an option"


def licence(tree):
    for path, text in tree.items():
        if not is_source(path, text):
            continue
        lines = text.splitlines() or [""]
        first = lines[1] if lines[0].startswith("#!") and len(lines) > 1 else lines[0]
        if SPDX not in first:
            yield f"{path}:1: the first line is not the SPDX licence line"


def words(tree):
    """The part of the vocabulary's 'Avoid' list that can be found without misfiring."""
    names = re.compile(r"(?:^|_)(manager|utils?|helpers?|misc)(?:_|$|\.)")
    prose = re.compile(r"\b(NVRAM|NVMM|blazing|seamless(?:ly)?|robust(?:ly|ness)?)\b")
    for path, text in tree.items():
        if path.startswith(("compiler/", "test/gates/tidy/", "docs/papers.md")):
            continue        # LLVM and its managers; the list above; titles
        if names.search(pathlib.PurePath(path).name):
            yield f"{path}:1: file name says nothing (manager, util, helper, misc)"
        if is_source(path, text) or path.endswith(".md"):
            for number, line in enumerate(text.splitlines(), 1):
                if found := prose.search(line):
                    yield f"{path}:{number}: avoid the word '{found[0]}'"


def places(tree):
    """Nothing in the tree may depend on where somebody's checkout or registry is."""
    pattern = re.compile(r"(?<![\w.$}/])/(?:work|root|home)/\w+|https?://(?:[\w.]*)(?:pypi|snapshot)\.")
    for path, text in tree.items():
        for number, line in enumerate(text.splitlines(), 1):
            if found := pattern.search(line):
                yield f"{path}:{number}: '{found[0]}' names one machine's place"


def links(tree):
    """Relative links of the documentation lead to files of the tree."""
    known = set(tree) | {str(up) for path in tree for up in pathlib.PurePath(path).parents}
    for path, text in tree.items():
        if not path.endswith(".md"):
            continue
        for number, line in enumerate(text.splitlines(), 1):
            for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", re.sub(r"`[^`]*`", "", line)):
                if re.match(r"[a-z]+:", target):
                    continue
                parts = []
                for part in [*pathlib.PurePath(path).parent.parts, *target.rstrip("/").split("/")]:
                    if part == "..":
                        parts = parts[:-1]
                    elif part != ".":
                        parts.append(part)
                if ("/".join(parts) or ".") not in known:
                    yield f"{path}:{number}: link to '{target}', which does not exist"


def module_readme(tree):
    for module in sorted({path.split("/")[1] for path in tree if re.match(r"src/\w+/.*\.[ch]pp$", path)}):
        if f"src/{module}/README.md" not in tree:
            yield f"src/{module}/README.md:1: module without a README"
    for path in tree:
        found = re.match(r"src/(\w+)/(\w+)\.cpp$", path)
        if found and not re.search(r"_(?:test|program)$", found[2]) and not re.search(
                rf"\b{found[2]}\b", tree.get(f"src/{found[1]}/README.md", found[2])):
            yield f"{path}:1: file that its module's README does not name"


def rooms(tree):
    """ARCHITECTURE's picture shows every module and every folder at the top."""
    if (page := tree.get("ARCHITECTURE.md")) is None:
        return
    picture = "".join(re.findall(r"^```\n(.*?)^```$", page, re.M | re.S)[:1])
    wanted = {f"src/{path.split('/')[1]}/" for path in tree if re.match(r"src/\w+/", path)}
    wanted |= {f"{path.split('/')[0]}/" for path in tree if "/" in path and path[0] != "."}
    for room in sorted(wanted):
        if not re.search(rf"(?<![\w/]){room}", picture):
            yield f"ARCHITECTURE.md:1: the picture lacks '{room}'"


def versions(tree):
    """Whatever names the version names the one of the changelog's topmost heading."""
    places = {"CHANGELOG.md": r"^## (\d[\w.]*)", "CMakeLists.txt": r"project\(holdfast VERSION (\S+)",
              "pyproject.toml": r'^version = "(.+)"', "packaging/vcpkg/holdfast/vcpkg.json": r'"version": "(.+)"',
              "apps/kv/server/settings.hpp": r'version_text = "\S+-holdfast-(.+)"'}
    found = {path: re.search(pattern, tree[path], re.M) for path, pattern in places.items() if path in tree}
    wanted = found.get("CHANGELOG.md")
    for path, version in found.items():
        if version is None or wanted is None or version[1] != wanted[1]:
            yield f"{path}:1: version {version and version[1]}, the changelog's is {wanted and wanted[1]}"


def tiers(tree):
    """The public face does not grow: public_names.py says how a name is counted."""
    for tier, headers in public_names.public_names(tree).items():
        for what, found, limit in zip(("headers", "names"), public_names.count(headers), TIERS.get(tier, ())):
            if found > limit:
                yield f"include/holdfast:1: tier '{tier}' has {found} {what}, limit {limit}: put what only authors of structures need into author/"


def faces(tree):
    """A public header documents its members, and sends nobody to classes of a namespace
    'detail'."""
    for path, text in tree.items():
        if public_names.is_public(path):
            for number, line in enumerate(text.splitlines(), 1):
                if re.search(r"///.*\bdetail::", line):
                    yield f"{path}:{number}: a comment sends users to a class of 'detail': show the members here"


def contracts(tree):
    """The labels of a public contract have one order, and each stands there once."""
    for path, text in tree.items():
        if public_names.is_public(path) and path.endswith(".hpp"):  # C headers have blocks for several functions
            for first, lines in references.comment_blocks(text):
                found = [LABELS.index(label[1]) for line in lines if (label := re.match(rf"\s*({'|'.join(LABELS)}):", line))]
                if found != sorted(set(found)):
                    yield f"{path}:{first}: expected the labels {', '.join(LABELS)} in this order, each once; found {', '.join(LABELS[i] for i in found)}"


RULES = [*references.RULES, layering, levels, implementers, tiers, faces, contracts, circles, function_length, file_length, comment_width, intrinsics, seeds, licence, words, places, links, module_readme, rooms, versions, habits.habits, habits.paragraphs, messages.plain, messages.refusals]


def count_in(finding):
    return int(re.search(r"of (\d+)", finding)[1])


def excused(findings, ratchet):
    """Findings the ratchet does not cover, and ratchet entries that cover nothing.

    An entry is 'rule path [limit]'; with a limit, a number in the finding may reach it.
    """
    unused = dict.fromkeys(ratchet)
    for rule, finding in findings:
        path = finding.split(":")[0]
        for entry in ratchet:
            parts = entry.split()
            if parts[:2] == [rule, path] and (len(parts) == 2 or count_in(finding) <= int(parts[2])):
                unused.pop(entry, None)
                break
        else:
            yield finding
    for entry in unused:
        yield f"test/gates/tidy/ratchet.txt:1: '{entry}' is no longer needed: delete it (tidy.py --lower .)"


def lowered(findings, ratchet):
    """The entries that are still needed, each with the limit that the tree needs."""
    for entry in ratchet:
        rule, path, *limit = entry.split()
        met = [finding for of, finding in findings if of == rule and finding.split(":")[0] == path]
        if met and limit:
            entry = f"{rule} {path} {min(int(limit[0]), max(map(count_in, met)))}"
        if met:
            yield entry


def all_findings(tree):
    return [(rule.__name__, finding) for rule in RULES for finding in rule(tree)]


def check(tree, ratchet=()):
    return list(excused(all_findings(tree), ratchet))


def read_tree(root):
    tree = {}
    for path in sorted(root.rglob("*")):
        name = path.relative_to(root)
        if name.parts[0] in ("build", "results", ".git") or "__pycache__" in name.parts or not path.is_file():
            continue
        try:
            tree[str(name)] = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
    return tree


def self_test():
    spdx = f"// {SPDX}\n"
    long_body = "int f(int a) {\n" + "    ++a;\n" * FUNCTION_LINES_MAX + "    return a;\n}\n"
    good = {"CHANGELOG.md": "## 0.2.0, not tagged yet\n", "pyproject.toml": 'version = "0.2.0"\n',
            "src/base/a.cpp": spdx + '#include <base/a.hpp>\nint f() { return 1; }\n',
            "src/base/README.md": "[code](a.cpp), `b`, `c`, `string_util`\n",
            "src/persist/p.cpp": spdx + "#include <immintrin.h>\n#include <base/a.hpp>\n",
            "src/persist/README.md": "`p`, `b`\n"}
    assert check(good) == [], check(good)
    nested = "namespace n {\nclass c : d {\n  c() : x_{1} {\n" + "    f(\"}\");\n" * 99 + "  }\n};\n}\n"
    faults = {
        "layering": {"src/base/b.cpp": spdx + "#include <pool/header.hpp>\n"},
        "engines apart": {"src/clobber/b.cpp": spdx + "#include <undo/undo_log.hpp>\n",
                          "src/clobber/README.md": "`b`\n"},
        "public layering": {"src/base/b.cpp": spdx + "#include <holdfast/pool.hpp>\n"},
        "a header of a higher module": {"src/pool/b.cpp": spdx + "#include <holdfast/pool.hpp>\n",
                                        "src/pool/README.md": "`b`\n"},
        "implementers": {"include/holdfast/log.hpp": spdx,
                         "src/persist/b.cpp": spdx + "#include <holdfast/log.hpp>\n"},
        "function_length": {"src/base/b.cpp": spdx + long_body},
        "citations": {"src/base/b.cpp": spdx + "//\n// (1) So it is.\nint x; // upholds (2)\n"},
        "citation of a header": {"src/base/b.cpp": spdx + "// As it is there (base/a.hpp, 7).\n"},
        "citation of the nearest header": {"src/base/b.cpp": spdx + "// Unlike b.hpp (2), persist/q.hpp (2) has it.\n",
                                           "src/base/b.hpp": spdx + "//\n// (1) So.\n// (2) And so.\n", "src/persist/q.hpp": spdx + "//\n// (1) So.\n"},
        "citation of a list of the module": {"src/base/b.cpp": spdx + "int x; // (2)\n",
                                             "src/base/c.hpp": spdx + "//\n// (1) So.\n"},
        "path of a page": {"README.md": "See `src/base/gone.hpp`.\n"},
        "folder of a page": {"README.md": "See `src/gone/`.\n"},
        "file of a page": {"README.md": "See `gone.hpp`, and `other.hpp`.\n<!-- not in the tree: other.hpp -->\n"},
        "path of a comment": {"src/base/b.cpp": spdx + "// The format stands elsewhere (src/base/gone.hpp).\n"},
        "levels": {"include/holdfast/b.hpp": spdx},
        "tiers": {f"include/holdfast/mod/b{i}.hpp": spdx for i in range(1 + TIERS["application"][0])},
        "faces": {"include/holdfast/mod/map.hpp": spdx + "/// open, insert: detail::keyed_handle.\nclass map;\n"},
        "contracts": {"include/holdfast/mod/map.hpp": spdx + "/// Clears it.\n///\n/// Errors: none.\n/// Ordering: 1 point.\nvoid clear();\n"},
        "tiers by names": {"include/holdfast/author/mod/b.hpp": spdx + "".join(f"int f{i}(int);\n" for i in range(1 + TIERS["author"][1]))},
        "file_length": {"src/base/b.cpp": spdx + "int x;\n" * FILE_LINES_MAX},
        "comment_width": {"src/base/b.cpp": spdx + "// " + "so it is " * 11 + "\n"},
        "circles": {"src/base/b.hpp": spdx + "#include <base/c.hpp>\n",
                    "src/base/c.hpp": spdx + "#include <base/b.hpp>\n"},
        "member function_length": {"src/base/b.cpp": spdx + nested},
        "python function_length": {"a.py": f"# {SPDX}\ndef f():\n" + "    f()\n" * 80},
        "intrinsics": {"src/base/b.cpp": spdx + "void f() { _mm_sfence(); }\n"},
        "seeds": {"src/base/b_test.py": f"# {SPDX}\nseed = random.randrange(9)\n"},
        "device": {"src/base/b_test.cpp": spdx + "std::random_device any;\n"},
        "licence": {"src/base/b.cpp": "int x;\n"},
        "script licence": {"scripts/b": "#!/bin/sh\ntrue\n"},
        "words": {"src/base/b.cpp": spdx + "// a robust one\n"},
        "names": {"src/base/string_util.cpp": spdx},
        "places": {"README.md": "cd " + "/home" + "/me/holdfast\n"},
        "links": {"README.md": "[gone](docs/gone.md)\n"},
        "versions": {"pyproject.toml": 'version = "0.1.0"\n'},
        "module_readme": {"src/base/README.md": None},
        "module_readme of a file": {"src/base/d.cpp": spdx},
        "habits of a comment": {"src/base/b.cpp": spdx + "// Whoever reads it is told.\n"},
        "habits of a page": {"README.md": "A lock\nis to be taken.\n```\nso is this\n```\n| who | that is no prose |\n"},
        "a message": {"src/base/b.cpp": spdx + "int f() { say(\"it is that\" // here\n \" of which you know\"); }\n"},
        "a refusal without what was found": {"src/base/b.cpp": spdx + 'int f() { return refusal(p, errc::corrupt,\n "expected a log of lines"); }\n'},
        "a long paragraph": {"docs/guide/a.md": "A line.\n" * 7 + "- And an item.\n"},
        "a long message": {"tools/b.py": f"# {SPDX}\nprint(f'{{a}}: {'word ' * 31}')\n"},
        "habits of a script": {"a.py": f"# {SPDX}\ndef f():\n    \"\"\"Whoever reads it is told.\"\"\"\n"},
        "a long sentence": {"README.md": "- A list\n- " + "of words " * 20 + "\n"},
        "rooms": {"ARCHITECTURE.md": "```\nsrc/base/ bench/\n```\nsrc/persist/\n"},
    }
    for what, change in faults.items():
        tree = {path: text for path, text in {**good, **change}.items() if text is not None}
        assert len(check(tree)) == 1, (what, check(tree))
    test_ratchet(good, {**good, "src/base/b.cpp": spdx + long_body})
    print(f"tidy: self-test found all {len(faults)} planted faults")


def test_ratchet(good, planted):
    assert check(planted, ["function_length src/base/b.cpp 73"]) == []
    assert len(check(planted, ["function_length src/base/b.cpp 71"])) == 2      # grown, and unused
    assert len(check(good, ["licence src/base/a.cpp"])) == 1                    # no longer needed
    worded = {**good, "README.md": "It is told.\nSo is that.\n"}
    assert check(worded, ["habits README.md 3"]) == []
    assert len(check(worded, ["habits README.md 1"])) == 2
    assert len(check({**good, "a.cpp": ""}, ["habits README.md 1"])) == 2       # another rule's finding needs no number
    assert list(lowered(all_findings(worded), ["habits README.md 3", "habits a.md 1", "licence a.py"])) == ["habits README.md 2"]
    assert list(lowered(all_findings(worded), ["habits README.md 1"])) == ["habits README.md 1"]


def main():
    if sys.argv[1:] == ["--self-test"]:
        return self_test()
    stored = pathlib.Path(__file__).with_name("ratchet.txt")
    lines = stored.read_text().splitlines()
    ratchet = [line for line in lines if line and not line.startswith("#")]
    findings = all_findings(read_tree(pathlib.Path(sys.argv[-1]).resolve()))
    if sys.argv[1] == "--lower":
        kept = [line for line in lines if line.startswith("#")] + list(lowered(findings, ratchet))
        stored.write_text("".join(f"{line}\n" for line in kept))
        return 0
    findings = list(excused(findings, ratchet))
    print("\n".join(findings) if findings else "tidy: nothing to report")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
