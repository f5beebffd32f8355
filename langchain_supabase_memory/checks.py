"""Check arguments where they are passed: the error names the wrong type and what to pass instead, never the content."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from datetime import timedelta
from difflib import get_close_matches
from typing import Any, Final
from uuid import UUID

from langchain_supabase_memory.errors import ConfigurationError, InvalidInputError, SupabaseMemoryError

_KINDS: Final[dict[type, str]] = {str: "a text", bool: "a truth value", int: "a number", float: "a number"}


def type_name(value: object) -> str:
    """Describe the type of a value in a few words, without its content."""
    if value is None:
        return "None"
    if isinstance(value, type):
        return f"the class {value.__name__}"
    if inspect.iscoroutine(value):
        return "a coroutine"
    if inspect.isroutine(value):
        return "a function"
    return _KINDS.get(type(value)) or _article(type(value).__name__)


def wrong_type(
    name: str, expected: str, value: object, hint: str, error: type[SupabaseMemoryError] = ConfigurationError
) -> SupabaseMemoryError:
    """Return the error for an argument of the wrong type.

    Args:
        name: The argument's name.
        expected: The expected type, with its article.
        value: The value passed.
        hint: What to do next.
        error: The error class.
    """
    if inspect.isawaitable(value):
        hint = f"Await it first. {hint}"
    elif isinstance(value, type):
        hint = f"Pass an object of the class: {value.__name__}(...). {hint}"
    return error(f"{name} must be {expected}, not {type_name(value)}.", hint=hint)


def require_type(name: str, value: object, expected: type, example: str, *, optional: bool = False) -> None:
    """Check that a value is an instance of a class.

    Args:
        name: The argument's name.
        value: The value passed.
        expected: The class.
        example: What to pass, as code.
        optional: Whether `None` is allowed.

    Raises:
        ConfigurationError: The value is not an instance.
    """
    if not isinstance(value, expected) and not (optional and value is None):
        raise wrong_type(name, _article(expected.__name__), value, f"Pass {example}.")


def number(
    name: str, value: object, *, minimum: float = 0, above: bool = True, below: float | None = None,
    integer: bool = False, optional: bool = True, example: object = 20,
) -> None:  # fmt: skip
    """Check that a value is a number within bounds; booleans and strings are rejected.

    Args:
        name: The argument's name.
        value: The value passed.
        minimum: The lower bound.
        above: Whether the lower bound is exclusive.
        below: The exclusive upper bound.
        integer: Whether it must be a whole number.
        optional: Whether `None` is allowed.
        example: A valid number, for the hint.

    Raises:
        ConfigurationError: The value is not such a number.
    """
    if optional and value is None:
        return
    kinds = (int,) if integer else (int, float)
    is_number = isinstance(value, kinds) and not isinstance(value, bool)
    if is_number and (value > minimum if above else value >= minimum) and (below is None or value < below):  # type: ignore[operator]
        return
    wanted = f"a {'whole ' if integer else ''}number {'above' if above else 'from'} {minimum:g}"
    wanted += "" if below is None else f", below {below:g}"
    got = "" if is_number else f", not {type_name(value)}"
    if isinstance(value, timedelta):
        example = f"{example!r}, without timedelta"
    raise ConfigurationError(f"{name} must be {wanted}{got}.", hint=f"Pass {name}={example}, for example.")


def positive_duration(name: str, value: object, *, optional: bool = True, example: str = "timedelta(hours=24)") -> None:
    """Check that a value is a timedelta above zero.

    Args:
        name: The argument's name.
        value: The value passed.
        optional: Whether `None` is allowed.
        example: What to pass, as code.

    Raises:
        ConfigurationError: The value is not a positive timedelta.
    """
    if (optional and value is None) or (isinstance(value, timedelta) and value > timedelta()):
        return
    got = "" if isinstance(value, timedelta) else f", not {type_name(value)}"
    raise ConfigurationError(
        f"{name} must be a timedelta above zero{got}.", hint=f"Pass {name}={example}, for example."
    )


def choice(
    name: str,
    value: object,
    choices: Iterable[str],
    *,
    optional: bool = False,
    more: str = "",
    error: type[SupabaseMemoryError] = ConfigurationError,
) -> None:
    """Check that a value is one of a set of strings.

    Args:
        name: The argument's name.
        value: The value passed.
        choices: The allowed strings.
        optional: Whether `None` is allowed.
        more: What else may be passed, for the hint.
        error: The error class.

    Raises:
        ConfigurationError: The value is not one of the choices; another class if `error` names one.
    """
    words = list(choices)
    if (optional and value is None) or (isinstance(value, str) and value in words):
        return
    near = get_close_matches(value, words, 1) if isinstance(value, str) else []
    *rest, last = [*(f'"{word}"' for word in words), *([more] if more else [])]
    hint = f'Did you mean "{near[0]}"? ' if near else ""
    raise error(f"{name} is none of the choices.", hint=f"{hint}Pass {', '.join(rest)} or {last}.")


def known_names(name: str, values: object, choices: Iterable[str]) -> list[str]:
    """Check a list of names, and return it.

    Args:
        name: The argument's name.
        values: The value passed.
        choices: The allowed names.

    Raises:
        InvalidInputError: It is no list, such as one name alone, or has a name that is none of the choices.
    """
    allowed = list(choices)
    hint = f"Pass some of {', '.join(allowed)}."
    names = as_list(name, values, "a list of names", hint)
    for each in names:
        if not isinstance(each, str):
            raise wrong_type(f"A name of {name}", "a text", each, hint, InvalidInputError)
        if each not in allowed:
            raise InvalidInputError(f"{name} has an unknown name, {each[:40]!r}.", hint=hint)
    return names


def as_list(name: str, values: object, expected: str, hint: str) -> list[Any]:
    """Check that a value is a list or another collection, and return it as a list.

    Args:
        name: The argument's name.
        values: The value passed.
        expected: What it must be, with its article, such as "a list of ids".
        hint: What to pass.

    Raises:
        InvalidInputError: It is not, such as one text alone.
    """
    if isinstance(values, (str, bytes, Mapping)) or not isinstance(values, Iterable):
        raise wrong_type(name, expected, values, hint, InvalidInputError)
    return list(values)


def as_texts(name: str, values: object, expected: str, hint: str) -> list[str]:
    """Check that a value is a list of texts, and return it; arguments and errors as for `as_list`."""
    checked = as_list(name, values, expected, hint)
    for each in checked:
        if not isinstance(each, str):
            raise wrong_type(f"Each of {name}", "a text", each, hint, InvalidInputError)
    return checked


def as_uuid(name: str, value: object) -> str:
    """Return the id of an item, a chunk or a topic as text.

    Args:
        name: The argument's name, for the error message.
        value: The id: a `UUID`, or its text.

    Raises:
        InvalidInputError: `value` is neither.
    """
    if isinstance(value, UUID):
        return str(value)
    if isinstance(value, str):
        try:
            return str(UUID(value))
        except ValueError:
            pass
    got = "" if isinstance(value, str) else f", not {type_name(value)}"
    raise InvalidInputError(
        f"{name} must be an id as the memory makes them{got}.", hint="Pass what a list returned, or its id."
    )


def boolean(name: str, value: object) -> None:
    """Check that a value is `True` or `False`.

    Raises:
        ConfigurationError: The value is not a boolean.
    """
    if not isinstance(value, bool):
        raise wrong_type(name, "True or False", value, f"Pass {name}=True or {name}=False.")


def function(name: str, value: object, example: str, *, optional: bool = True) -> None:
    """Check that a value is callable.

    Raises:
        ConfigurationError: The value is not callable.
    """
    if not callable(value) and not (optional and value is None):
        raise wrong_type(name, "a function", value, f"Pass {example}.")


def refuse_unknown(
    kind: str,
    arguments: Mapping[str, Any],
    names: Iterable[str],
    error: type[SupabaseMemoryError] = InvalidInputError,
) -> None:
    """Reject unknown keyword arguments.

    Args:
        kind: What the arguments belong to.
        arguments: The arguments.
        names: The known names.
        error: The error class.

    Raises:
        InvalidInputError: An argument is unknown; another class if `error` names one.
    """
    listed = list(names)
    for name in arguments:
        if name not in listed:
            near = get_close_matches(name, listed, 1)
            hint = f"Did you mean {near[0]}?" if near else f"There are {', '.join(listed)}."
            raise error(f"{kind} has no argument {name}.", hint=hint)


def _article(name: str) -> str:
    return f"{'an' if name[:1] in 'AEIOaeio' else 'a'} {name}"
