# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What `holdfast print` has gdb do (tools/print_command.cpp). HOLDFAST_PRINT, a JSON object, says it:

core, program      files: a core file that maps the pool, and what has the types
base, root, bytes  where the pool and its root object are, and the object's size
type               of the root; empty: the one that the program asks pools for
expression         to print; $root is a pointer to the root object

Exit status: 0, or 2 with a sentence. The pool's bytes may be anything: gdb reads nothing outside of the file, and a walk
along nodes that lead to each other is ended.
"""
import json
import os
import re
import sys
import threading

import gdb

SECONDS_MAX = 10
# hf::root keeps a T and a word in one of these (holdfast/root.hpp).
CONSTRUCTED = "hf::detail::constructed<"
# Each call of pool::root or hf::root leaves the name of its type in one of these.
ROOT_OF = "hf::detail::root_of<"


class Refused(Exception):
    """A sentence for the user."""


def quietly(command):
    return gdb.execute(command, to_string=True)


def quoted(path):
    return '"%s"' % path.replace("\\", "\\\\").replace('"', '\\"')


def register_printers():
    """Those of libstdc++ for containers; without them gdb shows the members."""
    for folder in ("/usr/share/gcc/python", *("/usr/share/gcc-%d/python" % n for n in range(30, 8, -1))):
        if os.path.isdir(os.path.join(folder, "libstdcxx")):
            sys.path.insert(0, folder)
            break
    try:
        from libstdcxx.v6 import register_libstdcxx_printers
        register_libstdcxx_printers(None)
    except Exception:  # of any version, or none
        pass


def load(request):
    try:
        quietly("file " + quoted(request["program"]))
    except gdb.error as error:
        raise Refused("expected a program, found %s: %s" % (request["program"], error)) from None
    quietly("core-file " + request["core"])
    try:
        gdb.selected_inferior().read_memory(request["base"], 8)
    except gdb.MemoryError:
        raise Refused("expected a gdb that reads files which a core file names, found %s" % gdb.VERSION) from None


def shown(kind):
    """The type that its program speaks of."""
    kind = kind.strip_typedefs()
    return kind.template_argument(0) if str(kind).startswith(CONSTRUCTED) else kind


def size_fits(kind, bytes_wanted):
    """Whether a root of so many bytes is one, or has one and the word of hf::root."""
    return bytes_wanted == kind.sizeof or bytes_wanted == kind.sizeof + max(8, getattr(kind, "alignof", 8))


def asked_for(program):
    """All types that the program asks pools for."""
    names = re.findall(r"^(?:\d+:)?\s+(%s.*>);$" % re.escape(ROOT_OF), quietly("info types -q ^" + ROOT_OF), re.M)
    found = {}
    for name in names:
        kind = gdb.lookup_type(name).template_argument(0)
        found[str(shown(kind))] = kind
    if not found:
        raise Refused("expected --type TYPE, or debug information (-g) of a call of pool.root or hf::root in %s; found neither"
                      % program)
    return found


def root_type(request):
    wanted = request["bytes"]
    if request["type"]:
        try:
            kind = gdb.parse_and_eval("(%s*)0" % request["type"]).type.target()
            kind.fields() if kind.strip_typedefs().code == gdb.TYPE_CODE_STRUCT else None
        except gdb.error as error:
            raise Refused("--type: expected a type of %s, found '%s': %s" %
                          (request["program"], request["type"], error)) from None
        if not size_fits(kind, wanted):
            raise Refused("--type: expected a type of %d bytes, as the pool's root has, found %s, which has %d" %
                          (wanted, kind, kind.sizeof))
        return kind
    all_types = asked_for(request["program"])
    fitting = [shown(kind) for kind in all_types.values() if kind.sizeof == wanted]
    if len(fitting) != 1:
        raise Refused("expected one type of %d bytes, as the pool's root has, among those of roots in %s, found %s%s" %
                      (wanted, request["program"],
                       ", ".join("%s of %d bytes" % (name, kind.sizeof) for name, kind in sorted(all_types.items())),
                       ": choose with --type" if fitting else ""))
    return fitting[0]


def end_walks():
    message = "holdfast print: no end after %d s: nodes of a damaged pool may lead to each other\n" % SECONDS_MAX

    def end():
        os.write(2, message.encode())
        os._exit(2)

    timer = threading.Timer(SECONDS_MAX, end)
    timer.daemon = True
    timer.start()


def main():
    request = json.loads(os.environ["HOLDFAST_PRINT"])
    for setting in ("debuginfod enabled off", "width 0", "height 0", "print pretty on"):
        try:
            quietly("set " + setting)
        except gdb.error:  # an older gdb has fewer
            pass
    load(request)
    register_printers()
    kind = root_type(request)
    gdb.set_convenience_variable("root", gdb.Value(request["root"]).cast(kind.pointer()))
    end_walks()
    try:
        gdb.write(quietly("output " + request["expression"]) + "\n")
    except gdb.error as error:
        raise Refused("'%s': %s" % (request["expression"], error)) from None


try:
    main()
    STATUS = 0
except (Refused, gdb.error) as refused:
    gdb.write("holdfast print: %s\n" % refused, gdb.STDERR)
    STATUS = 2
gdb.flush()
gdb.execute("quit %d" % STATUS)
