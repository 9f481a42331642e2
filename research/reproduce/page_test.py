#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A run at the smallest size draws every figure; what is finished is not run again; a browser shows each figure, none of them empty.

usage: page_test.py BUILD OUT     skipped (77) where matplotlib, a peer or memcached is not there

Compile time is left out, which takes minutes. Chromium opens the page in a frame and writes down what it shows of each section.
"""
import importlib.util
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import figures
import studies

SKIPPED = 77
LEFT_OUT = {"bench-compile"}
LOOK = """<!doctype html><body><iframe id="f" width="1200" height="900" src="{page}"></iframe>
<script>
onload = () => {{
    const page = document.getElementById("f").contentDocument;
    const said = [...page.querySelectorAll("section")].map((one) => {{
        const image = one.querySelector("img");
        return {{id: one.id, kind: one.dataset.kind, height: one.getBoundingClientRect().height, text: one.textContent.length,
                 image: image ? image.naturalWidth * image.naturalHeight : null}};
    }});
    const pre = document.createElement("pre");
    pre.textContent = JSON.stringify(said);
    document.body.replaceChildren(pre);
}};
</script>"""


def reproduce(build, out, *only):
    wanted = [name for name in studies.STUDIES if name not in LEFT_OUT]
    done = subprocess.run([sys.executable, "-B", figures.ROOT / "research/reproduce/reproduce.py", "--build", build, "--out", out,
                           "--size", "smoke", "--only", *(only or wanted)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    ran = re.findall(r"^ *\d+ s  (\S+)$", done.stderr, re.MULTILINE)
    return ran, re.findall(r"^(\w+-[\w-]+): ", done.stderr.partition("not drawn:")[2], re.MULTILINE), done.stderr


def shown_by(chromium, page, folder):
    found = importlib.util.spec_from_file_location("browser_test", figures.ROOT / "test/gates/site/browser_test.py")
    browser = importlib.util.module_from_spec(found)
    found.loader.exec_module(browser)
    look = folder / "look.html"
    look.write_text(LOOK.format(page=page.as_uri()))
    said = browser.document(chromium, look.as_uri(), folder, "--allow-file-access-from-files")
    text = re.search(r"<pre>(.*?)</pre>", said, re.S)[1]
    return {one["id"]: one for one in json.loads(text.replace("&amp;", "&"))}


def check_shown(shown, without):
    for figure in figures.all_figures():
        one = shown.get(figure.key)
        assert one, f"the page does not show {figure.key}"
        assert one["kind"] == figure.kind and one["height"] > 40 and one["text"] > 60, one
        if figure.draw and figure.key not in without:
            assert one["image"] is None or one["image"] > 10_000, f"{figure.key} is an empty picture: {one}"
    assert shown["rows"]["text"] > 5000, shown["rows"]


def check_data(out, without):
    """What is drawn has numbers: of each panel, and for each of the paper's."""
    for figure in figures.all_figures():
        if figure.draw is None or figure.key in without:
            continue
        data = json.loads((out / "figures" / f"{figure.key}.json").read_text())
        for panel in data["panels"]:
            assert any(value is not None for values in panel["series"].values() for value in values), (figure.key, panel["title"])
        assert data["panels"] or data["table"], figure.key
        assert data["runs"] or not figure.studies, figure.key
        assert (out / "figures" / f"{figure.key}.csv").read_text().count("\n") > 2, figure.key


def main():
    build, out = (pathlib.Path(place).resolve() for place in sys.argv[1:3])
    missing = [name for name in ("memcached", "memcaslap") if not shutil.which(name)]
    if missing or not importlib.util.find_spec("matplotlib") or not (build / "bin/holdfast-vacation").exists():
        print("skipped: matplotlib, libpmemobj or memcached is not there", *missing)
        return SKIPPED
    shutil.rmtree(out, ignore_errors=True)
    ran, _, said = reproduce(build, out)
    assert ran == [name for name in studies.STUDIES if name not in LEFT_OUT], said
    (out / "studies/smoke/classify.json").unlink()
    ran, without, said = reproduce(build, out)
    assert ran == ["classify"], f"finished studies were run again: {ran}\n{said}"
    expected = {figure.key for figure in figures.all_figures() if LEFT_OUT & set(figure.studies)}
    assert set(without) == expected, said
    check_data(out, expected)
    page = (out / "index.html").read_text()
    assert not re.search(r'(src|href)="?(https?:)?//', page), "the page asks the network for something"
    if (chromium := shutil.which("chromium")) is None:
        print("skipped: there is no Chromium")
        return SKIPPED
    with tempfile.TemporaryDirectory(prefix="holdfast-page-") as folder:
        shown = shown_by(chromium, out / "index.html", pathlib.Path(folder))
    check_shown(shown, expected)
    print(f"{len(shown) - 1} figures and tables shown")
    return 0


if __name__ == "__main__":
    sys.exit(main())
