# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a figure of a paper is here: where its numbers come from, what is drawn of them, and what the paper says.

The lists of figures are clobber.py, justdo.py, mod.py, slpmt.py and simpo.py. `draw` makes a Drawn of what the figure's
studies said (studies.py).
"""
import dataclasses
import importlib.util
import pathlib
import statistics
import sys
import typing

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench" / "report"))

# How a figure's numbers came about. The last three have no numbers of their own.
KINDS = ("measured", "emulated", "counted", "simulated", "diagram", "setup", "not drawn")


@dataclasses.dataclass
class Panel:
    """Bars: series is {label: [a value or None per group]}."""
    title: str
    unit: str
    groups: list
    series: dict
    log: bool = False       # the unit's scale


@dataclasses.dataclass
class Claim:
    """A number of the paper's text, or its range, and ours; ours may be several, of the structures for instance."""
    what: str
    ours: typing.Any
    low: float
    high: float | None = None

    def values(self):
        found = self.ours if isinstance(self.ours, list) else [self.ours]
        return [value for value in found if value is not None]

    def met_by(self, value):
        """Within the paper's range, or a tenth beside it."""
        return self.low * 0.9 <= value <= (self.low if self.high is None else self.high) * 1.1

    def met(self):
        return bool(self.values()) and all(map(self.met_by, self.values()))


@dataclasses.dataclass
class Drawn:
    panels: list = dataclasses.field(default_factory=list)
    claims: list = dataclasses.field(default_factory=list)
    table: list = dataclasses.field(default_factory=list)      # of rows; the first is the head

    def empty(self):
        return not self.table and not any(value is not None for panel in self.panels for values in panel.series.values()
                                          for value in values)


@dataclasses.dataclass
class Figure:
    name: str           # as the paper has it: "Fig. 6"
    title: str
    kind: str
    why: str            # in what it differs, where a diagram's subject is, or why it is not drawn
    studies: tuple = ()
    draw: typing.Callable | None = None
    paper: str = ""     # filled by all_figures()

    @property
    def key(self):
        return f"{self.paper.lower()}-{self.name.lower().replace('.', '').replace(' ', '-')}"


def module(path):
    """A script of the tree as a module: several are called report.py."""
    place = ROOT / path
    found = importlib.util.spec_from_file_location(path.replace("/", "_").removesuffix(".py"), place)
    made = importlib.util.module_from_spec(found)
    found.loader.exec_module(made)
    return made


def mean(values):
    """Geometric."""
    found = [value for value in values if value]
    return statistics.geometric_mean(found) if found else None


def ratio(of, to):
    return of / to if of is not None and to else None


def percent_over(of, to):
    """By how many percent `of` is more than `to`."""
    return 100 * (of / to - 1) if of is not None and to else None


def all_figures():
    """In the papers' order."""
    import clobber  # noqa: PLC0415  these modules import this one
    import justdo  # noqa: PLC0415
    import mod  # noqa: PLC0415
    import simpo  # noqa: PLC0415
    import slpmt  # noqa: PLC0415
    for paper, of in (("Clobber", clobber), ("JUSTDO", justdo), ("MOD", mod), ("SLPMT", slpmt), ("SIMPO", simpo)):
        for figure in of.FIGURES:
            yield dataclasses.replace(figure, paper=paper)
