# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ordinary use, for mypy --strict: what it must accept without a cast."""
from __future__ import annotations

from collections.abc import MutableMapping, MutableSequence, MutableSet

import holdfast


def count(words: list[str], counts: MutableMapping[str | bytes, str | bytes]) -> None:
    for word in words:
        counts[word] = str(int(counts.get(word, "0")) + 1)


class Stock(holdfast.Object):
    pieces: dict[str, int]

    def __init__(self) -> None:
        self.pieces = {}

    @holdfast.deferrable
    def add(self, what: str) -> None:
        self.pieces[what] = self.pieces.get(what, 0) + 1

    @holdfast.instant
    def count(self) -> int:
        return len(self.pieces)


def main() -> None:
    with holdfast.open("words.hf", durability="pmem") as pool:
        counts = holdfast.Map(pool, when_durable="on_return")
        count(["a", "b"], counts)
        counts |= {"c": b"3"}
        before = counts.snapshot()
        words: MutableSet[str | bytes] = holdfast.Set(pool)
        words |= {"a"}
        lines: MutableSequence[str | bytes] = holdfast.Vector(pool)
        lines[1:3] = ["x", b"y"]
        first: str | bytes = lines[0]
        some: MutableSequence[str | bytes] = lines[:2]
        jobs = holdfast.Queue(pool)
        jobs.put(first)
        holdfast.Stack(pool).extend([*some, jobs.get(timeout=1.5)])
        ages: holdfast.Map[str, int] = holdfast.Map(pool, "ages")
        ages["Ada"] = ages.get("Ada", 35) + 1
        stock = Stock.open(pool, "stock")
        stock.add("tea")
        kinds: int = stock.count()
        stock.refresh()
        ages["kinds"] = kinds
        with pool.transaction():
            total: int = ages.add("sum", 1)
        tags: holdfast.SortedMap[tuple[str, int], list[str]] = holdfast.SortedMap(pool, "tags")
        with tags.edit(("Ada", total), []) as of_ada:
            of_ada.append("first")
        for (name, number), several in tags.range(("Ada", 1), ("Bob", 1), reverse=True):
            print(name.upper(), number + 1, several[0].upper(), tags.last()[1])
        pages: holdfast.Cache[str, bytes] = holdfast.Cache(pool, "pages", max_bytes=10_000, ttl=5)
        pages["/"] = pages.get("/", b"") + b"x"
        points = holdfast.Vector[tuple[float, float]](pool, "points")
        points.append((1.5, 2.5))
        x: float = points[0][0]
        print(x, {name: age + 1 for name, age in ages.snapshot().items()})
        print(before["a"], dict(before.items()), counts.pop("a", None))
    try:
        holdfast.Map("words.hf", create="never", max_bytes=1 << 30)
    except holdfast.Error as error:
        print(error.code, error.message)
