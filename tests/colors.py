"""Run each case of a test sync or async, in turn, instead of both.

An async method has the text of its sync twin, which `tools/handles.py` writes. So a test whose cases differ in anything
else, such as the transport, runs each of them once: the first sync, the next async. A test without other cases runs
both, and so does one with the mark `both_colors`, which gives its reason.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from hashlib import sha256
from typing import Final, NamedTuple

import pytest

_COLORED: Final = re.compile(r"(?:(?P<kind>.*)-)?(?P<color>a?sync)")


class _Case(NamedTuple):
    """One case of a test: `place` says where it stands in each of its tables, without its color."""

    item: pytest.Item
    color: str
    place: tuple[int, ...]


def other_colors(items: Iterable[pytest.Item]) -> Iterator[pytest.Item]:
    """Yield the items that are left out, because the same case runs in the other color.

    Which color a case has depends on its place and on the name of its test alone, so that a failure repeats.
    """
    tests: defaultdict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        if getattr(item, "callspec", None) is not None:
            tests[item.nodeid.partition("[")[0]].append(item)
    for name, of_one in tests.items():
        if (mark := of_one[0].get_closest_marker("both_colors")) is not None:
            assert mark.args, f"{name}: both_colors wants a reason"
            continue
        cases = list(_cases(of_one))
        colors: defaultdict[tuple[int, ...], set[str]] = defaultdict(set)
        for case in cases:
            colors[case.place].add(case.color)
        if len(colors) == 1:
            continue
        start = sha256(name.encode()).digest()[0]
        for case in cases:
            wanted = ("sync", "async")[(start + sum(case.place)) % 2]
            if len(colors[case.place]) == 2 and case.color != wanted:
                yield case.item


def _cases(items: list[pytest.Item]) -> Iterator[_Case]:
    """Yield the cases that have exactly one parameter with a color, such as `sync` or `direct-sync`."""
    tables: defaultdict[int, dict[str, int]] = defaultdict(dict)
    for item in items:
        ids: list[str] = item.callspec._idlist  # type: ignore[attr-defined]
        found = [match for each in ids if (match := _COLORED.fullmatch(each))]
        if len(found) == 1:
            kinds = ((each, found[0]["kind"] or "")[each == found[0].string] for each in ids)
            is_slow = str(item.get_closest_marker("slow") is not None)
            parts = enumerate((*kinds, is_slow))
            place = tuple(tables[number].setdefault(part, len(tables[number])) for number, part in parts)
            yield _Case(item, found[0]["color"], place)
