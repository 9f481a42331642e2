// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Search over search_index.js: a list of [place, title, text], one for each section of a page. The index is a script,
// which a browser also loads for a page that was opened as a file; it is loaded when somebody searches.
"use strict";
const top_ = document.currentScript.dataset.top;
const field = document.getElementById("search");
const found = document.getElementById("found");
const article = document.querySelector("article");
const SHOWN_MAX = 30, AROUND = 80;

function excerpt(text, word) {
    const at = Math.max(0, text.toLowerCase().indexOf(word) - AROUND);
    return (at ? "…" : "") + text.slice(at, at + 3 * AROUND) + "…";
}

// A section answers if it has every word; words in titles count more.
function answers(words) {
    const all = [];
    for (const [place, title, text] of SECTIONS) {
        const name = title.toLowerCase(), body = text.toLowerCase();
        if (!words.every((word) => name.includes(word) || body.includes(word))) continue;
        const score = words.reduce((sum, word) => sum + (name.includes(word) ? 10 : 0) +
                                   Math.min(body.split(word).length - 1, 5), place.startsWith("docs/guide/") ? 5 : 0);
        all.push({place, title, text, score});
    }
    return all.sort((a, b) => b.score - a.score).slice(0, SHOWN_MAX);
}

function show() {
    const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
    found.hidden = words.length === 0;
    article.hidden = !found.hidden;
    found.replaceChildren();
    if (words.length === 0 || typeof SECTIONS === "undefined") return;
    for (const {place, title, text} of answers(words)) {
        const item = found.appendChild(document.createElement("li"));
        const link = item.appendChild(document.createElement("a"));
        link.href = top_ + place;
        link.textContent = title;
        link.onclick = () => { field.value = ""; show(); };  // the section may be on this very page
        item.appendChild(document.createElement("p")).textContent = excerpt(text, words[0]);
    }
    if (!found.children.length) found.appendChild(document.createElement("li")).textContent = "Nothing has all of these words.";
}

function load() {
    if (typeof SECTIONS !== "undefined") return show();
    const script = document.head.appendChild(document.createElement("script"));
    script.src = top_ + "search_index.js";
    script.onload = show;
}

field.addEventListener("focus", load, {once: true});
field.addEventListener("input", show);
const asked = new URLSearchParams(location.search).get("q");  // index.html?q=words
if (asked) {
    field.value = asked;
    load();
}
