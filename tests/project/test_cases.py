"""A table of cases is one test, which runs all of them and names each that fails."""

from __future__ import annotations

import asyncio
import inspect
from typing import Any

import pytest

from tests.each_case import FailedCases, each_case


def test_every_case_runs_and_each_that_fails_is_named() -> None:
    seen = []

    @each_case(("one", "two"), [(1, 1), (1, 2), pytest.param(3, 4, id="the last")])
    def equal(one: int, two: int) -> None:
        seen.append((one, two))
        assert one == two

    with pytest.raises(FailedCases) as raised:
        equal()  # type: ignore[call-arg]
    assert seen == [(1, 1), (1, 2), (3, 4)]
    assert raised.value.message == "2 of 3 cases fail\n  1-2\n  the last"
    assert [each.__notes__ for each in raised.value.exceptions] == [["case: 1-2"], ["case: the last"]]


def test_a_case_that_calls_fail_is_one_that_fails() -> None:
    @each_case("value", ["a", "b"], ids=str.upper)
    def fails(value: str) -> None:
        if value == "b":
            pytest.fail(value)

    with pytest.raises(FailedCases, match="1 of 2 cases fail\n  B"):
        fails()  # type: ignore[call-arg]


def test_an_async_test_is_folded_too() -> None:
    @each_case("value", [1, 2], ids=range(2))
    async def odd(value: int) -> None:
        await asyncio.sleep(0)
        assert value % 2

    with pytest.raises(FailedCases, match="1 of 2 cases fail\n  1"):
        asyncio.run(odd())  # type: ignore[call-arg]


def test_tables_multiply_and_each_case_has_a_user_of_its_own() -> None:
    users = []

    @each_case("one", [1, 2])
    @each_case("two", "ab")
    def note(user_id: str, one: int, two: str) -> None:
        users.append(user_id)

    assert list(inspect.signature(note).parameters) == ["user_id"]
    note(user_id="maya")  # type: ignore[call-arg]
    assert users == ["maya-0-0", "maya-0-1", "maya-1-0", "maya-1-1"]


def refused(names: Any, table: Any) -> None:
    each_case(names, table)(lambda value: None)


def test_a_table_that_tests_nothing_is_refused() -> None:
    for names, table in [("value", []), ("other", [1]), ("value", [pytest.param(1, marks=pytest.mark.slow)])]:
        with pytest.raises(AssertionError):
            refused(names, table)
    with pytest.raises(ValueError, match="zip"):
        each_case(("value", "other"), [(1,)])
