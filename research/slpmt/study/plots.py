# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Figures 8 to 14 of the study, the same bytes for the same numbers."""
import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot as plt  # noqa: E402  the back end is chosen before

KERNELS = ["hashtable", "rbtree", "heap", "avl"]
KV = ["kv-btree", "kv-ctree", "kv-rtree"]


def save(figure, out, name):
    figure.suptitle("SLPMT's study: times are simulated", fontsize="small")
    figure.tight_layout()
    figure.savefig(out / f"slpmt-{name}.svg", metadata={"Date": None})
    figure.savefig(out / f"slpmt-{name}.png", dpi=120)
    plt.close(figure)


def legend_below(axes, columns):
    """A place where it covers no bar."""
    below = -0.16 if axes.get_xlabel() else -0.1
    axes.legend(fontsize="small", loc="upper center", bbox_to_anchor=(0.5, below), ncols=columns, frameon=False)


def bars(axes, groups, series, title, unit):
    width = 0.8 / len(series)
    for i, (label, values) in enumerate(series.items()):
        axes.bar([at + (i - (len(series) - 1) / 2) * width for at in range(len(groups))], values, width, label=label)
    axes.set_xticks(range(len(groups)), groups)
    axes.set_title(title)
    axes.set_ylabel(unit)
    axes.axhline(1 if unit.startswith("speedup") else 0, color="grey", linewidth=0.8)  # FG itself
    legend_below(axes, len(series))


def speedup_and_traffic(study, out, name, title, figure, techniques, workloads, **also):
    drawn, (left, right) = plt.subplots(1, 2, figsize=(10, 4))
    bars(left, workloads, {t: [study.speedup(figure, w, t, **also) for w in workloads] for t in techniques},
         title, "speedup over FG")
    bars(right, workloads, {t: [-study.traffic(figure, w, t, **also) for w in workloads] for t in techniques},
         title, "fewer lines written, %")
    save(drawn, out, name)


def lines(study, out, name, title, figure, key, values, measure, unit, along):
    drawn, axes = plt.subplots(figsize=(6, 4))
    for w in KERNELS:
        axes.plot(values, [measure(figure, w, "SLPMT", **{key: v}) for v in values], marker="o", label=w)
    axes.set_title(title)
    axes.set_xlabel(along)
    axes.set_ylabel(unit)
    legend_below(axes, len(KERNELS))
    save(drawn, out, name)


def draw(study, out):
    matplotlib.rcParams["svg.hashsalt"] = "slpmt"
    speedup_and_traffic(study, out, "fig8", "Fig. 8: techniques, 256 B values", "8", ["FG+LG", "FG+LZ", "SLPMT", "ATOM", "EDE"], KERNELS)
    speedup_and_traffic(study, out, "fig9", "Fig. 9: logging by cache lines", "9", ["SLPMT, lines", "FG, lines"], KERNELS)
    sizes, latencies = (16, 32, 64, 128, 256), (500, 600, 1000, 1500, 2300)
    lines(study, out, "fig10", "Fig. 10: SLPMT", "10", "value_bytes", sizes, study.speedup, "speedup over FG",
          "size of a value, bytes")
    lines(study, out, "fig11", "Fig. 11: SLPMT", "10", "value_bytes", sizes,
          lambda *a, **k: -study.traffic(*a, **k), "fewer lines written, %", "size of a value, bytes")
    for name, between in (("fig12", 0), ("fig12-caller", 4000)):
        lines(study, out, name, f"Fig. 12: SLPMT, 256 B values, {between / 4000:g} us between insertions", "12", "write_ns", latencies,
              lambda *a, between=between, **k: study.speedup(*a, **k, instructions_between=between), "speedup over FG", "latency of a write, ns")
    drawn, axes = plt.subplots(figsize=(6, 4))
    bars(axes, KERNELS, {kind: [study.cell("13", w, "FG")["simulated_ns"]
                                / study.cell("13", w, "SLPMT", annotations=kind)["simulated_ns"] for w in KERNELS]
                         for kind in ("by hand", "by the compiler", "by freshness", "by injection")}, "Fig. 13: SLPMT, annotations", "speedup over FG")
    save(drawn, out, "fig13")
    for size in (256, 16):
        speedup_and_traffic(study, out, f"fig14-{size}", f"Fig. 14: key-value store, {size} B values", "14", ["SLPMT", "ATOM", "EDE"], KV,
                            value_bytes=size)
