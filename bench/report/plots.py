# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The results as plots shaped like the figures of Clobber-NVM (ASPLOS'21)."""
import experiments
import matplotlib
import tables

matplotlib.use("Agg")
from matplotlib import pyplot as plt  # noqa: E402  the back end is chosen before

COLOURS = {"clobber": "tab:blue", "undo": "tab:orange", "none": "tab:gray", "pmdk": "tab:red",
           "v_log": "tab:cyan", "clobber_log": "tab:blue", "vlog-only": "tab:cyan",
           "clobberlog-only": "tab:olive", "clobber-unrefined": "tab:gray", "ido": "tab:purple",
           "justdo": "tab:green", "redo": "tab:brown", "auto": "tab:pink", "mod": "tab:cyan", "volatile": "tab:gray",
           "vlog_only": "tab:cyan", "lmdb": "tab:green", "rocksdb": "tab:brown", "sqlite": "tab:pink", "bdb": "tab:purple"}


def colour_of(label):
    """That of the engine, whichever way it syncs."""
    return COLOURS.get(label) or COLOURS.get(label.split("-")[0])


def save(figure, out, name):
    figure.tight_layout()
    figure.savefig(out / f"{name}.svg")
    figure.savefig(out / f"{name}.png", dpi=120)
    plt.close(figure)


def bars(axes, groups, series, title, unit):
    """series: {label: [a value or None per group]}; one bar per label in each group."""
    width = 0.8 / max(1, len(series))
    for i, (label, values) in enumerate(series.items()):
        places = [at + (i - (len(series) - 1) / 2) * width for at in range(len(groups))]
        axes.bar(places, [value or 0 for value in values], width, label=label,
                 color=colour_of(label) or f"C{i}")
    axes.set_xticks(range(len(groups)), groups)
    axes.set_title(title)
    axes.set_ylabel(unit)
    axes.legend(fontsize="small")


def measured_structures(results, *engines):
    return [structure for structure in experiments.STRUCTURES
            if all(name in tables.fill(results, structure, "pmem") for name in engines)]


def fig6(results, out):
    """Throughput over threads, per structure."""
    structures = measured_structures(results, "clobber")
    if not structures:
        return
    figure, all_axes = plt.subplots(1, len(structures), figsize=(4 * len(structures), 3.6),
                                    squeeze=False)
    for axes, structure in zip(all_axes[0], structures):
        by_threads = {threads: tables.fill(results, structure, "pmem", threads)
                      for threads in (1, 2, 4)}
        for engine in ("clobber", "undo", "none", "pmdk"):
            points = [(threads, runs[engine]) for threads, runs in by_threads.items()
                      if engine in runs]
            if points:
                speeds = [run["ops_per_second"] / 1e6 for _, run in points]
                rounds = [run["ops_per_second_of_rounds"] for _, run in points]
                below = [speed - min(each) / 1e6 for speed, each in zip(speeds, rounds)]
                above = [max(each) / 1e6 - speed for speed, each in zip(speeds, rounds)]
                axes.errorbar([at for at, _ in points], speeds, yerr=[below, above], marker="o",
                              capsize=3, label=engine, color=colour_of(engine))
        axes.set_title(structure)
        axes.set_xlabel("threads")
        axes.set_ylabel("M inserts/s")
        axes.set_xticks([1, 2, 4])
        axes.set_ylim(bottom=0)
        axes.legend(fontsize="small")
    save(figure, out, "fig6-throughput")


def stacked(axes, groups, at, series):
    base = [0.0] * len(groups)
    places = [group + at for group in range(len(groups))]
    for label, values in series.items():
        axes.bar(places, values, 0.25, bottom=base, label=label, color=colour_of(label))
        base = [low + value for low, value in zip(base, values)]


def fig7(results, out):
    """Entries and bytes of the logs, clobber's split, and the speed of the parts."""
    structures = measured_structures(results, "clobber", "vlog-only", "undo")
    if not structures:
        return
    split = [tables.log_split(results, structure) for structure in structures]
    runs = [tables.fill(results, structure, "pmem") for structure in structures]
    peers = [tables.fill(results, structure, "pmem", count_peers=True).get("pmdk", {})
             for structure in structures]
    figure, (speed, entries, size) = plt.subplots(1, 3, figsize=(15, 3.8))
    bars(speed, structures,
         {name: [run[name]["ops_per_second"] / 1e6 if name in run else None for run in runs]
          for name in experiments.PARTS}, "speed of the parts", "M inserts/s")
    for axes, which, key, title in ((entries, 0, "log_entries_per_op", "log entries per insert"),
                                    (size, 1, "log_bytes_per_op", "log bytes per insert")):
        stacked(axes, structures, -0.27, {"v_log": [each[0][which] for each in split],
                                          "clobber_log": [each[1][which] for each in split]})
        stacked(axes, structures, 0, {"undo": [run["undo"][key] for run in runs]})
        stacked(axes, structures, 0.27, {"pmdk": [peer.get(key) or 0 for peer in peers]})
        axes.set_xticks(range(len(structures)), structures)
        axes.set_title(title)
        axes.legend(fontsize="small")
    save(figure, out, "fig7-logs")


def fig8(results, out):
    """Log entries and bytes beside iDO's."""
    structures = measured_structures(results, "clobber", "ido")
    if not structures:
        return
    runs = [tables.fill(results, each, "pmem") for each in structures]
    figure, both = plt.subplots(1, 2, figsize=(10, 3.6))
    for axes, key in zip(both, ("log_entries_per_op", "log_bytes_per_op")):
        bars(axes, structures, {name: [run[name][key] for run in runs]
                                for name in ("clobber", "ido")},
             key.replace("_per_op", "").replace("_", " "), "per insert")
    save(figure, out, "fig8-ido")


def fig9(results, out):
    """Opening after a kill."""
    runs = {(run["structure"], run["engine"]): run["open_ms"]
            for run in tables.runs_of(results, name="restart")}
    structures = [each for each in experiments.STRUCTURES if (each, "clobber") in runs]
    if not structures:
        return
    figure, axes = plt.subplots(figsize=(7, 3.6))
    bars(axes, structures, {engine: [runs.get((each, engine)) for each in structures]
                            for engine in ("clobber", "undo", "pmdk")},
         "opening after SIGKILL", "ms")
    save(figure, out, "fig9-recovery")


def fig13(results, out):
    """The effect of the analysis's refinement."""
    structures = measured_structures(results, "clobber", "clobber-unrefined")
    if not structures:
        return
    runs = [tables.fill(results, each, "pmem") for each in structures]
    figure, axes = plt.subplots(figsize=(7, 3.6))
    bars(axes, structures,
         {name: [run[name]["ops_per_second"] / run["clobber-unrefined"]["ops_per_second"]
                 for run in runs] for name in ("clobber-unrefined", "clobber")},
         "refinement", "speed, unrefined = 1")
    save(figure, out, "fig13-refinement")


def fig14(results, out):
    """Compile time."""
    times = {(each["structure"], each["build"]): each["seconds"] for each in results["compile"]}
    structures = [each for each in experiments.STRUCTURES if (each, "none") in times]
    if not structures:
        return
    figure, axes = plt.subplots(figsize=(7, 3.6))
    bars(axes, structures, {build: [times[each, build] for each in structures]
                            for build in ("none", "clobber")}, "compile time", "s")
    save(figure, out, "fig14-compile")


def latencies(results, out):
    """Clobber beside the others as fences become dearer."""
    models = ["optane", "cxl", "cxl-far"]
    runs = {(structure, model): tables.fill(results, structure, "pmem", latency=model)
            for structure in experiments.STRUCTURES for model in models}
    structures = [each for each in experiments.STRUCTURES if "clobber" in runs[each, models[0]]]
    if not structures:
        return
    figure, all_axes = plt.subplots(1, len(structures), figsize=(4 * len(structures), 3.6),
                                    squeeze=False)
    for axes, structure in zip(all_axes[0], structures):
        bars(axes, models, {engine: [runs[structure, model][engine]["ops_per_second"] / 1e6
                                     if engine in runs[structure, model] else None
                                     for model in models] for engine in ("clobber", "undo", "pmdk")},
             structure, "M inserts/s")
    save(figure, out, "latency")


def mixes(results, out):
    """YCSB's mixes, zipfian, one thread."""
    runs = [run for run in results["runs"] if run["name"] in experiments.MIXES and
            run["threads"] == 1 and run["distribution"] != "uniform"]
    for mode in ("pmem", "process"):
        speed = {(run["structure"], run["engine"], run["name"]): run["ops_per_second"] / 1e6
                 for run in runs if run["mode"] == mode}
        structures = [each for each in experiments.STRUCTURES if any(key[0] == each for key in speed)]
        if not structures:
            continue
        figure, all_axes = plt.subplots(1, len(structures), figsize=(5 * len(structures), 3.8),
                                        squeeze=False)
        for axes, structure in zip(all_axes[0], structures):
            engines = list(dict.fromkeys(key[1] for key in speed if key[0] == structure))
            bars(axes, [mix[-1].upper() for mix in experiments.MIXES],
                 {engine: [speed.get((structure, engine, mix)) for mix in experiments.MIXES]
                  for engine in engines}, structure, "M operations/s")
        save(figure, out, f"ycsb-{mode}")


def draw(results, out):
    for each in (fig6, fig7, fig8, fig9, fig13, fig14, latencies, mixes):
        each(results, out)
