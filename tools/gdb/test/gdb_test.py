# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What gdb shows of containers in a pool (tools/gdb/holdfast.py): gdb_test.py GDB SCRIPT PROGRAM SECTIONS."""
import re
import subprocess
import sys
import tempfile
import unittest

GDB, SCRIPT, PROGRAM, SECTIONS = sys.argv[1:5]
# Commands to type, and their output (a pattern).
SHOWN = [
    ("print ages", r'hf::mod::map of 2 elements = \{\["(Ada"\] = 36, \["Bob"\] = 41|Bob"\] = 41, \["Ada"\] = 36)\}'),
    ("print names", r'hf::mod::map of 1 element = \{\["de"\] = "Deutsch"\}'),
    ("print left", r"hf::mod::map of 1 element = \{\[7\] = 49\}"),
    ("print empty", r"hf::mod::vector of 0 elements"),
    ("print order", r"hf::mod::ordered_map of 3000 elements = \{\[0\] = \{x = 0, y = -1\}, "),
    ("print row", r"hf::mod::vector of 2999 elements = \{0, 1, 2, 3, 4, 6, 7, 8"),
    ("print joined", r'hf::mod::vector of 41 elements = \{"0", .*"6", "between", "7", .*"39"\}'),
    ("print pile", r"hf::mod::stack of 3000 elements = \{2999, 2998, 2997, "),
    ("print line", r"hf::mod::queue of 1766 elements = \{1234, 1235, 1236, "),
    ("print good", r"hf::result 3$"),
    ("print bad", r"hf::result hf::status pool_full: \"no room\""),
    ("print pages", r"= hf::result( \{|, but its class is not in the debug information: compile with -fstandalone-debug$)"),
    ("print $hf_offset(element) == (char*)element - $base", r"= (1|true)"),
    ("print $hf_offset(&pool)", r"= -1"),
    ("holdfast where element", r"bytes into \S+/looked\.hf \(layout looked/1\): heap, extent 0"),
    ("holdfast where $base + 5000", r"\(layout looked/1\): header"),
    ("holdfast where $base + 12288", r"\(layout looked/1\): log lane 0"),
    ("holdfast where &pool", r"is in no pool"),
]
# All elements of the large ones: an expression, and what Python makes of them.
WHOLE = [
    ("squares", "sorted(zip(map(int, e[::2]), map(int, e[1::2]))) == [(i, i * i) for i in range(3000)]"),
    ("seen", "sorted(map(int, e)) == list(range(3000))"),
    ("order", "list(map(int, e[::2])) == list(range(3000))"),
    ("row", "list(map(int, e)) == [i for i in range(3000) if i != 5]"),
    ("pile", "list(map(int, e)) == list(range(2999, -1, -1))"),
    ("line", "list(map(int, e)) == list(range(1234, 3000))"),
]


def gdb(*commands):
    line = [GDB, "-nx", "-batch", "-ex", "set debuginfod enabled off", "-ex", "set print elements 60",
            "-ex", "set width 0", "-ex", "source " + SCRIPT]
    for command in commands:
        line += ["-ex", command]
    run = subprocess.run(line, capture_output=True, text=True, timeout=120)
    return run.stdout + run.stderr


class Gdb(unittest.TestCase):
    def test_shows_what_is_in_a_pool(self):
        with tempfile.TemporaryDirectory() as folder:
            commands = ["file " + PROGRAM, "break stop_here", "run %s/looked.hf" % folder, "up",
                        "set $base = (char*)element - $hf_offset(element)"]
            for i, (command, _) in enumerate(SHOWN):
                commands += ["echo \\n@%d\\n" % i, command]
            for i, (name, right) in enumerate(WHOLE):
                commands += ["echo \\n@%d\\n" % (len(SHOWN) + i),
                             "python e = [v for _, v in gdb.default_visualizer(gdb.parse_and_eval('%s')).children()]" % name,
                             "python print('all right' if %s else 'wrong')" % right]
            shown = gdb(*commands)
        parts = dict(re.findall(r"\n@(\d+)\n(.*?)(?=\n@\d+\n|\Z)", shown, re.S))
        for i, (command, expected) in enumerate(SHOWN + [(name, "^all right$") for name, _ in WHOLE]):
            with self.subTest(command):
                self.assertRegex(parts.get(str(i), shown), re.compile(expected, re.M))

    def inside_a_section(self, mode):
        """What gdb prints inside the second section: of the object, and as the section sees it."""
        with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
            shown = gdb("file " + SECTIONS, "break hf_crash_point", "run %s/looked.hf %s" % (folder, mode), "continue", "up 2",
                        "print a->balance", "print $hf_seen(a->balance)", "print $hf_seen(*a)", "print $hf_seen(local)",
                        "print $hf_seen(3)", "delete", "continue", "print 1 + 1")
        return shown

    def test_shows_what_a_section_sees(self):
        for mode, in_place in (("pmem", "100"), ("process", "70")):
            with self.subTest(mode):
                shown = self.inside_a_section(mode)
                self.assertRegex(shown, r"\$1 = %s\n\$2 = 70\n\$3 = \{owner = 7, balance = 70, name = "
                                 r'"Ada", .*, wide = -5\}\n\$4 = 30\n' % in_place)
                self.assertIn("this value is not in memory", shown)
                self.assertIn("balance 70\n", shown)  # looking has changed nothing

    def test_says_what_is_damaged(self):
        with tempfile.TemporaryDirectory() as folder:
            shown = gdb("file " + PROGRAM, "break stop_here", "run %s/looked.hf" % folder, "up",
                        # the top node of the trie becomes its own child
                        "python cell = gdb.default_visualizer(gdb.parse_and_eval('squares')).cell",
                        "python gdb.execute('set *(unsigned*)%d = %d' % (cell.base + 16 * cell.top, cell.top))",
                        "print squares")
        self.assertRegex(shown, r"hf::mod::map of 3000 elements = \{.*more than 16 levels")

    def test_ends_where_nodes_lead_to_each_other(self):
        with tempfile.TemporaryDirectory() as folder:
            shown = gdb("file " + PROGRAM, "break stop_here", "run %s/looked.hf" % folder, "up",
                        # the newest level becomes the next deeper one, and all that is in it
                        "python cell = gdb.default_visualizer(gdb.parse_and_eval('line')).cell",
                        "python level = read(node(cell.base, cell.top), '<I')[0]",
                        "python gdb.selected_inferior().write_memory(node(cell.base, level),"
                        " struct.pack('<16I', level, 14, *[level] * 14))",
                        "print line")
        self.assertRegex(shown, r"hf::mod::queue of 1766 elements = \{.*and no element")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
