# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The page: every figure in the papers' order, plots with the paper's values, numbers as JSON and CSV beside it. It needs no network."""
import csv
import dataclasses
import html
import importlib.util
import json
import os
import shutil

import figures

PAPERS = {"Clobber": "Clobber-NVM (ASPLOS 2021)", "JUSTDO": "JUSTDO logging (ASPLOS 2016, HPE-2016-09)", "MOD": "MOD (ASPLOS 2020)",
          "SLPMT": "SLPMT (HPCA 2023)", "SIMPO": "SIMPO (TACO 15(1), 2018)"}
STYLE = """body { font: 16px/1.45 sans-serif; max-width: 72rem; margin: 1rem auto; padding: 0 1rem; color: #222; }
img { max-width: 100%; } table { border-collapse: collapse; margin: .5rem 0; } h2 { margin-top: 3rem; border-bottom: 1px solid #888; }
td, th { border: 1px solid #ccc; padding: .15rem .5rem; text-align: left; vertical-align: top; overflow-wrap: anywhere; }
#rows td:first-child, th { white-space: nowrap; } th { background: #f2f2f2; }
.said { color: #555; } .off { background: #fff3df; } section { margin: 2rem 0; } nav a { margin-right: .6rem; white-space: nowrap; }"""


def number(value):
    if value is None:
        return ""
    if isinstance(value, (list, tuple)):
        found = [each for each in value if each is not None]
        return f"{number(min(found))} to {number(max(found))}" if len(found) > 1 else number(found[0] if found else None)
    if isinstance(value, float):
        return f"{value:,.0f}".replace(",", " ") if abs(value) >= 1000 else f"{value:.3g}"
    return str(value)


def paper_value(claim):
    return number(claim.low) if claim.high is None else f"{number(claim.low)} to {number(claim.high)}"


def draw_claims(axes, claims):
    """A row for each number of the paper: where ours lies, the paper's being 1, its range the grey bar."""
    for at, claim in enumerate(claims):
        low, high = claim.low, claim.low if claim.high is None else claim.high
        one = (low + high) / 2 or 1
        axes.barh(at, max((high - low) / one, 0.02), left=low / one - (0 if high > low else 0.01), color="lightgrey", height=0.7)
        for value in claim.values():
            axes.plot(min(max(value / one, 0), 4), at, marker="o", color="tab:blue" if claim.met_by(value) else "tab:red")
        axes.annotate(f" paper {paper_value(claim)}, ours {number(claim.ours) or '-'}", (4.1, at), fontsize="x-small", va="center",
                      annotation_clip=False)
    axes.set_yticks(range(len(claims)), [claim.what for claim in claims], fontsize="x-small")
    axes.set_xlim(0, 4)
    axes.set_ylim(len(claims) - 0.5, -0.5)
    axes.axvline(1, color="grey", linewidth=0.8)
    axes.set_title("ours over the paper's number; grey: the paper", fontsize="small")


def plot(drawn, out, name):
    """One file: the panels, and below them the paper's numbers."""
    import plots  # noqa: PLC0415  needs matplotlib, as `make bench` does

    columns = min(3, len(drawn.panels)) or 1
    rows = -(-len(drawn.panels) // columns)
    heights = [3.4] * rows + ([0.7 + 0.28 * len(drawn.claims)] if drawn.claims else [])
    figure = plots.plt.figure(figsize=(max(9, 4.8 * columns), sum(heights)), layout="constrained")
    grid = figure.add_gridspec(len(heights), columns, height_ratios=heights)
    for at, panel in enumerate(drawn.panels):
        axes = figure.add_subplot(grid[at // columns, at % columns])
        plots.bars(axes, list(map(str, panel.groups)), panel.series, panel.title, panel.unit)
        axes.set_yscale("log" if panel.log else "linear")
        axes.legend(fontsize="x-small", loc="upper center", bbox_to_anchor=(0.5, -0.2), ncols=3, frameon=False)    # covers no bar
        axes.tick_params(axis="x", labelrotation=30 if len(panel.groups) > 5 else 0, labelsize="small")
    if drawn.claims:
        draw_claims(figure.add_subplot(grid[rows, :]), drawn.claims)
    figure.savefig(out / f"{name}.svg")
    plots.plt.close(figure)


def write_data(figure, drawn, records, out):
    """JSON with all of it, CSV with a number a line."""
    told = {"figure": figure.key, "title": figure.title, "kind": figure.kind, "why": figure.why,
            "runs": [{key: value for key, value in record.items() if key != "said"} for record in records],
            **dataclasses.asdict(drawn)}
    (out / f"{figure.key}.json").write_text(json.dumps(told, indent=1) + "\n")
    with (out / f"{figure.key}.csv").open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["what", "of", "at", "unit", "ours", "paper, least", "paper, most"])
        for panel in drawn.panels:
            for label, values in panel.series.items():
                rows.writerows([panel.title, label, group, panel.unit, value, "", ""] for group, value in zip(panel.groups, values))
        for claim in drawn.claims:
            rows.writerows(["against the paper", claim.what, "", "", value, claim.low, claim.low if claim.high is None else claim.high]
                           for value in claim.values() or [""])
        rows.writerows(drawn.table)


def table(rows, marks=()):
    """HTML of rows whose first is the head; rows in `marks` are off the paper's."""
    head, *rest = rows
    lines = ["<table><tr>" + "".join(f"<th>{html.escape(str(cell))}</th>" for cell in head) + "</tr>"]
    for at, row in enumerate(rest):
        lines.append(f"<tr{' class=off' if at in marks else ''}>" + "".join(f"<td>{html.escape(str(cell))}</td>" for cell in row) + "</tr>")
    return "\n".join([*lines, "</table>"])


def said_of(figure, records):
    """The line: how the numbers came about, on which machine, at which commit, and why they differ."""
    where = [f"{each['machine']}; {each['size']} run, commit {each['commit']}, load {each['load']}"
             + (": busy, so trust counts and not times" if float(each["load"]) > 2 * each["processors"] else "") for each in records]
    return f"<p class=said><b>{figure.kind}</b>" + "".join(f" on {html.escape(each)}." for each in dict.fromkeys(where)) + \
        f" {html.escape(figure.why)}</p>"


def entry(figure, drawn, records, out, up):
    """The section of a figure. drawn is a reason where there is nothing to draw."""
    lines = [f'<section id="{figure.key}" data-kind="{figure.kind}"><h3>{html.escape(f"{figure.name}. {figure.title}")}</h3>']
    if figure.kind in ("diagram", "setup"):
        what = "A diagram or a listing" if figure.kind == "diagram" else "A description of what was measured"
        lines.append(f'<p class=text>{what}, without numbers of its own. Its subject here: <a href="{up}/{figure.why}">{figure.why}</a>.</p>')
    elif figure.kind == "not drawn":
        lines.append(f"<p class=text><b>Not drawn:</b> {html.escape(figure.why)}.</p>")
    elif isinstance(drawn, str):
        lines.append(f"<p class=missing><b>Not measured in this run:</b> {html.escape(drawn)}</p>")
    else:
        lines.append(said_of(figure, records))
        if drawn.panels and importlib.util.find_spec("matplotlib"):
            plot(drawn, out, figure.key)
            lines.append(f'<img src="figures/{figure.key}.svg" alt="{html.escape(figure.title)}">')
        elif drawn.panels:
            lines.append("<p>No plot: it needs python3-matplotlib.</p>")
        if drawn.claims:
            rows = [[claim.what, paper_value(claim), number(claim.ours)] for claim in drawn.claims]
            lines.append(table([["in the paper's text", "paper", "ours"], *rows],
                               [at for at, claim in enumerate(drawn.claims) if not claim.met()]))
        else:
            lines.append("<p>The paper's text has no number for it.</p>")
        if drawn.table:
            lines.append(table(drawn.table))
        write_data(figure, drawn, records, out)
        lines.append(f'<p>Numbers: <a href="figures/{figure.key}.json">JSON</a>, <a href="figures/{figure.key}.csv">CSV</a></p>')
    return "\n".join([*lines, "</section>"])


def rows_table(rows, up):
    """Row, code, test, figure, guide."""
    def links(places):
        return ", ".join(f'<a href="{up}/{place}">{place}</a>' for place in places)
    lines = ["<section id=rows><h2>What is implemented: row, code, test, figure, guide</h2><table>",
             "<tr><th>row</th><th>what works</th><th>code</th><th>test</th><th>figure</th><th>guide</th></tr>"]
    for name, row in rows.items():
        shown = ", ".join(f'<a href="#{key}">{key}</a>' for key in row["figure"]) or "none in the paper"
        lines.append(f'<tr id="row-{name}"><td>{name}</td><td>{html.escape(row["what"])}</td><td>{links(row["code"])}</td>'
                     f'<td>{links(row["test"])}</td><td>{shown}</td><td>{links(row["guide"])}</td></tr>')
    return "\n".join([*lines, "</table></section>"])


def drawn_of(figure, records):
    """What is drawn of a figure, or the reason why nothing is."""
    if figure.draw is None:
        return None
    if missing := [name for name in figure.studies if name not in records]:
        return f"no results of {', '.join(missing)}; the same command goes on."
    try:
        drawn = figure.draw({name: records[name]["said"] for name in figure.studies})
    except (KeyError, IndexError, TypeError, ValueError) as error:   # a part of a study is missing
        return f"what {', '.join(figure.studies)} said lacks a part ({type(error).__name__}: {error})."
    return "nothing was measured for it." if drawn.empty() else drawn


def write(records, out):
    """records: {study: what the driver keeps of it}. Returns (figure, why) of what could not be drawn."""
    shutil.rmtree(out / "figures", ignore_errors=True)
    (out / "figures").mkdir(parents=True)
    up = os.path.relpath(figures.ROOT, out)
    body, failed, links = [], [], {}
    for figure in figures.all_figures():
        if figure.paper not in links:
            links[figure.paper] = []
            body.append(f"<h2 id={figure.paper}>{PAPERS[figure.paper]}</h2>")
        links[figure.paper].append(f'<a href="#{figure.key}">{figure.name}</a>')
        drawn = drawn_of(figure, records)
        if isinstance(drawn, str):
            failed.append((figure, drawn))
        body.append(entry(figure, drawn, [records[name] for name in figure.studies if name in records], out / "figures", up))
    rows = json.loads((figures.ROOT / "research/rows.json").read_text())
    menu = "".join(f"<p><b>{paper}</b>: {' '.join(of)}</p>" for paper, of in links.items())
    (out / "index.html").write_text(
        f"<!doctype html><html lang=en><meta charset=utf-8><title>Five papers, reproduced</title><style>{STYLE}</style>\n"
        "<h1>Five papers, reproduced</h1>\n<p>Each figure and table, in the papers' order, with the numbers of the paper's text beside ours. "
        "<b>measured</b>: times of this machine. <b>emulated</b>: flushes and fences run on tmpfs, with no medium behind them. "
        "<b>counted</b>: the same on every machine. <b>simulated</b>: a model's. A shaded line is outside of the paper's range by more than "
        f"a tenth.</p>\n<nav>{menu}<p><a href=\"#rows\">rows</a></p></nav>\n" + "\n".join(body) + "\n" + rows_table(rows, up) + "</html>\n")
    return failed
