"""Each case of a test runs sync or async, in turn, and each color and each case is there."""

from __future__ import annotations

from itertools import product
from types import SimpleNamespace
from typing import Any

import pytest

from tests.colors import other_colors


def cases(name: str, *tables: list[str], mark: Any = None, slow: tuple[str, ...] = ()) -> list[Any]:
    """Return what pytest collects of a test with these tables."""

    def item(ids: tuple[str, ...]) -> Any:
        marks = {"both_colors": mark, "slow": "-".join(ids) in slow or None}
        spec = SimpleNamespace(_idlist=ids)
        return SimpleNamespace(nodeid=f"{name}[{'-'.join(ids)}]", callspec=spec, get_closest_marker=marks.get)

    return [item(ids) for ids in product(*tables)]


def runs(items: list[Any]) -> list[str]:
    left_out = [each.nodeid for each in other_colors(items)]
    return [each.nodeid.partition("[")[2][:-1] for each in items if each.nodeid not in left_out]


CALLERS = ["data_api-sync", "data_api-async", "direct-sync", "direct-async"]
PAIRS = (["data_api-sync", "direct-async"], ["data_api-async", "direct-sync"])


def test_a_caller_is_each_transport_in_another_color_and_tests_take_both_pairs() -> None:
    taken = [runs(cases(f"tests/a/test_b.py::test_{number}", CALLERS)) for number in range(100)]
    assert all(each in PAIRS for each in taken)
    assert 35 < taken.count(PAIRS[0]) < 65
    assert taken == [runs(cases(f"tests/a/test_b.py::test_{number}", CALLERS)) for number in range(100)]


def test_each_row_of_each_table_runs_in_both_colors_where_there_are_several() -> None:
    ways = ["middleware-sync", "middleware-async", "nodes-sync", "nodes-async", "load-sync", "load-async"]
    taken = runs(cases("test", ["[0]", "[1, 2]", "[3]"], ways, ["none", "saved"]))
    assert len(taken) == 18
    assert len({each.replace("-async", "-sync") for each in taken}) == 18
    for part in ("[0]-", "[1, 2]-", "[3]-", "middleware", "nodes", "load", "none", "saved"):
        assert {"-async" in each for each in taken if part in each} == {True, False}, part


def test_what_has_no_other_color_is_not_left_out() -> None:
    assert runs(cases("test", ["sync", "async"])) == ["sync", "async"]
    assert runs(cases("test", ["data_api-async", "direct-sync"])) == ["data_api-async", "direct-sync"]
    assert runs(cases("test", ["a-sync", "b-async", "c"], ["1", "2"])) == [
        "a-sync-1", "a-sync-2", "b-async-1", "b-async-2", "c-1", "c-2",
    ]  # fmt: skip
    two = ["sync-sync", "sync-async", "async-sync", "async-async"]
    assert runs(cases("test", ["sync", "async"], ["sync", "async"])) == two
    fast = [each for each in runs(cases("test", CALLERS, slow=("direct-async", "data_api-async"))) if "sync" in each]
    assert {"data_api-sync", "direct-sync"} <= {*fast}, "what is slow does not take the place of what is not"


def test_a_mark_keeps_all_and_says_why() -> None:
    assert runs(cases("test", CALLERS, mark=pytest.mark.both_colors("rights").mark)) == CALLERS
    with pytest.raises(AssertionError, match="both_colors wants a reason"):
        runs(cases("test", CALLERS, mark=pytest.mark.both_colors.mark))
