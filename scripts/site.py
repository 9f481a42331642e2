#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The documentation as pages for a browser, from the Markdown in the tree: build/site.

usage: site.py [--out FOLDER]
       site.py --check FOLDER       only look through what is there, Markdown included
       site.py --self-test

Pages keep their places, so that links between them hold. A source that a page links to becomes a page, too. The site
needs no network and no server: style, search and its index lie beside the pages. The guide's menu has the order in which
docs/guide/README.md names its pages. Then everything that the site refers to is looked for: a link, an image, a style or
a script that leads to no file, or to no heading, and whatever a browser would fetch from elsewhere, is an error.
Needs python3-markdown and python3-pygments; exits with 77 where they are not there.
"""
import argparse
import html
import html.parser
import json
import os
import pathlib
import re
import shutil
import sys
import tempfile
import urllib.parse

try:
    import markdown
    import pygments
    from pygments.formatters import HtmlFormatter
    from pygments.lexers import TextLexer, get_lexer_for_filename
    from pygments.util import ClassNotFound
except ImportError:
    print("the site needs what is not there: apt-get install python3-markdown python3-pygments", file=sys.stderr)
    sys.exit(77)

ROOT = pathlib.Path(__file__).resolve().parents[1]
PARTS = pathlib.Path(__file__).resolve().with_suffix("")    # page.html, style.css, search.js
LEFT_OUT = {"build", "results", ".git", ".venv"}
# In the order of the menu; a folder: its pages. Other pages are modules' READMEs.
MENU = [("Home", "README.md"), ("Guide", "docs/guide"), ("Architecture", "ARCHITECTURE.md"), ("Internals", "docs/internals"),
        ("Formats", "docs/format"), ("Numbers", "docs/numbers.md"), ("Papers", "docs/papers.md"),
        ("Contributing", "CONTRIBUTING.md"), ("Changes", "CHANGELOG.md")]
EXTENSIONS = ["tables", "fenced_code", "toc", "codehilite"]
CONTENTS = "README.md"      # a folder's page that names the others in their order


def pages_of(root):
    """path in the tree -> text"""
    found = []
    for folder, folders, names in os.walk(root):
        folders[:] = set(folders) - LEFT_OUT     # others may be at work there
        found += [pathlib.Path(folder, name).relative_to(root) for name in names if name.endswith(".md")]
    return {p: (root / p).read_text(encoding="utf-8") for p in sorted(found)}


def place_of(path):
    """The place of a page of the tree, or of a source, in the site."""
    if path.name == CONTENTS:
        return path.with_name("index.html")
    return path.with_suffix(".html") if path.suffix == ".md" else path.with_name(path.name + ".html")


def title_of(path, text):
    found = re.search(r"^# +(.+)$", text, re.M)
    return re.sub(r"[`*]", "", found[1]) if found else str(path)


def in_order(folder, pages):
    """A folder's pages: the contents first, then as the contents name them, then by name."""
    inside = [p for p in pages if p.is_relative_to(folder)]
    contents = pathlib.Path(folder) / CONTENTS
    named = re.findall(r"\]\(([^)\s#/]+\.md)", pages.get(contents, ""))
    order = {contents: -1, **{contents.with_name(name): at for at, name in reversed(list(enumerate(named)))}}
    return sorted(inside, key=lambda p: (order.get(p, len(order)), p))


def menu_of(pages):
    """[(title, [(title of page, path), ...])]; a page by itself has no title of pages."""
    out, left = [], set(pages)
    for title, place in MENU:
        inside = in_order(place, pages)
        left -= set(inside)
        if place.endswith(".md"):
            out += [(title, [(None, p)]) for p in inside]
        elif inside:
            out.append((title, [(title_of(p, pages[p]), p) for p in inside]))
    if left:
        out.append(("Modules", [(title_of(p, pages[p]), p) for p in sorted(left)]))
    return out


def menu_html(menu, here, top):
    def link(title, path):
        current = ' aria-current="page"' if path == here else ""
        return f'<a href="{top}{place_of(path)}"{current}>{html.escape(title)}</a>'

    out = []
    for title, pages in menu:
        if pages[0][0] is None:
            out.append(f"<ul><li>{link(title, pages[0][1])}</li></ul>")
            continue
        opened = " open" if title == "Guide" or here in [p for _, p in pages] else ""
        items = "".join(f"<li>{link(name, p)}</li>" for name, p in pages)
        out.append(f"<details{opened}><summary>{html.escape(title)}</summary><ul>{items}</ul></details>")
    return "\n".join(out)


def around_html(menu, here, top):
    """Links to the page before and the page after in the menu."""
    order = [(name or title, p) for title, pages in menu for name, p in pages]
    at = [p for _, p in order].index(here)
    before, after = order[at - 1] if at else None, order[at + 1] if at + 1 < len(order) else None
    return "".join(f'<a href="{top}{place_of(p[1])}">{html.escape(text.format(p[0]))}</a>' if p else "<span></span>"
                   for p, text in ((before, "← {}"), (after, "{} →")))


def sections_of(path, title, text):
    """(place, title, words) of each section of a page, for the search."""
    place, heads = str(place_of(path)), [(0, "", title)]
    heads += [(m.start(), m[1], f"{title} › {html.unescape(re.sub('<[^>]+>', '', m[2]))}")
              for m in re.finditer(r'<h[23] id="([^"]+)">(.*?)</h', text, re.S)]
    for (start, name, head), end in zip(heads, [at for at, _, _ in heads[1:]] + [len(text)]):
        words = html.unescape(re.sub("<[^>]+>", "", text[start:end]))
        yield [place + (f"#{name}" if name else ""), head, " ".join(words.split())]


def rewritten(page, text, root, sources):
    """Links to pages lead to the site's pages, and links to sources to its copies of those, which
    are collected."""
    def link(match):
        to = urllib.parse.urlsplit(html.unescape(match[1]))
        if to.scheme or to.netloc or not to.path:
            return match[0]
        target = (root / page.parent / to.path).resolve()
        if target.is_dir():
            target /= CONTENTS
        if not target.is_file() or not target.is_relative_to(root):
            return match[0]     # it is reported as dead
        if target.suffix != ".md":
            sources.add(target.relative_to(root))
        name = place_of(pathlib.Path(to.path) / CONTENTS if target.name == CONTENTS and not to.path.endswith(CONTENTS)
                        else pathlib.Path(to.path))
        return f'href="{html.escape(str(name))}{"#" + to.fragment if to.fragment else ""}"'
    return re.sub(r'href="([^"]*)"', link, text)


def build(root, site):
    """Makes the site in an empty folder; returns the number of its pages."""
    pages, sources, index = pages_of(root), set(), []
    menu, frame = menu_of(pages), (PARTS / "page.html").read_text(encoding="utf-8")
    colours = HtmlFormatter(cssclass="codehilite")

    def write(path, title, text):
        top = "../" * (len(path.parts) - 1)
        around = around_html(menu, path, top) if path in pages else ""
        to = site / place_of(path)
        to.parent.mkdir(parents=True, exist_ok=True)
        to.write_text(frame.format(title=html.escape(title), top=top, menu=menu_html(menu, path, top), text=text,
                                   around=around), encoding="utf-8")

    for path, source in pages.items():
        text = markdown.markdown(source, extensions=EXTENSIONS,
                                 extension_configs={"codehilite": {"guess_lang": False}})
        text = rewritten(path, text, root, sources)
        write(path, title_of(path, source), text)
        index += sections_of(path, title_of(path, source), text)
    for path in sorted(sources):
        try:
            lexer = get_lexer_for_filename(path.name)
        except ClassNotFound:
            lexer = TextLexer()
        text = pygments.highlight((root / path).read_text(encoding="utf-8"), lexer, colours)
        write(path, str(path), f"<h1>{html.escape(str(path))}</h1>{text}")
    (site / "style.css").write_text((PARTS / "style.css").read_text(encoding="utf-8") +
                                    colours.get_style_defs(".codehilite") + "\n", encoding="utf-8")
    shutil.copyfile(PARTS / "search.js", site / "search.js")
    (site / "search_index.js").write_text("const SECTIONS = " + json.dumps(index, ensure_ascii=False) + ";\n", encoding="utf-8")
    return len(pages) + len(sources)


class References(html.parser.HTMLParser):
    """The references of a page: links, which a reader may follow, and what a browser loads by
    itself."""
    def __init__(self, text):
        super().__init__()
        self.links, self.loaded, self.ids, self.inside = [], [], set(), None
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        named = {key: value or "" for key, value in attributes}
        self.ids |= {named[key] for key in ("id", "name") if key in named}
        self.inside = tag
        for key, value in named.items():
            if key == "href" and tag in ("a", "area"):
                self.links.append(value)
            elif key in ("href", "src", "data", "poster", "action", "background", "xlink:href"):
                self.loaded.append(value)
            elif key == "srcset":
                self.loaded += [each.split()[0] for each in value.split(",") if each.strip()]
            elif key == "style":
                self.loaded += loaded_by_style(value)

    def handle_data(self, data):
        if self.inside == "style":
            self.loaded += loaded_by_style(data)
        elif self.inside == "script":
            self.loaded += loaded_by_script(data)

    def handle_endtag(self, tag):
        self.inside = None


def loaded_by_style(text):
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
    return [a or b for a, b in re.findall(r"""url\(\s*['"]?([^'")]+)|@import\s+['"]([^'"]+)""", text)]


def loaded_by_script(text):
    """Addresses in a script's strings; and calls that no browser answers for a page that was opened as a file."""
    return re.findall(r"""["'`]((?:\w+:)?//[^"'`\s]+)""", text) + re.findall(
        r"\b(fetch|XMLHttpRequest|importScripts|Worker)\b\s*\(|\b(?:import)\s*\(?\s*['\"]([^'\"]+)", text)


def faults(site):
    """(file, what it refers to, what is wrong with that) for a whole site."""
    pages = {p: References(p.read_text(encoding="utf-8")) for p in sorted(site.rglob("*.html"))}
    pages |= {p: References(markdown.markdown(p.read_text(encoding="utf-8"), extensions=EXTENSIONS))
              for p in sorted(site.rglob("*.md"))}

    def lost(file, target):
        to = urllib.parse.urlsplit(target)
        path = (file.parent / urllib.parse.unquote(to.path)).resolve() if to.path else file
        path = path / "index.html" if path.is_dir() else path
        heading = urllib.parse.unquote(to.fragment)
        if not path.is_file() or not path.is_relative_to(site):
            return "is not there"
        return "has no such heading" if heading and path in pages and heading not in pages[path].ids else None

    loaded = {p: refers.loaded for p, refers in pages.items()}
    loaded |= {p: loaded_by_style(p.read_text(encoding="utf-8")) for p in site.rglob("*.css")}
    loaded |= {p: loaded_by_script(re.sub(r"^const SECTIONS = .*", "", p.read_text(encoding="utf-8")))
               for p in site.rglob("*.js")}
    for file, targets in loaded.items():
        for target in targets:
            target = target if isinstance(target, str) else "".join(target)
            if re.match(r"(\w+:)?//|(fetch|XMLHttpRequest|importScripts|Worker)$", target):
                yield file.relative_to(site), target, "needs a network, or a server"
            elif not target.startswith("data:") and (wrong := lost(file, target)):
                yield file.relative_to(site), target, wrong
    for file, refers in pages.items():
        for target in refers.links:
            if not re.match(r"\w+:|//", target) and (wrong := lost(file, target)):
                yield file.relative_to(site), target, wrong


def self_test():
    """A small tree is made, and one fault of each kind planted in its site."""
    planted = {"index.html": ["<a href='nowhere.html'>", "<a href='docs/guide/b.html#nowhere'>", "<a href='../etc/passwd'>",
                              "<img src='https://example.invalid/x.png'>", "<img srcset='x.png 2x'>",
                              "<script src='theme_extra.js'></script>", "<link rel='stylesheet' href='//example.invalid/x.css'>",
                              "<div style='background: url(x.png)'>", "<style>@import 'x.css';</style>",
                              "<script>fetch('search_index.js')</script>"],
               "style.css": ["@font-face { src: url('https://example.invalid/x.woff2') }", "@import 'x.css';"],
               "search.js": ["load('https://example.invalid/jquery.js');", "new Worker('x.js');", "import 'https://example.invalid/x';"]}
    with tempfile.TemporaryDirectory(prefix="holdfast-site-") as folder:
        root, site = pathlib.Path(folder).resolve() / "tree", pathlib.Path(folder).resolve() / "site"
        (root / "docs/guide").mkdir(parents=True)
        (root / "x.cpp").write_text("int a;\n")
        (root / "README.md").write_text("# Home\n[b](docs/guide/b.md#part), [x](x.cpp), [guide](docs/guide)\n")
        (root / "docs/guide/README.md").write_text("# Guide\n[b](b.md), then [a](a.md)\n")
        (root / "docs/guide/a.md").write_text("# A page\n[home](../../README.md)\n")
        (root / "docs/guide/b.md").write_text("# B page\n## Part\n```cpp\nint b;\n```\n")
        assert build(root, site) == 5
        assert [str(p) for p in in_order("docs/guide", pages_of(root))] == [f"docs/guide/{n}.md" for n in ("README", "b", "a")]
        assert list(faults(site)) == [], list(faults(site))
        index = (site / "search_index.js").read_text()
        assert '"docs/guide/b.html#part", "B page › Part"' in index, index
        assert 'class="kt"' in (site / "docs/guide/b.html").read_text()     # coloured when it was made
        for name, lines in planted.items():
            whole = (site / name).read_text()
            for line in lines:
                (site / name).write_text(whole + line + "\n")
                assert list(faults(site)), f"not found: {line}"
            (site / name).write_text(whole)
    print("site: self-test found all planted faults")
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "build/site")
    parser.add_argument("--check", type=pathlib.Path)
    parser.add_argument("--self-test", action="store_true")
    options = parser.parse_args()
    if options.self_test:
        return self_test()
    site, unnamed = (options.check or options.out).resolve(), []
    if not options.check:
        shutil.rmtree(site, ignore_errors=True)
        build(ROOT, site)
        contents = ROOT / "docs/guide" / CONTENTS
        unnamed = [p.name for p in sorted(contents.parent.glob("*.md"))
                   if p != contents and f"]({p.name}" not in contents.read_text(encoding="utf-8")]
    for name in unnamed:
        print(f"docs/guide/{CONTENTS}: does not name {name}, which so has no place in the guide's menu")
    wrong = list(faults(site))
    for file, target, what in wrong:
        print(f"{file}: {target} {what}")
    count = len([*site.rglob("*.html"), *site.rglob("*.md")])
    print(f"{site}: {count} pages, {len(wrong)} references that lead nowhere or away")
    return 1 if wrong or unnamed else 0


if __name__ == "__main__":
    sys.exit(main())
