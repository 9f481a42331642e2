# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Habits that make prose hard to read: in comments of C, C++ and Python, and in pages. Two rules of tidy.py.

usage: habits.py FILE...     print each place

A sentence has an actor, a verb and one idea. Each phrase below mostly stands where one of them is missing. A match is a
place to look, not a verdict, so the rule counts them for each file, and a count may only fall. In a page a sentence of more
than SENTENCE_WORDS_MAX words counts as well. A paragraph of a guide has PARAGRAPH_LINES_MAX lines at most.
"""
import ast
import io
import pathlib
import re
import sys
import tokenize

from references import comment_blocks

SENTENCE_WORDS_MAX = 30
PARAGRAPH_LINES_MAX = 6
ITEM = re.compile(r"[-*#>]+ |\d+\. ")
CODE = {".cpp", ".hpp", ".c", ".h", ".cc", ".def", ".ipp"}
HABITS = [re.compile(pattern) for pattern in (
    r"\b[Ww]ho(?:ever)?\b", r"\b(?:told|tells?)\b", r"^(?:Of|Whose|Who|Whoever) ", r"\bbut for\b", r"\b(?:is|are) none\b",
    r"\b[Ss]o (?:does|is|do|are|has|did)\b", r"\bof (?:which|whom)\b", r"\b(?:is|are|was) to\b", r"\bthat (?:is|are) no\b")]


def page_lines(text):
    """(line, text) of a page, without blocks of code and tables."""
    fenced = False
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("```"):
            fenced = not fenced
        elif not fenced:
            yield number, "" if line.startswith(("|", "<!--")) else line.strip()


def comment_lines(text):
    for first, lines in comment_blocks(text):
        yield from enumerate((line.strip() for line in lines), first)


def python_lines(text):
    """Comments, and what documents modules, classes and functions."""
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string.lstrip("# ")
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) and ast.get_docstring(node):
            text_of = node.body[0]
            yield from enumerate((line.strip() for line in text_of.value.value.splitlines()), text_of.lineno)


def prose_lines(path, text):
    suffix = pathlib.PurePath(path).suffix
    if suffix == ".md":
        return page_lines(text)
    return comment_lines(text) if suffix in CODE else python_lines(text) if suffix == ".py" else ()


def long_sentences(lines):
    """(line in which it ends, words); a list's item, a heading and a paragraph end one."""
    words, last = 0, 0
    for number, line in [*lines, (0, "")]:
        if not line or ITEM.match(line):
            if words > SENTENCE_WORDS_MAX:
                yield last, words
            words = 0
        for word in line.split():
            words += 1
            if re.search(r"[.!?:][)\"*_`]*$", word):
                if words > SENTENCE_WORDS_MAX:
                    yield number, words
                words = 0
        last = number


def phrases(lines):
    """(line, what) of each phrase that hides an actor."""
    return [(number, f"'{match[0].strip()}'") for number, line in lines for each in HABITS if (match := each.search(line))]


def matches(path, text):
    """(line, what) of each place."""
    lines = list(prose_lines(path, text))
    found = phrases(lines)
    if path.endswith(".md"):
        found += [(number, f"a sentence of more than {SENTENCE_WORDS_MAX} words") for number, _ in long_sentences(lines)]
    return sorted(found)


def habits(tree):
    """Sentences name their actor."""
    for path, text in tree.items():
        if found := matches(path, text):
            yield f"{path}:{found[-1][0]}: a count of {len(found)} phrases that hide an actor, or long sentences; the last is {found[-1][1]} (habits.py)"


def paragraphs(tree):
    """A paragraph of a guide is short."""
    for path, text in tree.items():
        if not (path.startswith("docs/guide/") and path.endswith(".md")):
            continue
        lines, last = 0, 0
        for number, line in [*page_lines(text), (text.count("\n") + 2, "")]:
            ends = not line or ITEM.match(line) or number != last + 1
            if ends and lines > PARAGRAPH_LINES_MAX:
                yield f"{path}:{last}: a paragraph of {lines} lines, of {PARAGRAPH_LINES_MAX} at most: divide it (habits.py)"
            lines, last = bool(line) + (0 if ends else lines), number


if __name__ == "__main__":
    for name in sys.argv[1:]:
        for number, what in matches(name, pathlib.Path(name).read_text(encoding="utf-8")):
            print(f"{name}:{number}: {what}")
