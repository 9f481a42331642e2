# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What comments and pages refer to is there: rules of tidy.py.

A path must be in the tree, or be marked as an example: a part in capitals matches any name
(src/NAME), and a page names its readers' own files in a comment, <!-- not in the tree: numbers.cpp,
results/ -->.

A number in parentheses is that of a numbered list at the start of comment lines, '(3) …' or '3. …'. Beside a file's name,
'section.hpp (3)', '(section.hpp, 3)' or '(3) of section.hpp', the list is that file's. Otherwise it is the file's own, or one of the
headers and pages of its module, or of a file that the comment names.
"""
import pathlib
import re

CODE = {".cpp", ".hpp", ".c", ".h", ".cc", ".def"}
NAME = r"(?:\w+/)*\w+\.(?:hpp|cpp|h|c)\b"
FILE = re.compile(r"\w\.(?:cpp|hpp|h|c|cc|py|md|txt|def|json|cmake|ll)$")
PATH = re.compile(r"[\w.+-]+(?:/[\w.+-]+)*/?")
NUMBERS = r"\(?\d{1,2}\)?(?:(?:, | to | and | or |, and )\(?\d{1,2}\)?)*"
BESIDE = re.compile(rf"(?P<name>{NAME}),? (?P<n>\(\d{{1,2}}\)(?:(?:,|;)? (?:to |and |or )?\(\d{{1,2}}\))*)"
                    rf"|\([^()]*?(?P<inside>{NAME}), (?P<m>{NUMBERS})(?=[);:])"
                    rf"|(?P<k>\(\d{{1,2}}\)(?:(?:, | to | and )\(\d{{1,2}}\))*) of (?P<of>{NAME})")
ALONE = re.compile(r"(?<![\w\])>])\(([1-9]\d?)\)")


def folders_above(path):
    return [str(up) for up in pathlib.PurePath(path).parents]


def comment_blocks(text):
    """Comments of C and C++, lines that follow each other together: (first line, lines without their marks)."""
    block, last = [], None
    for found in re.finditer(r'"(?:\\.|[^"\\\n])*"|//[^\n]*|/\*.*?\*/', text, re.S):
        if found[0][0] == '"':
            continue
        line = text.count("\n", 0, found.start()) + 1
        lines = [re.sub(r"^[ \t]*(?://[/!]?|/\*+|\*/?)", "", each) for each in found[0].splitlines()]
        if block and line != last + 1:
            yield block[0], block[1]
            block = []
        block = [block[0], block[1] + lines] if block else [line, lines]
        last = line + len(lines) - 1
    if block:
        yield block[0], block[1]


def items(lines):
    """The numbers of the list that a comment, or a page, is: one that begins with 1."""
    found = [re.match(r"\s*(?:\((\d{1,2})\)|(\d{1,2})\.)\s+\S", line) for line in lines]
    numbers = {int(each[1] or each[2]) for each in found if each}
    if 1 not in numbers:
        return set()
    # An item may begin behind the sentence that ends the one before.
    return numbers | {int(n) for line in lines for n in re.findall(r"[.:] \((\d{1,2})\) [A-Z]", line)}


def listed(path, text):
    if path.endswith(".md"):
        return items(text.splitlines())
    return set().union(*(items(lines) for _, lines in comment_blocks(text)))


class Lists:
    """Which numbers are listed where."""

    def __init__(self, tree):
        self.of = {path: numbers for path, text in tree.items()
                   if pathlib.PurePath(path).suffix in CODE | {".md"} and (numbers := listed(path, text))}

    def named(self, name):
        """The numbers of the files that 'name' may mean."""
        return [numbers for path, numbers in self.of.items() if path == name or path.endswith("/" + name)]

    def own(self, path):
        """The numbers of the file and its header; if they have none, of its module: headers and
        pages of its folder, its public headers."""
        stem, folder = path.rpartition(".")[0], path.rpartition("/")[0]
        near = set().union(*(self.of.get(stem + end, set()) for end in (".cpp", ".hpp", ".h", ".c")))
        return near or set().union(*(numbers for other, numbers in self.of.items()
                                     if not other.endswith((".cpp", ".c")) and self.is_of_module(other, folder)))

    @staticmethod
    def is_of_module(other, folder):
        other, folder = (each.replace("holdfast/author", "holdfast") for each in (other, folder))
        parts = folder.split("/")
        if parts[0] == "compiler":
            return other.startswith(("compiler/analysis/", "compiler/transform/"))
        module = parts[1] if parts[0] in ("src", "research") and len(parts) > 1 else parts[2] if parts[:2] == ["include", "holdfast"] and len(parts) > 2 else None
        return (other.rpartition("/")[0] == folder or module is not None
                and other.startswith((f"src/{module}/", f"research/{module}/", f"include/holdfast/{module}/", f"include/holdfast/{module}.")))


def citations(tree):
    """Numbers that comments cite are listed."""
    lists = Lists(tree)
    for path, text in tree.items():
        if pathlib.PurePath(path).suffix not in CODE or path.startswith("compiler/test/"):
            continue
        own = lists.own(path)
        for first, lines in comment_blocks(text):
            for line, number, name in cited(lines):
                if name:
                    good = any(number in numbers for numbers in lists.named(name))
                else:
                    good = number in own or any(number in numbers for each in re.findall(NAME, " ".join(lines))
                                                for numbers in lists.named(each))
                if not good:
                    where = f"of {name}" if name else "of its file, its module or a file that the comment names"
                    yield f"{path}:{first + line}: cites ({number}), which is in no list {where}"


def cited(lines):
    """Yields (line in the block, number, file beside it or None)."""
    starts, at = [], 0
    for line in lines:
        starts.append(at)
        at += len(line) + 1
    text = " ".join(lines)

    def line_of(place):
        return max(i for i, start in enumerate(starts) if start <= place)

    for found in BESIDE.finditer(text):
        name = found["name"] or found["inside"] or found["of"]
        for number in re.findall(r"\d+", found["n"] or found["m"] or found["k"]):
            yield line_of(found.start()), int(number), name
    own = items(lines)
    for found in ALONE.finditer(BESIDE.sub(lambda m: " " * len(m[0]), text)):
        if int(found[1]) not in own:
            yield line_of(found.start()), int(found[1]), None


def pages_words(text):
    """The words that a page has in backticks outside of its blocks: (line, word)."""
    outside = re.sub(r"^```.*?^```$", lambda block: re.sub(r"[^\n]", "", block[0]), text, flags=re.M | re.S)
    for number, line in enumerate(outside.splitlines(), 1):
        for span in re.findall(r"`([^`]+)`", line):
            yield from ((number, word) for word in span.split())


def comments_words(path, text, tops):
    """Paths from the tree's top in a file's comments, and what is in backticks there: (line, word)."""
    if pathlib.PurePath(path).suffix in CODE:
        comments = [(first + i, line) for first, lines in comment_blocks(text) for i, line in enumerate(lines)]
    elif path.endswith((".py", ".cmake", "CMakeLists.txt")) or text.startswith("#!"):
        comments = [(n, line) for n, line in enumerate(text.splitlines(), 1) if re.match(r"\s*#[^!]", line)]
    else:
        return
    for number, line in comments:
        for span in re.findall(r"`([^`]+)`", line):
            yield from ((number, word) for word in span.split())
        for word in re.findall(r"(?<![\w/.:$}<>*%-])\w+(?:/[\w.+*-]+)+", line):
            if word.split("/")[0] in tops:
                yield number, word


def paths(tree):
    """Paths that pages and comments name are in the tree."""
    known = set(tree) | {up for path in tree for up in folders_above(path)} | {path.rpartition(".")[0] for path in tree}
    tops = {path.split("/")[0] for path in tree if "/" in path}
    tails = {tail for path in known for i in range(path.count("/") + 1) if (tail := path.split("/", i)[-1])}
    for path, text in tree.items():
        if path.startswith(("compiler/test/", "test/gates/tidy/")):
            continue
        page = path.endswith(".md")
        examples = {each.strip() for listed_there in re.findall(r"<!-- not in the tree: (.*?) -->", text, re.S)
                    for each in listed_there.split(",")}
        for line, word in sorted(set(pages_words(text) if page else comments_words(path, text, tops))):
            word = word.strip("(),;:\"'.").rstrip("/")
            if not PATH.fullmatch(word) or re.search(r"(^|/)[A-Z]{4,}(/|\.|$)", word) and word not in known:
                continue
            from_top = "/" in word and word.split("/")[0] in tops and not word.split("/")[-1].isdigit()
            if not from_top and not FILE.search(word) or word in examples or any(word.startswith(e) for e in examples if e.endswith("/")):
                continue
            beside = f"{path.rpartition('/')[0]}/{word}"
            if not (word in known or beside in known if from_top and not FILE.search(word) else word in tails):
                yield f"{path}:{line}: names '{word}', which is not in the tree"


RULES = [citations, paths]
