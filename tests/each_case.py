"""Run a table of cases as one test, which runs all of them and names each one that fails.

`pytest.mark.parametrize` makes one test of each case instead, for cases that need their own fixtures.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import wraps
from typing import Any, TypeVar

import pytest
from _pytest.mark.structures import ParameterSet

Test = TypeVar("Test", bound=Callable[..., Any])

_LONGEST_NAME = 200
"""In characters."""

FAILURES = (Exception, pytest.fail.Exception)


class FailedCases(BaseExceptionGroup[BaseException]):
    """The failures of a table, each with a note that names its case. pytest prints them all."""


def each_case(
    names: str | Sequence[str],
    table: Iterable[Any],
    *,
    ids: Iterable[Any] | Callable[[Any], str] | None = None,
) -> Callable[[Test], Test]:
    """Run a test once for each row of a table, as one test with one set of fixtures.

    A test with the fixture `user_id` gets another user in each case.

    Args:
        names: The arguments in a row, in the form of `pytest.mark.parametrize`.
        table: The rows; with one name, the values.
        ids: The name of each case in a failure; by default its values.

    Returns:
        A decorator; the decorated test only takes the fixtures.
    """
    arguments = [each.strip() for each in names.split(",")] if isinstance(names, str) else list(names)
    rows = list(_rows(arguments, list(table), ids))
    assert rows, "a table without a case tests nothing"

    def fold(test: Test) -> Test:
        signature = inspect.signature(test)
        missing = {*arguments} - signature.parameters.keys()
        assert not missing, f"{test.__name__} takes no {', '.join(missing)}"

        @wraps(test)
        def run(**fixtures: Any) -> None:
            failures: list[tuple[str, BaseException]] = []
            for number, (name, values) in enumerate(rows):
                try:
                    test(**_of_case(fixtures, number), **values)
                except FAILURES as failure:
                    failures.append((name, failure))
            _report(failures, len(rows))

        @wraps(test)
        async def arun(**fixtures: Any) -> None:
            failures: list[tuple[str, BaseException]] = []
            for number, (name, values) in enumerate(rows):
                try:
                    await test(**_of_case(fixtures, number), **values)
                except FAILURES as failure:
                    failures.append((name, failure))
            _report(failures, len(rows))

        folded: Any = arun if inspect.iscoroutinefunction(test) else run
        others = [each for name, each in signature.parameters.items() if name not in arguments]
        folded.__signature__ = signature.replace(parameters=others)
        result: Test = folded
        return result

    return fold


def _of_case(fixtures: dict[str, Any], number: int) -> dict[str, Any]:
    """Return the fixtures, with the user of a case."""
    return {name: f"{each}-{number}" if name == "user_id" else each for name, each in fixtures.items()}


def _rows(
    arguments: list[str], table: list[Any], ids: Iterable[Any] | Callable[[Any], str] | None
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the name of each case, and its arguments."""
    given = None if ids is None or callable(ids) else [str(each) for each in ids]
    assert given is None or len(given) == len(table), "each case has an id"
    for number, row in enumerate(table):
        assert not (isinstance(row, ParameterSet) and row.marks), "a case has no mark of its own"
        values = row.values if isinstance(row, ParameterSet) else row if len(arguments) > 1 else (row,)
        named = str(row.id) if isinstance(row, ParameterSet) and row.id is not None else None
        shown = named or (
            given[number] if given is not None else "-".join(map(ids if callable(ids) else _shown, values))
        )
        yield shown, dict(zip(arguments, values, strict=True))


def _shown(value: Any) -> str:
    text = str(getattr(value, "__name__", None) or repr(value))
    return text if len(text) <= _LONGEST_NAME else f"{text[:_LONGEST_NAME]}…"


def _report(failures: list[tuple[str, BaseException]], number: int) -> None:
    if failures:
        for name, failure in failures:
            failure.add_note(f"case: {name}")
        lines = [f"{len(failures)} of {number} cases fail", *(name for name, _ in failures)]
        raise FailedCases("\n  ".join(lines), [failure for _, failure in failures])
