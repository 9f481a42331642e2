#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How many names and headers the public face has, tier by tier.

usage: public_names.py ROOT            a line for each tier, and one for each header
       public_names.py --names ROOT    every name

A name is what a header declares for others at namespace scope, or publicly in a class: a type, a
function (its overloads are one name), a variable, a member, an enumerator, a macro. Not counted: a
namespace called detail, the folders detail/ and abi/, constructors and destructors, friends, and
names that end in '_'. Read as text, without a compiler: each header is counted by itself. The
limits are TIERS in tidy.py.
"""
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
import source_text  # noqa: E402

HEADERS = "include/holdfast/"
TIERS = ("application", "application in C", "author", "internal")
CLASS = re.compile(r"\b(?:class|struct|union)\s+(?:alignas\s*\([^)]*\)\s*)?([\w:]+)?")
ENUM = re.compile(r"\benum\s+(?:class\s+|struct\s+)?(\w*)")


def tier_of(path):
    parts = path[len(HEADERS):].split("/")
    if {"detail", "abi"} & set(parts):
        return "internal"
    return "author" if parts[0] == "author" else "application in C" if path.endswith(".h") else "application"


def is_public(path):
    return path.startswith(HEADERS) and path.endswith((".h", ".hpp")) and tier_of(path) != "internal"


def head_of(statement):
    """A declaration without the parts that do not matter for its name."""
    statement = re.sub(r"\[\[.*?\]\]|__attribute__\s*\(\(.*?\)\)+", " ", statement, flags=re.S)
    statement = re.sub(r"^\s*(?:(?:public|private|protected)\s*:(?!:)\s*)+", "", statement)
    while re.match(r"\s*template\s*<", statement):
        begin = statement.index("<")
        depth, at = 0, begin
        for at in range(begin, len(statement)):
            depth += (statement[at] == "<") - (statement[at] == ">")
            if depth == 0:
                break
        statement = statement[at + 1:]
        statement = re.sub(r"^\s*requires\b.*?(?=\b(?:static|constexpr|inline|auto|bool|void|class|struct|explicit|friend|using)\b)", "",
                           statement, flags=re.S)
    return statement.strip()


def declared(head, owner):
    """The names of a declaration that has no scope of its own."""
    if not head or re.match(r"(friend|static_assert|using\s+namespace|namespace)\b", head):
        return []
    if found := re.match(r"using\s+(?:typename\s+)?(?:[\w:<>,\s]*::)?(\w+)\s*(?:=|$)", head):
        return [found[1]]
    if re.match(r"typedef\b", head):
        return re.findall(r"\(\s*\*\s*(\w+)\s*\)", head) or re.findall(r"(\w+)\s*$", head)
    if found := re.match(r"concept\s+(\w+)", head):
        return [found[1]]
    flat = source_text.balanced(head.replace("->", "  "), "<", ">") if "operator" not in head else head
    if "operator" in flat:
        return [re.sub(r"\s+", "", found[0])] if (found := re.search(r"operator\s*(?:\(\)|\"\"\s*\w+|[^\s\w(]+|[\w:]+)", flat)) else []
    before = re.split(r"=|\{", flat)[0]
    if "(" in before:
        if found := re.match(r"[\w\s:*&]*?\(\s*\*\s*(\w+)\s*\)", before):   # a pointer to a function
            return [found[1]]
        found = re.search(r"(~?\w+)\s*\(", re.sub(r"\b(noexcept|alignas|decltype|explicit|requires)\s*\([^()]*\)", "", before))
        name = found[1] if found else ""
        return [] if name in ("", owner) or name.startswith("~") else [name]
    if re.match(r"(class|struct|union|enum)\s+[\w:]+$", before.strip()):
        return []   # said, and not declared here
    names = []
    for one in re.split(r",(?![^()]*\))", source_text.balanced(re.sub(r"\{.*?\}", "", flat, flags=re.S), "(", ")")):
        if found := re.search(r"(\w+)\s*(?:\[[^\]]*\]\s*)*(?::\s*\d+\s*)?(?:=.*)?$", one.strip(), re.S):
            names.append(found[1])
    return names


class Reader:
    def __init__(self, text):
        self.text = source_text.without_directives(source_text.without_literals(text))
        self.at = 0
        self.names = set()

    def skip_block(self):
        """The position behind the brace that closes the one at 'at'."""
        depth = 0
        while self.at < len(self.text):
            depth += {"{": 1, "}": -1}.get(self.text[self.at], 0)
            self.at += 1
            if depth == 0:
                return

    def enumerators(self, scope):
        begin = self.at + 1
        self.skip_block()
        for one in source_text.balanced(self.text[begin:self.at - 1], "(", ")").split(","):
            if found := re.match(r"\s*(\w+)", one):
                self.add(scope, found[1])

    def add(self, scope, name):
        if not name.endswith("_"):
            self.names.add("::".join([*scope, name]))

    def opened(self, head, scope, owner, shown):
        """At an opening brace: reads what is behind it. Whether the statement goes on behind that."""
        if re.match(r'(inline\s+)?namespace\b|extern\s*"', head):
            name = re.sub(r'(inline\s+)?namespace\s*|extern\s*"[^"]*"', "", head).strip()
            self.at += 1
            self.scope([*scope, *name.split("::")] if name else scope, None, shown and "detail" not in name.split("::"), shown)
            return False
        if (found := ENUM.match(re.sub(r"^typedef\s+", "", head))):
            if shown and found[1]:
                self.add(scope, found[1])
            if shown:
                self.enumerators([*scope, found[1]] if "class" in head and found[1] else scope)
            else:
                self.skip_block()
            return True
        if (found := CLASS.search(head)) and "(" not in head.split(found[0])[0] and not re.search(r"\)\s*(const|noexcept)?\s*$", head) \
                and re.match(r"(typedef\s+|static\s+|inline\s+|constexpr\s+)*(class|struct|union)\b", head):
            name = found[1] or ""
            special = re.search(r"\b" + re.escape(name) + r"\s*<", re.split(r"(?<!:):(?!:)", head)[0]) if name else None
            mine = shown and not name.startswith("std::")
            if mine and name and not special:
                self.add(scope, name)
            self.at += 1
            self.scope([*scope, name], name, mine, head.lstrip().find("class") != 0)
            return True
        if shown:
            for name in declared(head, owner):
                self.add(scope, name)
        self.skip_block()
        return bool(re.search(r"=\s*$|\w\s*$", head) and "(" not in head) or "=" in source_text.balanced(head, "(", ")").replace("==", "")

    def scope(self, scope, owner, mine, public):
        """Reads up to the closing brace. 'public': whether a class's members are, before it says so."""
        shown = mine and public if owner is not None else mine
        begin, behind = self.at, False
        while self.at < len(self.text):
            char = self.text[self.at]
            statement = self.text[begin:self.at]
            if char == "}":
                self.at += 1
                return
            if char == ":" and owner is not None and (found := re.search(r"\b(public|private|protected)\s*$", statement)) \
                    and not head_of(statement[:found.start()]):
                shown = mine and found[1] == "public"
                begin = self.at + 1
            elif char == "(":
                depth = 0
                while self.at < len(self.text):
                    depth += {"(": 1, ")": -1}.get(self.text[self.at], 0)
                    if depth == 0:
                        break
                    self.at += 1
            elif char == "{":
                head = head_of(statement)
                if re.search(r"\)[\w\s]*:[^:].*\w$", head, re.S) and not head.endswith(")"):
                    self.skip_block()   # a member's initialiser
                    continue
                behind = self.opened(head, scope, owner, shown) or behind
                if behind:
                    while self.at < len(self.text) and self.text[self.at] != ";":
                        if self.text[self.at] == "{":
                            self.skip_block()
                        else:
                            self.at += 1
                    begin, behind = self.at + 1, False
                else:
                    begin = self.at
                    continue
            elif char == ";":
                if shown:
                    for name in declared(head_of(statement), owner):
                        self.add(scope, name)
                begin = self.at + 1
            self.at += 1


def names_of(text):
    reader = Reader(text)
    reader.scope([], None, True, True)
    macros = re.findall(r"^[ \t]*#[ \t]*define[ \t]+(HF_\w+)", text, re.M)
    return reader.names | {name for name in macros if not name.endswith("_")}


def public_names(tree):
    """For a tree (path -> text): tier -> header -> its names."""
    found = {tier: {} for tier in TIERS}
    for path, text in tree.items():
        if path.startswith(HEADERS) and path.endswith((".h", ".hpp")):
            found[tier_of(path)][path] = names_of(text) if is_public(path) else set()
    return found


def count(headers):
    return len(headers), sum(len(names) for names in headers.values())


def main():
    root = pathlib.Path(sys.argv[-1])
    tree = {str(path.relative_to(root)): path.read_text(encoding="utf-8") for path in sorted((root / HEADERS).rglob("*")) if path.is_file()}
    for tier, headers in public_names(tree).items():
        print(f"{tier}: {count(headers)[0]} headers, {count(headers)[1]} names")
        for path, names in headers.items():
            print(f"  {len(names):4} {path}")
            if sys.argv[1] == "--names":
                print("".join(f"         {name}\n" for name in sorted(names)), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
