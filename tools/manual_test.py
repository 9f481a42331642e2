#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Man pages and completion as the build made them: manual_test.py FOLDER BIN.

Every option that --help has is in the page, which groff finds nothing to say about; bash completes subcommands,
options and their values; a command without help is refused.
"""
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

FOLDER, BIN = (pathlib.Path(path).resolve() for path in sys.argv[1:3])
MANUAL = pathlib.Path(__file__).with_name("manual.py")
NAMES = sorted(page.stem for page in (FOLDER / "man").glob("*.1"))


def completed(line):
    """The words that bash offers behind a line that ends in the word to complete."""
    words = line.split(" ")
    script = f"""source '{FOLDER}/completions/{words[0]}'
        COMP_WORDS=({' '.join(repr(word) for word in words)}) COMP_CWORD={len(words) - 1}
        $(complete -p {words[0]} | sed 's/.*-F \\([^ ]*\\).*/\\1/')
        printf '%s\\n' "${{COMPREPLY[@]}}" """
    done = subprocess.run(["bash", "-u", "-c", script], capture_output=True, text=True, check=True, cwd=FOLDER)
    if done.stderr:
        raise AssertionError(done.stderr)
    return done.stdout.split()


class Pages(unittest.TestCase):
    def test_each_has_every_option_of_its_help(self):
        self.assertIn("holdfast", NAMES)
        for name in NAMES:
            page = (FOLDER / "man" / f"{name}.1").read_text().replace("\\-", "-")
            said = subprocess.run([BIN / name, "--help"], capture_output=True, text=True, check=True).stdout
            options = set(re.findall(r"^ +(--?[\w-]+)", said, re.M))
            self.assertGreater(len(options), 0, name)
            for option in options:
                self.assertRegex(page, rf"\\fB{option}\\fR", f"{name}: {option}")

    def test_subcommands_are_in_the_page(self):
        page = (FOLDER / "man" / "holdfast.1").read_text()
        for command in ("info", "verify", "copy", "print", "top"):
            self.assertIn(f'.SS "holdfast {command}"', page)

    @unittest.skipUnless(shutil.which("groff"), "no groff")
    def test_groff_has_nothing_to_say(self):
        for name in NAMES:
            done = subprocess.run(["groff", "-k", "-man", "-Tutf8", "-ww", "-z", FOLDER / "man" / f"{name}.1"],
                                  capture_output=True, text=True, check=False)
            self.assertEqual((done.returncode, done.stderr), (0, ""), name)

    def test_absent_subcommands_are_named_alone(self):
        with tempfile.TemporaryDirectory() as out:
            out = pathlib.Path(out)
            subprocess.run([sys.executable, MANUAL, "--bin", BIN, "--out", out, "--version", "0",
                            "--absent", "holdfast classify", "holdfast"], check=True, timeout=60)
            page = (out / "man" / "holdfast.1").read_text()
            self.assertNotIn('.SS "holdfast classify"', page)
            self.assertIn('.SS "holdfast info"', page)
            self.assertIn("classify", (out / "completions" / "holdfast").read_text())

    def test_no_help_is_refused(self):
        with tempfile.TemporaryDirectory() as out:
            done = subprocess.run([sys.executable, MANUAL, "--bin", "/bin", "--out", out, "--version", "0", "false"],
                                  capture_output=True, text=True, check=False)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn("no help", done.stderr)
            self.assertEqual([p for p in pathlib.Path(out).rglob("*") if p.is_file()], [])


class Completion(unittest.TestCase):
    def test_subcommands(self):
        self.assertEqual(completed("holdfast ver"), ["verify"])
        if completed("holdfast ben"): # a build with benchmarks
            self.assertEqual(completed("holdfast bench vecs"), ["vecswap"])

    def test_options(self):
        self.assertEqual(completed("holdfast info --js"), ["--json"])
        self.assertIn("--pool", completed("holdfast-kv -"))

    def test_values(self):
        self.assertEqual(completed("holdfast-kv --mode p"), ["process", "pmem", "power"])
        self.assertEqual(completed("holdfast-kv -p 1"), [])

    def test_files(self):
        self.assertEqual(completed("holdfast info ma"), ["man"])
        self.assertEqual(completed("holdfast-kv --pool comp"), ["completions"])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
