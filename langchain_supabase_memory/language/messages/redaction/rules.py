"""A rule says where in a text something stands that is not to be stored."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, Protocol, TypeAlias, runtime_checkable

from langchain_supabase_memory.errors import ConfigurationError

Span: TypeAlias = tuple[int, int]
"""Where something stands in a text: the places of its first character, and after its last."""

Check: TypeAlias = Callable[[re.Match[str]], bool]
"""Whether a match is really meant, such as by its check digits."""

_NAME: Final = re.compile(r"[a-z][a-z0-9 _-]{0,39}")


@runtime_checkable
class RedactionRule(Protocol):
    r"""Finds one kind of secret or personal data. `pattern_rule` makes one; any object with these two is one.

    A rule may have a third, `covers(key: str) -> bool`: whether everything that stands under this key of a mapping is
    meant, such as what is under `password` in the arguments of a tool call. And a fourth,
    `holds(key: str, text: str) -> bool`: whether a text under a key is meant where the key alone does not tell, such as
    what is under Docker's `auth`.

    What a rule is shown is the text, and then copies of it, if they differ: one with each character in its common form
    (Unicode's NFKC where that is one character; any decimal digit as 0 to 9, any dash as a hyphen, any space as a
    space); one that is also without what is not seen, such as a zero-width space, and has `@` for `\u0040`; and one
    that also has Latin letters for those of other scripts that read like them. What stands there in the text itself
    goes, whichever of them it was found in. A rule is also shown what a text in base64 says: if it finds anything in
    that, all of the base64 goes.

    Attributes:
        name: What the mark says in its place: 1 to 40 lower case letters, digits, spaces, hyphens and underscores, the
            first one a letter.
    """

    @property
    def name(self) -> str:
        """What the mark says."""

    def spans(self, text: str) -> Iterable[Span]:
        """Where it stands in a text, in any order. The same text must always give the same.

        Args:
            text: A text or a copy of it. U+FFFC stands for every character of a mark that is there already.
        """


class PatternRule:
    """A rule made of regular expressions; see `pattern_rule`."""

    def __init__(
        self,
        name: str,
        patterns: Sequence[re.Pattern[str]],
        check: Check | None = None,
        keys: re.Pattern[str] | None = None,
    ) -> None:
        self._name = checked_name(name)
        self._patterns = [(each, "value" if "value" in each.groupindex else 0) for each in patterns]
        self._check = check
        self._keys = keys

    @property
    def name(self) -> str:
        """What the mark says."""
        return self._name

    def spans(self, text: str) -> Iterator[Span]:
        """Where one of the expressions matches and the check agrees."""
        for pattern, group in self._patterns:
            for match in pattern.finditer(text):
                if self._check is None or self._check(match):
                    yield match.span(group)

    def covers(self, key: str) -> bool:
        """Whether everything under a key of a mapping is meant."""
        return self._keys is not None and self._keys.fullmatch(key) is not None

    def __repr__(self) -> str:
        """The name alone."""
        return f"<redaction rule {self._name!r}>"


def pattern_rule(name: str, regex: str | re.Pattern[str], check: Check | None = None) -> RedactionRule:
    r"""A rule that finds what a regular expression matches.

    Args:
        name: What the mark says: `pattern_rule("badge", r"B-\d{6}")` leaves `[redacted: badge]`.
        regex: The expression. If it has a group named `value`, that alone is taken out. Keep it bounded: Python's
            engine goes back over what it has matched.
        check: Says of each match whether it is meant; all are, by default.

    Raises:
        ConfigurationError: The name or the expression is none.
    """
    try:
        pattern = re.compile(regex)
    except (re.error, TypeError):
        raise ConfigurationError(
            f"The redaction rule {name!r} has no regular expression.", hint=r'Pass one, such as r"B-\d{6}".'
        ) from None
    if not isinstance(pattern.pattern, str):
        raise ConfigurationError(
            f"The redaction rule {name!r} has an expression for bytes.", hint=r'Pass a text, such as r"B-\d{6}".'
        )
    return PatternRule(name, [pattern], check)


def checked_name(name: object) -> str:
    """The name of a rule, if it can stand in a mark.

    Raises:
        ConfigurationError: It cannot.
    """
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ConfigurationError(
            "The name of a redaction rule must be a word or two in lower case, at most 40 characters.",
            hint='Pass "badge number", for example.',
        )
    return name
