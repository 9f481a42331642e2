# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Where the functions of a C or C++ text are, for checks and mutants: read as text, without a compiler."""
import re
import typing


def blanked(text):
    """Spaces in place of everything but newlines."""
    return re.sub(r"[^\n]", " ", text)


def without_literals(text):
    """The text with comments, and what stands in literals, blanked: every character keeps its place."""
    pattern = (r'//[^\n]*|/\*.*?\*/|R"(?P<d>\w*)\(.*?\)(?P=d)"'
               r'|"(?:\\.|[^"\\\n])*"|(?<![0-9a-fA-F])\'(?:\\.|[^\'\\\n])+\'')
    return re.sub(pattern, lambda m: blanked(m[0]) if m[0][0] == "/" else '"' + blanked(m[0][1:-1]) + '"',
                  text, flags=re.S)


def without_directives(text):
    return re.sub(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", lambda m: blanked(m[0]), text, flags=re.M)


class Function(typing.NamedTuple):
    """An outermost function: its name with the classes around it, where its text is, its length."""
    name: str
    begin: int
    end: int
    line: int   # of its opening brace
    lines: int  # from that to its closing brace


def balanced(text, opening, closing):
    """The text without the contents of such brackets, nested ones included."""
    out, depth = [], 0
    for char in text:
        depth += char == opening
        if depth == 0:
            out.append(char)
        depth -= char == closing and depth > 0
    return "".join(out)


def declared_name(header):
    """The name that a function's header declares: 'section::commit'."""
    header = re.sub(r"\[\[.*?\]\]|\b(noexcept|alignas|decltype|requires)\s*(?=\()|__attribute__\s*\(\(.*?\)\)",
                    "", header, flags=re.S)
    operator = re.search(r"((?:\w+\s*::\s*)*operator\s*(?:\(\)|[^\s\w(]+|[\w ]+))\s*\(", balanced(header, "<", ">")
                         if "operator<" not in header else header)
    if operator:
        return re.sub(r"\s", "", operator[1])
    found = re.search(r"((?:\w+\s*::\s*)*~?\w+)\s*\(", balanced(header, "<", ">"))
    return re.sub(r"\s", "", found[1]) if found else ""


def kind_of(header, inside):
    head = re.sub(r"^\s*(template\s*<[^{;]*?>\s*(?=\w))*", "", header)
    if any(kind not in ("scope", "namespace") for kind in inside):
        return "other"
    if re.match(r'\s*(inline\s+)?namespace\b|\s*extern\s*"\s*"\s*$', head):
        return "namespace"
    if re.match(r"\s*(\[\[.*?\]\]\s*)?(inline\s+)?(class|struct|union|enum)\b", head) and "(" not in \
            re.sub(r"alignas\s*\([^)]*\)", "", head):
        return "scope"
    if re.search(r"\)[\w\s]*:[^:].*\w$", head, re.S):
        return "init"  # member{…} of a constructor's initialiser list
    return "function" if "(" in header else "other"


def functions(source):
    """Yields every outermost function that has a body, in order."""
    text = without_directives(without_literals(source))
    scopes = []  # of each open brace: its kind, and a class's name
    header, line, header_at, begun = "", 1, 0, None
    for at, char in enumerate(text):
        if char == "{":
            kind = kind_of(header, [k for k, _ in scopes])
            name = ""
            if kind == "scope":
                found = re.search(r"\b(?:class|struct|union|enum)\s+(?:class\s+|alignas\s*\([^)]*\)\s*)*([\w:]+)",
                                  balanced(header, "<", ">"))
                name = found[1] if found else ""
            if kind == "function":
                begun = header_at, line, declared_name(header)
            scopes.append((kind, name))
            header = header if kind == "init" else ""
        elif char == "}":
            kind, _ = scopes.pop() if scopes else ("other", "")
            if kind == "function":
                outer = [name for k, name in scopes if k == "scope" and name]
                first, first_line, own = begun
                yield Function("::".join([*outer, own]), first, at + 1, first_line, line - first_line + 1)
            header = header if kind == "init" else ""
        elif char == ";":
            header = ""
        elif header or not char.isspace():
            header_at = at if not header else header_at
            header += char
        line += char == "\n"
