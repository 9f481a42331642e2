# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What `make reproduce` runs: a study is one program of the tree that leaves JSON. Figures are made of what studies said."""
import dataclasses
import sys
import typing

from figures import ROOT

SERVERS = ("holdfast-kv", "holdfast-kv-mod")
TABLE_3 = ("array", "queue", "heap", "stack", "tree", "graph")


@dataclasses.dataclass
class Size:
    name: str
    ops: int            # of the hash map of `make bench`; everything else is in proportion
    rounds: int
    quick: bool
    trees: int          # entries of each tree, and of the list, in Clobber's Fig. 6


SIZES = {size.name: size for size in (Size("smoke", 2000, 1, True, 400), Size("quick", 100_000, 1, True, 20_000),
                                      Size("whole", 1_000_000, 5, False, 1_000_000))}


@dataclasses.dataclass
class Study:
    name: str
    command: typing.Callable        # (size, build, out) to the arguments
    result: str = ""                # the file in `out` that it leaves; none: it prints JSON


def python(script, *arguments):
    return [sys.executable, "-B", ROOT / script, *arguments]


def bench(*only, more=lambda size: ()):
    """Experiments of bench/report/experiments.py."""
    return Study(f"bench-{only[0]}", lambda size, build, out: python(
        "bench/report/measure.py", "--build", build, "--out", out, "--rounds", size.rounds, "--ops", size.ops, "--no-plots",
        "--only", " ".join(only), *more(size)), "bench.json")


# The shortest first: a run that is stopped has most of the figures by then.
STUDIES = {study.name: study for study in (
    Study("classify", lambda size, build, out: [
        build / "bin/holdfast", "classify", ROOT / "tools/classify/test/table3.cpp", "--json",
        *(word for name in TABLE_3 for word in ("--class", name))]),
    Study("survey", lambda size, build, out: python("research/simpo_applications/survey.py", "--bin", build / "bin")),
    Study("justdo-recovery", lambda size, build, out: [
        build / "bin/bench_justdo_recovery", "--threads", 24, "--opens", 5, "--mib", 100 if size.quick else 10_000]),
    Study("slpmt", lambda size, build, out: python(
        "research/slpmt/study/report.py", "--study", build / "bin/slpmt_study", "--out", out), "slpmt.json"),
    Study("flushes", lambda size, build, out: [build / "bin/bench_flushes", "--passes", size.ops // 10]),
    Study("shadows", lambda size, build, out: [build / "bin/bench_shadows", "--elements", size.ops]),
    bench("growth"),
    Study("misses", lambda size, build, out: python("research/reproduce/misses.py", build, min(size.ops // 20, 50_000))),
    bench("parts", "counts"),
    Study("server", lambda size, build, out: python(
        "apps/kv/tests/throughput.py", *(build / "bin" / name for name in SERVERS), "--mode", "pmem", "--json", "--rounds", size.rounds,
        "--ops", size.ops // 10, "--sets", 0.95, 0.75, 0.25, 0.05)),
    Study("server-512", lambda size, build, out: python(        # memcached of MOD's Table 2
        "apps/kv/tests/throughput.py", *(build / "bin" / name for name in reversed(SERVERS)), "--mode", "pmem", "--json", "--rounds", size.rounds,
        "--ops", size.ops // 10, "--sets", 0.95, "--value-bytes", 512)),
    Study("server-mixes", lambda size, build, out: [
        build / "bin/bench_server_mixes", "--ops", size.ops // 5, "--keys", min(size.ops, 100_000), "--rounds", size.rounds]),
    *(Study(f"server-{build}", lambda size, at, out, build=build: [
        at / f"bin/bench_server_{build}", "--ops", size.ops, "--keys", min(size.ops, 100_000)]) for build in ("clobber", "clobber_unrefined")),
    bench("mod"),
    bench("justdo"),
    bench("throughput", more=lambda size: ("--tree-ops", size.trees)),
    Study("simpo", lambda size, build, out: python(
        "research/simpo_applications/report.py", "--bin", build / "bin", "--out", out, "--rounds", size.rounds, "--ssd-dir", build,
        *({"smoke": ["--quick"], "quick": ["--calls", 10_000]}.get(size.name, []))), "simpo.json"),
    Study("stamp", lambda size, build, out: python(
        "research/stamp/report.py", "--build", build, "--out", out, "--rounds", size.rounds,
        *(["--quick"] if size.quick else []), *(["--figures", 11, 12, 13] if size.name == "smoke" else [])), "stamp.json"),
    bench("restart"),
    bench("compile"),
)}
