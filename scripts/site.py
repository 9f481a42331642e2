#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The documentation as a site: build/site, by MkDocs, from the pages as they are in the tree.

Pages keep their places, so that links between them, and to sources, hold; what a page links to comes along. Then every
link of the site is followed: one that leads to no file, or to no heading, is an error.
"""
import argparse
import html.parser
import json
import pathlib
import re
import shutil
import subprocess
import sys
import urllib.parse

ROOT = pathlib.Path(__file__).resolve().parents[1]
LEFT_OUT = {"build", "results", ".git"}
LINK = re.compile(r"\]\(([^)\s#]+)(#[^)\s]*)?\)")
# In the order of the menu; a folder: its pages. What is in none of them is a module's README.
MENU = [("Home", "README.md"), ("Guide", "docs/guide"), ("Internals", "docs/internals"), ("Formats", "docs/format"),
        ("Numbers", "docs/numbers.md"), ("Papers", "docs/papers.md"), ("Architecture", "ARCHITECTURE.md"),
        ("Contributing", "CONTRIBUTING.md"), ("Changes", "CHANGELOG.md")]


def pages_of_tree():
    found = [p.relative_to(ROOT) for p in ROOT.rglob("*.md")]
    return sorted(p for p in found if not LEFT_OUT & set(p.parts))


def stage(pages, staged):
    """Copies pages and what they link to; a link to a folder becomes one to its README, or to nothing."""
    def place(match, page):
        target, heading = match[1], match[2] or ""
        if re.match(r"\w+:", target):
            return match[0]
        path = (page.parent / target)
        here = ROOT / path
        if here.is_dir():
            readme = here / "README.md"
            return f"]({target.rstrip('/')}/README.md{heading})" if readme.exists() else match[0].replace(f"({target}", "(#")
        if here.is_file() and here.suffix != ".md":
            to = staged / here.resolve().relative_to(ROOT)
            to.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(here, to)
        return match[0]

    for page in pages:
        text = LINK.sub(lambda match, page=page: place(match, page), (ROOT / page).read_text())
        to = staged / page
        to.parent.mkdir(parents=True, exist_ok=True)
        to.write_text(text)


def title_of(page):
    found = re.search(r"^# +(.+)$", (ROOT / page).read_text(), re.M)
    return re.sub(r"[`*]", "", found[1]) if found else str(page)


def menu(pages):
    """MkDocs' nav."""
    out, left = [], set(pages)
    for title, place in MENU:
        inside = [p for p in pages if str(p) == place or p.is_relative_to(place)]
        left -= set(inside)
        out.append({title: place} if place.endswith(".md") else {title: [{title_of(p): str(p)} for p in inside]})
    out.append({"Modules": [{title_of(p): str(p)} for p in sorted(left)]})
    return out


class Links(html.parser.HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.targets, self.ids = [], set()
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        named = dict(attributes)
        self.ids |= {named[key] for key in ("id", "name") if named.get(key)}
        if named.get("href"):
            self.targets.append(named["href"])


def dead_links(site):
    """(page, target) of links within the site that lead nowhere."""
    pages = {page: Links(page.read_text()) for page in sorted(site.rglob("*.html")) if page.name != "404.html"}
    for page, links in pages.items():
        for target in links.targets:
            to = urllib.parse.urlsplit(target)
            if to.scheme or to.netloc:
                continue
            path = (page.parent / urllib.parse.unquote(to.path)).resolve() if to.path else page
            path = path / "index.html" if path.is_dir() else path
            heading = urllib.parse.unquote(to.fragment)
            if not path.exists() or heading and path in pages and heading not in pages[path].ids:
                yield page.relative_to(site), target


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "build/site")
    options = parser.parse_args()
    if not shutil.which("mkdocs"):
        sys.exit("the site is built by MkDocs, which is not there: apt-get install mkdocs")
    site, work = options.out.resolve(), options.out.resolve().with_name(options.out.name + ".pages")
    shutil.rmtree(work, ignore_errors=True)
    pages = pages_of_tree()
    stage(pages, work / "docs")
    # YAML is a superset of JSON.
    (work / "mkdocs.yml").write_text(json.dumps({
        "site_name": "Holdfast", "docs_dir": "docs", "site_dir": str(site), "use_directory_urls": False, "theme": "readthedocs",
        "markdown_extensions": ["tables", "fenced_code", "toc"], "nav": menu(pages)}))
    subprocess.run(["mkdocs", "build", "--quiet", "--clean", "--config-file", work / "mkdocs.yml"], check=True)
    dead = list(dead_links(site))
    for page, target in dead:
        print(f"{page}: link to {target}, which is not there")
    print(f"{site}: {len(pages)} pages, {len(dead)} dead links")
    return 1 if dead else 0


if __name__ == "__main__":
    sys.exit(main())
