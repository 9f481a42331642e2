#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`holdfast print` shows a root object in its program's types, changes nothing, and says what it expected where it
cannot.

usage: print_command_test.py HOLDFAST PROGRAM (tools/gdb/test/printed.cpp)
"""
import os
import pathlib
import struct
import subprocess
import sys
import tempfile

HOLDFAST, PROGRAM = sys.argv[1:3]
ROOT_WORDS = 8192
WHOLE = """{
  newest = 0x…,
  name = "a name that is too long for the object itself",
  amounts = std::map with 3 elements = {
    [1] = 1,
    [2] = 4,
    [3] = 9
  }
}
"""


def shown(*arguments, **environment):
    return subprocess.run([HOLDFAST, "print", *map(str, arguments)], capture_output=True, text=True, timeout=120,
                          env={**os.environ, **environment})


def expect(ran, text, *errors):
    """What is printed; or nothing, and a status of 2, where an error is expected."""
    assert (ran.stdout, ran.returncode) == (text, 0 if text else 2), ran
    for error in errors:
        assert error in ran.stderr, (error, ran)


def make(pool):
    subprocess.run([PROGRAM, pool], check=True, stdout=subprocess.DEVNULL, timeout=60)


def check_shown(folder):
    pool = folder / "a pool.hf"
    make(pool)
    before = pool.read_bytes()

    def ask(*arguments):
        return shown(pool, *arguments, "--program", PROGRAM)

    whole = ask()
    newest = whole.stdout.partition("newest = 0x")[2].partition(",")[0]
    has_printers = "std::map with" in whole.stdout
    if has_printers:
        expect(whole, WHOLE.replace("…", newest))
        assert whole.stderr == "", whole
    expect(ask("$root->newest->next->value"), "22\n")
    expect(ask("/x $root->newest->value"), "0x21\n")
    expect(ask("$root->newest->value", "--type", "shop"), "33\n")
    expect(ask("$root->none"), "", "'$root->none': There is no member")
    expect(ask("$root->+"), "", "A syntax error in expression")
    expect(ask("$root->newest->value = 4"), "", "Cannot access memory")
    expect(ask("fill($root)"), "", "without a process")
    expect(ask("*(long*)16"), "", "Cannot access memory at address 0x10")
    expect(ask("--type", "node"), "", "expected a type of", "as the pool's root has, found", "which has 16")
    expect(ask("--type", "missing"), "", "expected a type of " + PROGRAM + ", found 'missing'")
    assert pool.read_bytes() == before


def check_refused(folder):
    pool, other, text = folder / "pool.hf", folder / "other.hf", folder / "text"
    make(pool)
    text.write_text("neither a pool nor a program\n" * 1000)
    expect(shown(pool), "", "expected --program PROGRAM", "or a process that has", "found neither")
    expect(shown(pool, "--program", folder / "none"), "", "--program: '", "No such file")
    expect(shown(pool, "--program", text), "", "expected a program, found", "not in executable format")
    expect(shown(pool, "--program", "/bin/ls"), "", "expected --type TYPE, or debug information (-g)", "found neither")
    expect(shown(text, "--program", PROGRAM), "", "not_a_pool")
    expect(shown(folder / "none.hf", "--program", PROGRAM), "", "not_found")
    expect(shown(pool, "--program", PROGRAM, PATH="/none"), "", "expected the program gdb in PATH, found none")
    subprocess.run([PROGRAM, other, "other"], check=True, timeout=60)  # the type is known by its size
    expect(shown(other, "$root->numbers", "--program", PROGRAM), "{0, 0, 0}\n")


def check_in_use(folder):
    pool = folder / "pool.hf"
    with subprocess.Popen([PROGRAM, pool, "wait"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as user:
        assert user.stdout.readline() == "ready\n"
        expect(shown(pool, "$root->newest->value"), "33\n", "a process has the pool open")  # and its program is that one
        user.stdin.close()
        assert user.wait(timeout=60) == 0
    with subprocess.Popen([PROGRAM, pool, "wait"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as user:
        assert user.stdout.readline() == "ready\n"
        user.kill()
    expect(shown(pool, "$root->newest->value", "--program", PROGRAM), "33\n", "was not closed cleanly")


def check_damaged(folder):
    """Bytes of the pool lead nowhere: to an error, or to an end."""
    pool = folder / "pool.hf"
    make(pool)
    good = pool.read_bytes()
    base, = struct.unpack_from("<Q", good, 64)
    root, root_bytes = struct.unpack_from("<QQ", good, ROOT_WORDS)

    def damaged(at, *words):
        changed = bytearray(good)
        struct.pack_into("<%dQ" % len(words), changed, at, *words)
        pool.write_bytes(changed)

    def ask(*arguments):
        return shown(pool, *arguments, "--program", PROGRAM)

    damaged(ROOT_WORDS, 0)
    expect(ask(), "", "expected a root object, found none")
    for words in (len(good) - 8, root_bytes), (root, 2 ** 64 - 1), (2 ** 64 - 8, 16):
        damaged(ROOT_WORDS, *words)
        expect(ask(), "", "corrupt: root words: expected a place in the file")
    damaged(root, 0x10)
    expect(ask("$root->newest->value"), "", "Cannot access memory")
    damaged(root + 8, base + root, 2 ** 62)  # a text of that length
    assert ask("$root->name").returncode in (0, 2)
    pool.write_bytes(good)
    if "std::map with" not in ask("$root->amounts").stdout:
        return  # gdb without libstdc++'s printers walks nowhere
    parent, = struct.unpack_from("<Q", good, root + 56)
    damaged(parent - base + 16, parent, parent)  # the map's top node is below itself
    assert ask("$root->amounts").returncode == 2
    pool.write_bytes(good[:4096])
    expect(ask(), "", "truncated")


def main():
    with tempfile.TemporaryDirectory() as where:
        for check in (check_shown, check_refused, check_in_use, check_damaged):
            folder = pathlib.Path(where) / check.__name__
            folder.mkdir()
            check(folder)
    print("print: passed")


if __name__ == "__main__":
    main()
