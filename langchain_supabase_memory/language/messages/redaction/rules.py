"""Define redaction rules: a rule finds the spans of a text that must not be stored."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, Protocol, TypeAlias, runtime_checkable

from langchain_supabase_memory.errors import ConfigurationError

Span: TypeAlias = tuple[int, int]
"""A span of a text: the offsets of its first character and after its last."""

Check: TypeAlias = Callable[[re.Match[str]], bool]
"""Returns whether a match is valid, for example by its check digits."""

_NAME: Final = re.compile(r"[a-z][a-z0-9 _-]{0,39}")


@runtime_checkable
class RedactionRule(Protocol):
    r"""Finds one kind of secret or personal data. `pattern_rule` creates one; any object with these two members is one.

    A rule may also have `covers(key: str) -> bool`: whether everything under this mapping key is secret, such as a
    value under `password` in the arguments of a tool call. It may also have `is_secret(key: str, text: str) -> bool`:
    whether a text is secret if its key is ambiguous, such as a value under Docker's `auth`.

    A rule receives the text, and then copies of it if they differ: one with each character in its common form
    (Unicode's NFKC where that is one character; any decimal digit as 0 to 9, any dash as a hyphen, any space as a
    space); one that also omits invisible characters, such as a zero-width space, and has `@` for `\u0040`; and one that
    also has Latin letters for their look-alikes in other scripts. A match in any copy removes the corresponding part of
    the text itself. A rule also receives decoded base64 texts: if it finds anything in one, all of the base64 is
    removed.

    Attributes:
        name: The name in the mark: 1 to 40 lowercase letters, digits, spaces, hyphens and underscores, the first one a
            letter.
    """

    @property
    def name(self) -> str:
        """The name in the mark."""

    def spans(self, text: str) -> Iterable[Span]:
        """Return the spans of matches, in any order. The same text must always give the same spans.

        Args:
            text: A text or a copy of it. U+FFFC replaces every character of an existing mark.
        """


class NamedRule:
    """A rule that is shown by its name in the mark."""

    name: str

    def __repr__(self) -> str:
        """Return the name of the rule."""
        return f"<redaction rule {self.name!r}>"


class PatternRule(NamedRule):
    """A rule that uses regular expressions; see `pattern_rule`."""

    def __init__(self, name: str, patterns: Sequence[re.Pattern[str]], check: Check | None = None) -> None:
        self.name = checked_name(name)
        self._patterns = [(each, "value" if "value" in each.groupindex else 0) for each in patterns]
        self._check = check

    def spans(self, text: str) -> Iterator[Span]:
        """Yield the spans where an expression matches and the check passes."""
        for pattern, group in self._patterns:
            for match in pattern.finditer(text):
                if self._check is None or self._check(match):
                    yield match.span(group)


def pattern_rule(name: str, regex: str | re.Pattern[str], check: Check | None = None) -> RedactionRule:
    r"""Create a rule that finds matches of a regular expression.

    Args:
        name: The name in the mark: `pattern_rule("badge", r"B-\d{6}")` leaves `[redacted: badge]`.
        regex: The expression. If it has a group named `value`, only that group is removed. Bound its repetitions, since
            Python's engine backtracks.
        check: Returns whether a match is valid; by default all are.

    Raises:
        ConfigurationError: The name or the expression is not valid.
    """
    try:
        pattern = re.compile(regex)
    except (re.error, TypeError):
        raise ConfigurationError(
            f"The redaction rule {name!r} has no regular expression.", hint=r'Pass one, such as r"B-\d{6}".'
        ) from None
    if not isinstance(pattern.pattern, str):
        raise ConfigurationError(
            f"The redaction rule {name!r} has a bytes pattern.", hint=r'Pass a str pattern, such as r"B-\d{6}".'
        )
    return PatternRule(name, [pattern], check)


def checked_name(name: object) -> str:
    """Return the name of a rule if it can be part of a mark.

    Raises:
        ConfigurationError: It cannot.
    """
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ConfigurationError(
            "The name of a redaction rule must be lowercase words of at most 40 characters.",
            hint='Pass "badge number", for example.',
        )
    return name
