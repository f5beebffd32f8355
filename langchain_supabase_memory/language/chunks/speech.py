"""What a user's message tells about how a conversation goes, with its places in the message's parts."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from langchain_core.messages import ToolMessage

from langchain_supabase_memory.language.extractive.profile.mask import MASK
from langchain_supabase_memory.language.messages import content
from langchain_supabase_memory.language.signals import (
    EARLIER,
    AskedText,
    SignalSpan,
    find_signals,
    first_quote,
    mask_foreign,
)
from langchain_supabase_memory.values import Signal

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from langchain_supabase_memory.language.chunks.units import StoredText, Unit


LONGEST: Final = 2000
"""The maximum number of characters whose tone is rated."""


@dataclass(frozen=True)
class Speech:
    """A user's message.

    Attributes:
        words: Its text, in which quoted, pasted and recalled text is masked.
        starts: Where each of its parts begins.
        signals: What its words tell.
    """

    words: str = field(repr=False)
    starts: tuple[int, ...]
    signals: tuple[SignalSpan, ...]

    @property
    def own_words(self) -> str:
        """The user's own words alone, on one line."""
        return " ".join(self.words.replace(MASK, " ").split())[:LONGEST]

    @classmethod
    def of(cls, text: str, parts: Sequence[str]) -> Speech:
        """Create one from a message's text and what it was split into.

        Args:
            text: The text.
            parts: Its parts, in order.
        """
        starts, at = [], 0
        for part in parts:
            at = text.index(part, at)
            starts.append(at)
            at += len(part)
        words = mask_foreign(text)
        return cls(words, tuple(starts), tuple(find_signals(words)))


class PartSignals(NamedTuple):
    """The signals of one part of a message.

    Attributes:
        bits: The signals, as bits.
        quotes: Where in the part the words of each are, in the order of the bits.
    """

    bits: int
    quotes: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class SpeechBefore:
    """What the next words of a user are compared with.

    Attributes:
        asked: Their newest questions, in order.
        tool_failed: Whether the last tool of the newest turn failed.
    """

    asked: Sequence[AskedText] = ()
    tool_failed: bool = False


def signals_of(
    units: Sequence[Unit],
    messages: Sequence[StoredText],
    before: SpeechBefore,
    vectors: Mapping[int, Sequence[Sequence[float]]],
) -> dict[int, dict[int, PartSignals]]:
    """Return the signals of units, by the sequence of the message and the index of the part.

    Args:
        units: Units of one conversation, in order.
        messages: All messages that they were made of, in order.
        before: What came before.
        vectors: The vectors of each unit's parts, by the sequence of its first message.
    """
    failed = _after_failures(messages, before.tool_failed)
    asked = deque(before.asked, maxlen=EARLIER)
    found: dict[int, dict[int, PartSignals]] = {}
    for unit in units:
        speech, sequence = unit.speech, unit.messages[0].sequence
        if speech is None:
            continue
        spans = list(speech.signals)
        if any(part.kind == "question" for part in unit.parts):
            embedded = vectors.get(sequence)
            text = AskedText(speech.words, embedded[0] if embedded else None, unit.speaker)
            again = next(filter(None, map(text.repeats, asked)), None)
            if again is not None:
                spans.append(SignalSpan(Signal.ASKED_AGAIN, *again))
            if unit.parts[0].kind == "question":
                asked.append(text)
        if sequence in failed and (place := first_quote(speech.words)) is not None:
            spans.append(SignalSpan(Signal.TOOL_FAILED, *place))
        if spans:
            found[sequence] = _by_part(speech, [len(part.text) for part in unit.parts], spans)
    return found


def _after_failures(messages: Sequence[StoredText], failed: bool) -> set[int]:
    """Return the sequences of the user's messages before which the last tool of the turn failed."""
    found: set[int] = set()
    if not failed and not any(isinstance(each.message, ToolMessage) for each in messages):
        return found
    for each in messages:
        if isinstance(each.message, ToolMessage):
            failed = each.message.status == "error"
        elif content.role(each.message) == "user" and content.is_conversation(each.message):
            if failed:
                found.add(each.sequence)
            failed = False
    return found


def _by_part(speech: Speech, lengths: Sequence[int], spans: Iterable[SignalSpan]) -> dict[int, PartSignals]:
    """Return the signals of each part; a quote that goes beyond its part is cut there."""
    made: dict[int, PartSignals] = {}
    for span in sorted(spans, key=lambda each: each.signal):
        part = max((at for at, start in enumerate(speech.starts) if start <= span.start), default=0)
        first = speech.starts[part]
        place = max(span.start - first, 0), min(span.end - first, lengths[part])
        bits, quotes = made.get(part, PartSignals(0, ()))
        made[part] = PartSignals(bits | span.signal, (*quotes, place))
    return made
