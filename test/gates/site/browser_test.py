#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The site in a browser, opened as files: search answers; on a phone the menu opens; no page is wider than its screen.

usage: browser_test.py SITE     skipped (77) where there is no Chromium

Chromium prints each page's document when its scripts have run. A page beside the site, which has a page of it in a frame as
wide as a phone, presses the menu's button.
"""
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

SKIPPED = 77
PHONE = """<!doctype html><body><iframe id="f" width="390" height="800" src="{page}"></iframe>
<script>
onload = () => {{
    const page = document.getElementById("f").contentDocument;
    const shown = (name) => page.querySelector(name).getClientRects().length > 0;
    const said = [shown("nav")];
    page.querySelector("label[for=menu]").click();
    said.push(shown("nav"), page.documentElement.scrollWidth <= 390);
    document.body.replaceChildren("said: " + said.join(" "));
}};
</script>"""


def document(chromium, address, folder, *more):
    """The page at the address after its scripts have run."""
    ran = subprocess.run(
        [chromium, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
         "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-extensions",
         f"--user-data-dir={tempfile.mkdtemp(dir=folder)}", "--virtual-time-budget=20000", *more, "--dump-dom", address],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=120)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def main():
    site, chromium = pathlib.Path(sys.argv[1]).resolve(), shutil.which("chromium")
    if chromium is None or not site.is_dir():
        print("skipped: there is no Chromium, or no site")
        return SKIPPED
    with tempfile.TemporaryDirectory(prefix="holdfast-browser-") as folder:
        searched = document(chromium, f"{(site / 'docs/guide/kv.html').as_uri()}?q=cache_memlimit", folder)
        found = re.search(r'<ol id="found">(.*?)</ol>', searched, re.S)
        assert found and "docs/guide/kv.html#how-large-a-pool-grows" in found[1], searched[:3000]
        for page in ("index.html", "docs/guide/simpo.html", "docs/numbers.html"):
            phone = pathlib.Path(folder) / "phone.html"
            phone.write_text(PHONE.format(page=(site / page).as_uri()))
            said = re.search(r"<body>said: ([\w ]+)", document(chromium, phone.as_uri(), folder, "--allow-file-access-from-files"))
            assert said and said[1] == "false true true", (page, said and said[1])
    print("browser: the search answers, the menu opens on a phone, no page is too wide")
    return 0


if __name__ == "__main__":
    sys.exit(main())
