"""Limit tool results to a number of characters: cut text has a marker, and omitted passages are counted."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from langchain_supabase_memory.errors import ConfigurationError
from langchain_supabase_memory.language.messages import fence

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime, tzinfo

CHARACTERS: Final = 4_000
"""The default maximum number of characters of one result."""

MIN_CHARACTERS: Final = 1_000
"""The minimum limit: a lower one would leave no room for text inside the fence."""

_NOTE: Final = 240
"""Characters reserved for the note on omitted passages."""

_WORTH_A_CUT: Final = 300


@dataclass(frozen=True)
class Passage:
    """One text in a result.

    Attributes:
        tag: Its tag name.
        text: Its text.
        attributes: Its message range, date and speaker. They are short.
        source: Its source, without the text, for the artifact of the tool message.
    """

    tag: str
    text: str = field(repr=False)
    attributes: Mapping[str, str | int] = field(default_factory=dict)
    source: Mapping[str, Any] = field(default_factory=dict)

    def element(self, text: str | None = None) -> str:
        """Format the passage as a fenced element, with its full text or the given text."""
        return fence.element(self.tag, self.text if text is None else text, **self.attributes)


@dataclass(frozen=True)
class FittedPassages:
    """Passages that fit the limit.

    Attributes:
        elements: The formatted passages.
        full_count: How many are shown in full.
        cut: How many characters of the next one are shown; 0 if none are.
    """

    elements: list[str]
    full_count: int
    cut: int = 0

    @property
    def shown_count(self) -> int:
        """How many are shown, including one that is cut."""
        return self.full_count + (self.cut > 0)


def check_limit(characters: int) -> int:
    """Return the limit of a result, if it is valid.

    Raises:
        ConfigurationError: It is not valid.
    """
    if isinstance(characters, bool) or not isinstance(characters, int) or characters < MIN_CHARACTERS:
        raise ConfigurationError(
            f"characters must be a whole number from {MIN_CHARACTERS:,}.", hint=f"{CHARACTERS:,} will do."
        )
    return characters


def fit_passages(passages: Sequence[Passage], characters: int, *notes: str) -> FittedPassages:
    """Take passages in order while they fit; the first one that does not fit is cut if enough room is left.

    Args:
        passages: The passages.
        characters: The maximum number of characters of the result.
        notes: Notes to add to the result.
    """
    left = characters - _NOTE - len(wrap([], *notes))
    elements: list[str] = []
    for passage in passages:
        element = passage.element()
        if len(element) + 1 <= left:
            elements.append(element)
            left -= len(element) + 1
            continue
        if not elements or left >= _WORTH_A_CUT:
            beginning = _beginning(passage, left)
            if beginning:
                shown = f"{beginning}\n[… {len(passage.text) - len(beginning):,} characters more are left out …]"
                return FittedPassages([*elements, passage.element(shown)], len(elements), len(beginning))
        break
    return FittedPassages(elements, len(elements))


def wrap(elements: Sequence[str], *notes: str) -> str:
    """Join elements and notes into one fenced text."""
    return fence.fenced([*elements, *(fence.element("note", note) for note in notes if note)])


def note(text: str) -> str:
    """Format a note of our own without passages. Its fence tag identifies it, so it is not indexed."""
    return f"<{fence.TAG}>\n{fence.element('note', text)}\n</{fence.TAG}>"


def shorten(text: str, characters: int) -> str:
    """Return the text, or its beginning and end with a marker between them if it is too long."""
    if len(text) <= characters:
        return text
    mark = f"\n[… {len(text) - characters:,} characters are left out …]\n"
    first = characters * 2 // 3
    return f"{text[:first]}{mark}{text[len(text) - characters + first :]}"


def sequence_range(first: int, last: int) -> str:
    """Format a range of messages, such as `4` or `4-9`."""
    return str(first) if first == last else f"{first}-{last}"


def date_of(time: datetime, zone: tzinfo) -> str:
    """Format a time in the user's time zone, with its offset."""
    return time.astimezone(zone).isoformat(" ", "minutes")


def name(text: str) -> str:
    """Format a name on one line, at most 64 characters."""
    return " ".join(text.split())[:64]


def _beginning(passage: Passage, room: int) -> str:
    """Return the longest beginning of a passage that fits with its marker after escaping."""
    room -= len(passage.element("")) + len(f"\n[… {len(passage.text):,} characters more are left out …]\n") + 1
    shown = bisect_right(range(len(passage.text)), room, key=lambda length: len(fence.escaped(passage.text[:length])))
    return passage.text[: max(shown - 1, 0)]
