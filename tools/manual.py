#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Man pages and bash completion, from what the commands say of themselves.

Asks each command, and each of its subcommands, for --help, and writes OUT/man/NAME.1 and
OUT/completions/NAME. Lines other than options, arguments or subcommands are kept as text, so
nothing of --help is lost.
"""
import argparse
import dataclasses
import pathlib
import re
import subprocess
import sys

# Title of a part of --help -> what its lines are.
ARGUMENTS, SUBCOMMANDS = "Positionals", "Subcommands"
# Words that an option takes before its value's name: '--mode TEXT:{process,pmem}=pmem'.
# '{false}' behind a name: a flag that turns something off.
OPTION = re.compile(r"^(?P<names>-{1,2}[\w-]+(\{false\})?(,-{1,2}[\w-]+)*)(?P<value> .*)?$")
CHOICES = re.compile(r"\{([^}]*)\}")
# CLI11 starts what it says of an option in this column, or on a line of its own.
INDENT = "  "


@dataclasses.dataclass
class Entry:
    """An option, an argument or a subcommand."""
    what: str        # as --help has it: '-p,--port INT=11211'
    text: str

    @property
    def names(self):
        found = OPTION.match(self.what)
        return found["names"].replace("{false}", "").split(",") if found else [self.what.split()[0]]

    @property
    def value(self):
        """The part behind the names; empty: nothing."""
        found = OPTION.match(self.what)
        return ((found["value"] or "") if found else self.what.partition(" ")[2]).strip()

    @property
    def choices(self):
        found = CHOICES.search(self.value)
        return found[1].split(",") if found else []


@dataclasses.dataclass
class Page:
    words: list      # the command as it is typed: ['holdfast', 'info']
    summary: str
    usage: str
    parts: list      # (title, [Entry or str])
    below: list      # pages of the subcommands

    def entries(self, of_options):
        return [entry for title, lines in self.parts for entry in lines
                if isinstance(entry, Entry) and title not in (ARGUMENTS, SUBCOMMANDS) and of_options
                or isinstance(entry, Entry) and title == SUBCOMMANDS and not of_options]


def help_of(command):
    done = subprocess.run([*command, "--help"], capture_output=True, text=True, check=False, timeout=60)
    if done.returncode != 0 or not done.stdout.strip():
        sys.exit(f"{' '.join(map(str, command))} --help: status {done.returncode}, no help: {done.stderr[:300]}")
    return done.stdout


def entry_of(line):
    """The beginning of a line of a part, with its text when it is on the same line; None: the line
    continues."""
    if not line.startswith(INDENT) or line[len(INDENT):len(INDENT) + 1] in ("", " "):
        return None
    what, _, text = line.strip().partition("  ")
    return Entry(what, text.strip())


def read_page(words, text):
    summary, _, rest = text.strip("\n").partition("\n")
    page, lines = Page(words, summary.strip().rstrip("."), "", [], []), None
    for line in rest.splitlines():
        if line.startswith("Usage:"):
            page.usage = line.removeprefix("Usage:").strip()
        elif line.endswith(":") and not line.startswith(" "):
            lines = []
            page.parts.append((line.removesuffix(":"), lines))
        elif not line.strip():
            continue
        elif lines is None and not line.startswith(" "):
            lines = []
            page.parts.append(("Description", lines))
            lines.append(line.strip())
        elif lines is None:  # options that stand behind the usage, without a title
            lines = []
            page.parts.append(("Options", lines))
            lines.append(entry_of(line))
        elif entry := entry_of(line):
            lines.append(entry)
        elif line.startswith(INDENT) and lines and isinstance(lines[-1], Entry):
            lines[-1].text = f"{lines[-1].text} {line.strip()}".strip()
        elif page.parts[-1][0] != "Description":  # what a command says at the end
            lines = [line.strip()]
            page.parts.append(("Description", lines))
        else:
            lines.append(line.strip())
    if not page.usage:
        sys.exit(f"{' '.join(words)} --help says no usage")
    return page


def read_pages(binary, words, absent, depth=0):
    """The command's page, with those of its subcommands below it; absent ones have no page to read."""
    page = read_page(words, help_of([binary, *words[1:]]))
    if depth < 2:
        for entry in page.entries(of_options=False):
            below = [*words, entry.what.split()[0]]
            if " ".join(below) not in absent:
                page.below.append(read_pages(binary, below, absent, depth + 1))
    return page


def escaped(text):
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return f"\\&{text}" if text.startswith((".", "'")) else text


def roff_of_entry(entry):
    names = ", ".join(f"\\fB{escaped(name)}\\fR" for name in entry.names)
    # A list of words may be broken behind each.
    value = " \\fI" + escaped(entry.value).replace(",", ",\\:") + "\\fR" if entry.value else ""
    return [".TP", names + value, escaped(entry.text) or "\\&"]


def roff_of_parts(page, heading):
    lines = []
    for title, entries in page.parts:
        if title == SUBCOMMANDS and page.below:
            continue  # each has a part of its own
        lines += [f"{heading} {escaped(title.upper() if heading == '.SH' else title)}"]
        for entry in entries:
            lines += roff_of_entry(entry) if isinstance(entry, Entry) else [escaped(entry)]
    return lines


def roff_of_command(page):
    lines = [f'.SS "{escaped(" ".join(page.words))}"', escaped(page.summary), ".PP", f"\\fB{escaped(page.usage)}\\fR"]
    for title, entries in page.parts:
        if title == SUBCOMMANDS and page.below:
            continue
        lines += [".PP", escaped(f"{title}:")] if title not in ("Options", "Description") else [".PP"]
        for entry in entries:
            lines += roff_of_entry(entry) if isinstance(entry, Entry) else [escaped(entry)]
    return lines + [line for below in page.below for line in roff_of_command(below)]


def roff(page, version):
    name = page.words[0]
    lines = [f'.TH "{name.upper()}" 1 "" "Holdfast {version}" "User Commands"',
             ".SH NAME", f"{escaped(name)} \\- {escaped(page.summary)}",
             ".SH SYNOPSIS", f"\\fB{escaped(page.usage)}\\fR", *roff_of_parts(page, ".SH")]
    if page.below:
        lines.append(".SH SUBCOMMANDS")
        lines += [line for below in page.below for line in roff_of_command(below)]
    return "\n".join(lines) + "\n"


def all_pages(page):
    yield page
    for below in page.below:
        yield from all_pages(below)


def shell_word(text):
    if not re.fullmatch(r"[\w@%+=:,./?-]+", text):
        sys.exit(f"no word for a shell: {text!r}")
    return text


def completion(page):
    """For a command: what may follow the words so far: subcommands, options, an option's choices,
    else files."""
    name = page.words[0]
    function = "_" + re.sub(r"\W", "_", name)
    cases, values = [], []
    for each in all_pages(page):
        path = "/".join(each.words)
        options = [o for entry in each.entries(of_options=True) for o in entry.names if o.startswith("-")]
        commands = [entry.names[0] for entry in each.entries(of_options=False)]
        cases.append(f"        {path}) commands='{' '.join(map(shell_word, commands))}'; "
                     f"options='{' '.join(map(shell_word, options))}' ;;")
        for entry in each.entries(of_options=True):
            if entry.value and entry.names[0].startswith("-"):
                keys = "|".join(f"{path}:{option}" for option in entry.names)
                values.append(f"        {keys}) takes=1; choices='{' '.join(map(shell_word, entry.choices))}' ;;")
    return f"""# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# bash completion of {name}, made from its --help.
{function}_of() {{ # path of subcommands
    commands='' options=''
    case $1 in
{chr(10).join(cases)}
    esac
}}
{function}_value() {{ # path:option
    takes='' choices=''
    case $1 in
{chr(10).join(values)}
    esac
}}
{function}() {{
    local current=${{COMP_WORDS[COMP_CWORD]}} path={name} word previous='' commands options takes choices i
    for ((i = 1; i < COMP_CWORD; ++i)); do
        word=${{COMP_WORDS[i]}}
        {function}_of "$path"
        [[ " $commands " == *" $word "* ]] && path=$path/$word
        previous=$word
    done
    {function}_of "$path"
    {function}_value "$path:$previous"
    COMPREPLY=()
    if [[ $takes ]]; then
        if [[ $choices ]]; then COMPREPLY=($(compgen -W "$choices" -- "$current"))
        else COMPREPLY=($(compgen -f -- "$current")); fi
    elif [[ $current == -* ]]; then
        COMPREPLY=($(compgen -W "$options" -- "$current"))
    elif [[ $commands ]]; then
        COMPREPLY=($(compgen -W "$commands" -- "$current"))
    else
        COMPREPLY=($(compgen -f -- "$current"))
    fi
}}
complete -o filenames -F {function} {name}
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bin", type=pathlib.Path, required=True, help="where the commands are")
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--version", required=True)
    parser.add_argument("--absent", action="append", default=[], metavar="COMMAND",
                        help="a subcommand ('holdfast classify') whose program this build leaves out")
    parser.add_argument("names", nargs="+", help="of the commands")
    options = parser.parse_args()
    for folder in ("man", "completions"):
        (options.out / folder).mkdir(parents=True, exist_ok=True)
    for name in options.names:
        page = read_pages(options.bin / name, [name], options.absent)
        (options.out / "man" / f"{name}.1").write_text(roff(page, options.version))
        (options.out / "completions" / name).write_text(completion(page))


if __name__ == "__main__":
    main()
