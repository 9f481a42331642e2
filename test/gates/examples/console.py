#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The commands of a page, run as it prints them, print what the page shows.

usage: console.py --source ROOT [--build BUILD] [--python BIN] PAGE  run the page's commands in a clean folder
       console.py --marked ROOT                                      look at the blocks of all pages, run nothing
       console.py --self-test                                        require that each kind of wrong line is found

In a block marked `console`, a line that begins with '$ ' is a command; the lines behind it are what
a terminal shows of it. '…' matches any text within a line. A block marked `sh` is commands alone,
which must succeed. A block marked `python` is a program; it may use the classes and functions of
those before it. All commands of a page run in one shell, in a folder that looks like a clone in
which `make build` has been run: its `build/release` is BUILD, its home is the folder itself.

A block that is not run says why in the line before it: <!-- not run: it takes half an hour -->.

--python: only the blocks that need the Python package, which the python3 in BIN has; without it, all others.
"""
import argparse
import ast
import os
import pathlib
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading

BLOCK = re.compile(r"(?:^<!--(?P<mark>[^\n]*?)-->\n)?^```(?P<language>\w*)\n(?P<body>.*?)^```$", re.M | re.S)
RUN = ("console", "sh", "python")
COMMAND = re.compile(r"^(\$ |(sudo |holdfast[-\w+]* |make |cmake |pip |apt(-get)? |python3? |git |\./)\S)", re.M)
SECONDS_MAX = 240
END = re.compile(rb"\n\x01(\d+)\n")


def blocks(page):
    """Yields (line, language, body, why it is not run or None)."""
    for block in BLOCK.finditer(page):
        why = re.match(r"\s*not run: (.*\S)", block["mark"] or "")
        yield page.count("\n", 0, block.start("language")) + 1, block["language"], block["body"], why and why[1]


def unmarked(page, targets=()):
    """Faults in the marks of a page's blocks: commands in a block that nobody runs; and a `make` of
    an unknown target."""
    for named in re.finditer(r"`make ([a-z][a-z0-9-]*)", page):
        if named[1] not in targets:
            yield f"{page.count(chr(10), 0, named.start()) + 1}: the Makefile has no target {named[1]}"
    for line, language, body, why in blocks(page):
        if language in ("bash", "shell", "zsh"):
            yield f"{line}: a block of commands is marked sh, or console where it shows what they print"
        elif language == "console" and not body.startswith("$ "):
            yield f"{line}: a console block begins with a command"
        elif language == "sh" and re.search(r"^\$ ", body, re.M):
            yield f"{line}: a block with prompts is marked console"
        elif language in ("", "text") and why is None and COMMAND.search(body):
            yield f"{line}: a block with commands is marked console or sh, and run, or says why it is not"


def needs_package(language, body):
    return language == "python" or "import holdfast" in body


def definitions(body):
    """The definitions and imports of a program, without its actions."""
    kept = [ast.get_source_segment(body, node) for node in ast.parse(body).body
            if isinstance(node, (ast.Import, ast.ImportFrom, ast.ClassDef, ast.FunctionDef))]
    return "".join(f"{each}\n" for each in kept)


def steps(page, python=False):
    """Yields (line, command, its output, or None if any output will do) of the blocks that are run."""
    defined = "import holdfast\n"
    for line, language, body, why in blocks(page):
        if why or language not in RUN or needs_package(language, body) != python:
            continue
        if language == "sh":
            yield line, body, None
        elif language == "python":
            yield line, f"python3 -c {shlex.quote(defined + body)}", None
            defined += definitions(body)
        else:
            at = line + 1
            for part in re.split(r"^\$ ", body, flags=re.M)[1:]:
                command, _, output = part.partition("\n")
                yield at, command, output
                at += part.count("\n")


class Shell:
    """One bash for a page; what is exported, and the folder, last from command to command."""
    def __init__(self, folder, environment):
        self.bash = subprocess.Popen(["bash", "--norc", "--noprofile"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                     stderr=subprocess.STDOUT, cwd=folder, env=environment, start_new_session=True)
        self.write("ended() { local status=$?; printf '\\n\\001%d\\n' $status; return $status; }\n")

    def write(self, text):
        self.bash.stdin.write(text.encode())
        self.bash.stdin.flush()

    def run(self, command):
        """(exit status, what it printed); (None, …) where the shell itself has ended, or the time is up."""
        timer = threading.Timer(SECONDS_MAX, self.close)
        timer.start()
        try:
            self.write("{ " + command.rstrip("\n") + "\n} </dev/null\nended\n")
            printed = b""
            while not (end := END.search(printed)):
                more = os.read(self.bash.stdout.fileno(), 65536)
                if not more:
                    return None, printed.decode(errors="replace")
                printed += more
        finally:
            timer.cancel()
        # A terminal's shell has no more to say of a process that was killed.
        shown = re.sub(r"^bash: line \d+: +\d+ (Killed|Aborted) .*$", r"\1", printed[:end.start()].decode(errors="replace"), flags=re.M)
        return int(end[1]), shown

    def close(self):
        try:
            os.killpg(self.bash.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass


def agrees(expected, found):
    pattern = ".*".join(re.escape(piece) for piece in expected.split("…"))
    return re.fullmatch(pattern, found) is not None     # '.' ends with the line


def first_fault(page, folder, environment, python=False):
    shell = Shell(folder, environment)
    try:
        for line, command, expected in steps(page, python):
            status, found = shell.run(command)
            if status is None or (status != 0 if expected is None else not agrees(expected, found)):
                return f"{line}: $ {command}\nexpected: {'success' if expected is None else expected}\nfound ({status}): {found}"
    finally:
        shell.close()
    return None


def make_clone(folder, source, build):
    """A folder that looks like a clone that was built; what commands write there stays there."""
    shutil.copytree(source, folder, ignore=shutil.ignore_patterns("build", ".git", "results"), dirs_exist_ok=True)
    if build is None:
        return
    bin_folder = folder / "build/release/bin"
    bin_folder.mkdir(parents=True)
    for path in build.iterdir():
        if path.name != "bin":
            (folder / "build/release" / path.name).symlink_to(path)
    for path in (build / "bin").iterdir():
        if path.is_file() and os.access(path, os.X_OK):
            (bin_folder / path.name).symlink_to(path)


def run_page(options):
    page = options.page.read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory(prefix="holdfast-console-") as name:
        folder = pathlib.Path(name)
        make_clone(folder, options.source.resolve(), options.build and options.build.resolve())
        before = str(options.python.resolve() if options.python else folder / "build/release/bin")
        kept = {key: value for key, value in os.environ.items() if not key.startswith(("HOLDFAST_", "PYTHON"))}
        environment = {**kept, "HOME": name, "PATH": before + os.pathsep + os.environ["PATH"]}
        fault = first_fault(page, folder, environment, bool(options.python))
    count = len(list(steps(page, bool(options.python))))
    print(f"{options.page}:{fault}" if fault else f"console: {count} commands print what the page shows")
    for line, _, _, why in blocks(page):
        if why:
            print(f"{options.page}:{line}: not run: {why}")
    return 1 if fault else 0


def look_at_marks(root):
    wrong, targets = [], set(re.findall(r"^([a-z][a-z0-9-]*):", (root / "Makefile").read_text(encoding="utf-8"), re.M))
    for path in sorted(root.rglob("*.md")):
        if path.relative_to(root).parts[0] not in ("build", "results", ".git"):
            wrong += [f"{path.relative_to(root)}:{each}" for each in unmarked(path.read_text(encoding="utf-8"), targets)]
    print("\n".join(wrong) or "console: every command is in a block that is run, or that says why not")
    return 1 if wrong else 0


def self_test():
    def fault(page, python=False):
        with tempfile.TemporaryDirectory(prefix="holdfast-console-") as folder:
            return first_fault(page, folder, {**os.environ, "LC_ALL": "C"}, python)

    good = ("```console\n$ echo a b\na …\n$ false\n$ echo $?\n1\n$ cd /; x=5\n```\n```sh\ntest $PWD = / && test $x = 5\n```\n"
            "```console\n$ echo c; sh -c 'kill -9 $$'; echo d\nc\nKilled\nd\n$ sh -c 'echo e >&2; kill -9 $$'\ne\nKilled\n```\n")
    assert fault(good) is None, fault(good)
    for old, new in (("a …", "b …"), ("\n1\n", "\n0\n"), ("a …\n", ""), ("Killed", "killed"), ("\ne\n", "\n"), ("x = 5", "x = 6"),
                     ("cd /;", ""), ("false", "exit")):
        assert fault(good.replace(old, new)) is not None, new
    assert len(list(steps(good))) == 7
    assert fault("<!-- not run: it fails -->\n```sh\nfalse\n```\n") is None and fault("```sh\nfalse\n```\n") is not None
    program = "```python\nclass A:\n    x = 1\nassert A.x == 1\n```\n```python\nassert A().x == 1\n```\n"
    assert len(list(steps(program))) == 0 and [c.count("class A") for _, c, _ in steps(program, True)] == [1, 1]
    for bad in ("```\nmake slpmt   # keys\n```\n", "```bash\nls\n```\n", "```sh\n$ ls\n```\n", "```console\nls\n```\n", "```\n$ ls\n```\n",
                "Run `make nothing`.\n"):
        assert list(unmarked(bad)), bad
    for fine in ("```\nfree ──reserve──▶\n```\n", "<!-- not run: no root -->\n```\nmake it so\n```\n", good):
        assert not list(unmarked(fine)), fine
    print("console: self-test found all planted faults")
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--source", type=pathlib.Path)
    parser.add_argument("--build", type=pathlib.Path)
    parser.add_argument("--python", type=pathlib.Path)
    parser.add_argument("--marked", type=pathlib.Path)
    parser.add_argument("--self-test", action="store_true")
    parser.add_argument("page", type=pathlib.Path, nargs="?")
    options = parser.parse_args()
    if options.self_test:
        return self_test()
    return look_at_marks(options.marked.resolve()) if options.marked else run_page(options)


if __name__ == "__main__":
    sys.exit(main())
