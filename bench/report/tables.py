# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The results as tables for people, in markdown."""
import experiments

CAPTIONS = {
    "pmem": "Mode pmem: survives power loss (libpmemobj with flushes, stores synced)",
    "process": "Mode process: survives a killed process (libpmemobj without flushes, stores not synced)",
}


def runs_of(results, **wanted):
    """The runs with these fields; a field that a run lacks counts as None."""
    return [run for run in results["runs"]
            if all(run.get(key) == value for key, value in wanted.items())]


def fill(results, structure, mode, threads=1, **more):
    """The fillings of a structure at this machine's latency, by engine."""
    more.setdefault("latency", None)
    more.setdefault("count_peers", None)
    return {run["engine"]: run for run in runs_of(results, name=structure, mode=mode,
                                                  threads=threads, **more)}


def number(value, digits=2):
    return "" if value is None else f"{value:.{digits}f}"


def thousands(value):
    return f"{value:,.0f}".replace(",", " ")


def table(head, rows):
    lines = [" | ".join(head), "|".join("---" for _ in head)]
    lines += [" | ".join(str(field).replace("|", "\\|") for field in row) for row in rows]
    return "\n".join(f"| {line} |" if "---" not in line else f"|{line}|" for line in lines) + "\n"


def throughput(results):
    for mode, caption in CAPTIONS.items():
        for structure in experiments.STRUCTURES:
            runs = fill(results, structure, mode)
            if "clobber" not in runs:
                continue
            first = runs["clobber"]["ops_per_second"]
            rows = [[engine, thousands(run["ops"]), thousands(run["ops_per_second"]),
                     number(first / run["ops_per_second"]), f"{100 * run['spread']:.0f} %",
                     number(run["fences_per_op"]), number(run["flushes_per_op"]),
                     number(run["log_entries_per_op"]), number(run["log_bytes_per_op"], 0),
                     run["note"]] for engine, run in runs.items()]
            yield f"### {structure}\n\n{caption}, one thread.\n\n" + table(
                ["engine", "inserts", "ops/s", "clobber is … times", "spread", "fences/op",
                 "flushes/op", "entries/op", "log bytes/op", "note"], rows)


def scaling(results):
    rows = []
    for structure in experiments.STRUCTURES:
        one = fill(results, structure, "pmem")
        for threads in (2, 4):
            for engine, run in fill(results, structure, "pmem", threads).items():
                if engine in one:
                    ratio = run["ops_per_second"] / one[engine]["ops_per_second"]
                    rows.append([structure, engine, threads, thousands(run["ops_per_second"]),
                                 number(ratio)])
    if rows:
        yield "### Threads (pmem)\n\n" + table(
            ["structure", "engine", "threads", "ops/s", "times one thread"], rows)


def log_split(results, structure):
    """The halves of clobber's log per operation, v_log and clobber_log, each (entries, bytes): what
    the build without the clobber_log logs, and what the whole engine logs beyond that. Begin records
    count as bytes, not as entries; allocations are entries of the v_log."""
    runs = fill(results, structure, "pmem")
    if "clobber" not in runs or "vlog-only" not in runs:
        return None
    whole, vlog = runs["clobber"], runs["vlog-only"]
    entries = whole["log_entries_per_op"] - vlog["log_entries_per_op"]
    size = whole["log_bytes_per_op"] - vlog["log_bytes_per_op"]
    return (vlog["log_entries_per_op"], vlog["log_bytes_per_op"]), (entries, size)


def as_the_paper_counts(results, structure):
    """Log entries per operation as Clobber-NVM's Fig. 7 has them: one v_log entry a transaction, the
    clobber_log's, of undo what is overwritten, of libpmemobj the ranges snapshotted. Allocations,
    which both sides log, count on neither."""
    split, runs = log_split(results, structure), fill(results, structure, "pmem")
    if split is None or "clobberlog-only" not in runs or "undo" not in runs:
        return None
    clobber_log = split[1][0]
    allocations = runs["clobberlog-only"]["log_entries_per_op"] - clobber_log
    peer = fill(results, structure, "pmem", count_peers=True).get("pmdk", {})
    return 1 + clobber_log, runs["undo"]["log_entries_per_op"] - allocations, peer.get("log_entries_per_op")


PAPER_SHARE = "21.5 to 42.3 %"  # of PMDK's entries, Clobber-NVM §5.3


def logs(results):
    rows = []
    for structure in experiments.STRUCTURES:
        split = log_split(results, structure)
        runs = fill(results, structure, "pmem")
        if split is None or "undo" not in runs:
            continue
        ours = runs["clobber"]
        undo = runs["undo"]
        peer = fill(results, structure, "pmem", count_peers=True).get("pmdk", {})
        ido = runs.get("ido", {})
        share = ours["log_entries_per_op"] / undo["log_entries_per_op"]
        counted = as_the_paper_counts(results, structure) or (None, None, None)
        of_undo, of_peer = (f"{100 * counted[0] / other:.0f} %" if other else "" for other in counted[1:])
        rows.append([structure, *(number(each) for each in counted), of_undo, of_peer, PAPER_SHARE,
                     number(ours["log_entries_per_op"]), number(split[1][0]),
                     number(undo["log_entries_per_op"]), f"{100 * share:.0f} %",
                     number(peer.get("log_entries_per_op")), number(ido.get("log_entries_per_op")),
                     number(split[0][1], 0), number(split[1][1], 0),
                     number(undo["log_bytes_per_op"], 0), number(peer.get("log_bytes_per_op"), 0),
                     number(ido.get("log_bytes_per_op"), 0), number(ours["fences_per_op"]),
                     number(undo["fences_per_op"]), number(peer.get("fences_per_op"))])
    if rows:
        yield ("### Logs per insertion\n\nEntries are records other than begin and commit; those of "
               "clobber beyond its clobber_log are allocations and preserved values. libpmemobj's: "
               "ranges snapshotted. The first columns count as the paper does: one v_log entry a "
               "transaction, and no allocation.\n\n" + table(
                   ["structure", "paper's count: clobber", "undo", "pmdk", "of undo", "of pmdk",
                    "of pmdk in the paper", "entries", "of these clobber_log", "undo", "of undo", "pmdk", "iDO",
                    "v_log bytes", "clobber_log bytes", "undo", "pmdk", "iDO", "fences", "undo",
                    "pmdk"], rows))


def parts(results):
    rows = []
    for structure in experiments.STRUCTURES:
        runs = fill(results, structure, "pmem")
        if "clobber-unrefined" not in runs or "clobber" not in runs:
            continue
        first = runs["clobber"]["ops_per_second"]
        names = [*experiments.PARTS, "clobber-unrefined"]
        rows.append([structure] + [number(runs[name]["ops_per_second"] / first)
                                   if name in runs else "" for name in names])
    if rows:
        yield "### Parts of the log: speed, clobber = 1 (pmem, one thread)\n\n" + table(
            ["structure", *experiments.PARTS, "clobber-unrefined"], rows)


def ycsb(results):
    for mode, caption in CAPTIONS.items():
        for structure in experiments.STRUCTURES:
            for which in ("zipfian", "uniform"):
                runs = [run for run in results["runs"]
                        if run["name"] in experiments.MIXES and run["mode"] == mode and
                        run["structure"] == structure and run["threads"] == 1 and
                        run["distribution"] == which]
                engines = list(dict.fromkeys(run["engine"] for run in runs))
                if not engines:
                    continue
                speed = {(run["name"], run["engine"]): run["ops_per_second"] for run in runs}
                rows = [[mix[-1].upper(), *(thousands(speed[mix, engine])
                                            if (mix, engine) in speed else ""
                                            for engine in engines)] for mix in experiments.MIXES]
                yield (f"### YCSB over {structure}, {which}\n\n{caption}, one thread, "
                       f"{thousands(runs[0]['records'])} records; operations per second.\n\n" +
                       table(["mix", *engines], rows))


def latency(results):
    rows = []
    for structure in experiments.STRUCTURES:
        for model in ("optane", "cxl", "cxl-far"):
            runs = fill(results, structure, "pmem", latency=model)
            if "clobber" in runs:
                first = runs["clobber"]["ops_per_second"]
                rows.append([structure, model, thousands(first),
                             *(number(first / runs[name]["ops_per_second"]) if name in runs else ""
                               for name in ("undo", "pmdk"))])
    if rows:
        yield "### Fences of other memory (modelled)\n\n" + table(
            ["structure", "model", "clobber, ops/s", "times undo", "times pmdk"], rows)


def restart(results):
    rows = [[run["structure"], run["engine"], thousands(run["items"]), number(run["open_ms"]),
             number(run["open_ms_max"]), run["lost"]] for run in runs_of(results, name="restart")]
    if rows:
        yield "### Opening after SIGKILL (pmem, 2 threads inserting)\n\n" + table(
            ["structure", "engine", "items", "median ms", "most", "lost"], rows)


def locked_and_contained(results):
    """JUSTDO's structures, MOD's containers and its applications, a row for each cell."""
    names = [*experiments.LOCK_BASED, *experiments.CONTAINERS, "bfs", "vacation"]
    rows = [[run["name"], run["engine"], run["mode"], run["threads"], run.get("latency", ""), run["value_bytes"],
             thousands(run["ops_per_second"]), number(run["fences_per_op"]), number(run["flushes_per_op"]),
             number(run.get("bytes_per_element"), 0)] for name in names for run in runs_of(results, name=name)]
    if rows:
        yield "### Structures of JUSTDO and MOD\n\n" + table(
            ["", "engine", "mode", "threads", "model", "value bytes", "ops/s", "fences/op", "flushes/op", "bytes an element"], rows)


def compiling(results):
    times = {(each["structure"], each["build"]): each["seconds"] for each in results["compile"]}
    rows = [[structure, number(times[structure, "none"]), number(times[structure, "clobber"]),
             number(times[structure, "clobber"] / times[structure, "none"])]
            for structure in experiments.STRUCTURES if (structure, "none") in times]
    if rows:
        yield "### Compiling a structure\n\n" + table(
            ["structure", "plain clang, s", "engine clobber, s", "times"], rows)


def text_of(results):
    cpu = next((run["cpu"] for run in results["runs"] if "cpu" in run), "")
    head = (f"# Benchmark\n\n{cpu}, {results['cores']} cores, Linux {results['kernel']}, commit "
            f"{results['commit']}; median of {results.get('rounds_done', results['rounds'])} "
            "interleaved rounds, each in a fresh process on a fresh file. tmpfs stands for "
            "persistent memory, and makes syncing a file next to free. 256-byte values, 8-byte "
            "keys (32 in the B+tree). Ratios of one run count, not absolute figures.\n")
    parts_of_text = [head]
    for section in (throughput, scaling, parts, logs, ycsb, latency, restart, locked_and_contained, compiling):
        parts_of_text += section(results)
    return "\n".join(parts_of_text)
