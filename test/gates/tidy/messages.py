#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the product says to people, on one page; two rules of tidy.py: messages are plain, and a refusal says what was expected and found.

usage: messages.py ROOT      print the page: file, line, text

A message is a string of three words or more in the product's own code: refusals, fatal stops, diagnostics of the compiler,
output of commands, help. Neighbouring literals are one. Format fields stay as they are. In a message a semicolon ends a
sentence: each clause says another thing to do.
"""
import ast
import pathlib
import re
import sys

import habits

PRODUCT = ("apps/", "compiler/", "include/", "python/", "src/", "tools/")
NOT_PRODUCT = re.compile(r"(^|/)(tests?|litmus)/|_(test|program|fuzz|sections)\.|/(test_support|test_pools|crash_model)\.|^src/check/|^tools/classify/test|^apps/(?!kv/server/)")
TOKEN = re.compile(r'//[^\n]*|/\*.*?\*/|\'(?:[^\'\\\n]|\\.)+\'|R"\((?P<raw>.*?)\)"|"(?P<text>(?:[^"\\\n]|\\.)*)"|^\s*#\s*include[^\n]*', re.S | re.M)
ESCAPES = {r"\n": "\n", r"\"": '"', r"\\": "\\", r"\t": "\t"}
WORD = re.compile(r"[A-Za-z]{2,}")
# Codes of what a caller or a file has given, and names of functions and closures that refuse it.
REFUSED = r"corrupt|truncated|not_a_pool|wrong_version|wrong_layout|unknown_feature|missing_engine|function_changed|bad_argument|limit_reached|conflict"
REFUSES = re.compile(rf"\berrc::(?:{REFUSED})\b|\b(?:corrupt|wrong|bad|refuse_log)\(")
SAID_ELSEWHERE = re.compile(r": \{\}(?:\{\}|;|$)|: $")  # a field, or what follows, has both


def cpp_strings(text):
    """(line, string) of literals that are not comments; neighbours are one."""
    start, joined, end = 0, "", -1
    for found in TOKEN.finditer(text):
        piece = found["raw"] if found["raw"] is not None else found["text"]
        if piece is None:
            continue
        if joined and text[end:found.start()].strip():
            yield start, joined
            joined = ""
        if not joined:
            start = text.count("\n", 0, found.start()) + 1
        joined += re.sub(r'\\[n"\\t]', lambda at: ESCAPES[at[0]], piece)
        end = found.end()
    if joined:
        yield start, joined


def python_strings(text):
    tree = ast.parse(text)
    inner = set()  # docstrings, and the parts of formatted strings
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            inner.add(node.value)
        if isinstance(node, ast.JoinedStr):
            inner.update(ast.walk(node))
            inner.discard(node)
    for node in ast.walk(tree):
        if node in inner:
            continue
        if isinstance(node, ast.JoinedStr):
            yield node.lineno, "".join(part.value if isinstance(part, ast.Constant) else "{}" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.lineno, node.value


def messages(path, text):
    """(line, text) of each message of the product."""
    if not path.startswith(PRODUCT) or NOT_PRODUCT.search(path):
        return
    suffix = pathlib.PurePath(path).suffix
    strings = python_strings(text) if suffix == ".py" else cpp_strings(text) if suffix in habits.CODE else ()
    for line, string in strings:
        if len(WORD.findall(string)) >= 3 and " " in string.strip():
            yield line, string


def plain(tree):
    """A message has no phrase that hides its actor, and no sentence of more than SENTENCE_WORDS_MAX words."""
    for path, text in tree.items():
        for line, message in messages(path, text):
            rows = re.sub(r"\n(?=  )", "\n\n", message.replace(";", "."))  # an indented row is an item of its own
            rows = [(line, row.strip()) for row in rows.split("\n")]
            found = [what for _, what in habits.phrases(rows)]
            if re.search("[.,:;]", message):  # not a list of names
                found += [f"a sentence of {words} words" for _, words in habits.long_sentences(rows)]
            for what in found:
                yield f"{path}:{line}: a message with {what} (messages.py)"


def refusals(tree):
    """A refusal says what was expected, and what was found."""
    for path, text in tree.items():
        if not path.startswith("src/") or path.startswith("src/verify/") or NOT_PRODUCT.search(path) or not path.endswith((".cpp", ".hpp")):
            continue  # a report of src/verify has a column for each
        literals = {found.start(): found["text"] or "" for found in TOKEN.finditer(text)}
        code = TOKEN.sub(lambda found: " " * len(found[0]), text)
        for statement in re.finditer(r"[^;{}]+", code):
            if not REFUSES.search(statement[0]) or "no_such_value(" in statement[0]:
                continue
            said = "".join(string for at, string in literals.items() if statement.start() <= at < statement.end())
            words = WORD.findall(said)
            if len(words) < 3 or " " not in said or SAID_ELSEWHERE.search(said) or {"expected", "found"} <= set(words):
                continue
            line = text.count("\n", 0, min(at for at in literals if statement.start() <= at and literals[at])) + 1
            yield f"{path}:{line}: a refusal that does not say what was expected, and what was found: '{said}' (messages.py)"


if __name__ == "__main__":
    root = pathlib.Path(sys.argv[1])
    for each in sorted(root.rglob("*")):
        name = str(each.relative_to(root))
        if name.startswith(PRODUCT) and each.is_file() and each.suffix in habits.CODE | {".py"}:
            for number, said in messages(name, each.read_text(encoding="utf-8")):
                print(f"{name}:{number}: {said!r}")
