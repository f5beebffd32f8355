"""What somebody expected an answer to know: how it is searched for, and whether a text holds it. Pure."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Final

from langchain_supabase_memory.errors import InvalidInputError
from langchain_supabase_memory.language.extractive.stems import stems_of
from langchain_supabase_memory.language.sentences import sentences
from langchain_supabase_memory.language.shared_words import shared_word_ratios
from langchain_supabase_memory.language.spelling import DIGIT, WORD, compose, keys
from langchain_supabase_memory.operations.recall.exact_search import LONGEST, TEXTS
from langchain_supabase_memory.operations.summaries import shorten

if TYPE_CHECKING:
    from collections.abc import Iterator

HELD_RATIO: Final = 0.6
"""A text holds what was expected if it has at least this share of its content words."""

CODE_HELD_RATIO: Final = 0.4
"""A text that has every code needs this share of the rest with it."""

EXCERPT: Final = 200
"""The maximum number of characters of an excerpt."""

_CODE_WEIGHT: Final = 2
_BEGINNING: Final = 5  # letters of a stem, as in `language.shared_words`
_MARKS: Final = ".,;:!?\"'()[]{}<>“”‘’«»¿¡…"


@dataclass(frozen=True)
class ExpectedWords:
    """The words that somebody expected an answer to know.

    Attributes:
        text: The words: a fact, a code, or a question about it; 1 to 1,000 characters.

    Raises:
        InvalidInputError: It is not a string, is blank, or is too long.
    """

    text: str = field(repr=False)

    def __post_init__(self) -> None:
        if not isinstance(self.text, str) or not self.text.strip() or len(self.text) > LONGEST:
            raise InvalidInputError(
                f"expected must be a text of 1 to {LONGEST:,} characters.",
                hint='Pass a fact or a code in a few words, such as "hazelnut allergy".',
            )

    @cached_property
    def search_texts(self) -> list[str]:
        """What an exact search looks for: codes as they are, and the beginnings of the content words."""
        wanted = list(dict.fromkeys([*self._codes, *self._beginnings]))
        return wanted[:TEXTS] or [self._folded]

    @cached_property
    def rarest_text(self) -> str:
        """The text that says most of what is expected: a code, else the longest word."""
        return max(self.search_texts, key=lambda text: (DIGIT.search(text) is not None, len(text)))

    def ratio(self, text: str) -> float:
        """Return how much of the words a text holds, from 0 to 1; a code counts as much as two words.

        Args:
            text: The text.
        """
        folded = _fold(text)
        if self._folded in folded:
            return 1.0
        words = shared_word_ratios(self._plain, [text])[0] if self._plain.strip() else 0.0
        codes, beginnings = _CODE_WEIGHT * len(self._codes), len(self._beginnings)
        share = _CODE_WEIGHT * sum(code in folded for code in self._codes) + words * beginnings
        return share / ((codes + beginnings) or 1)

    def is_in(self, text: str) -> bool:
        """Return whether a text holds the words, in these or other forms; a code has to be there as it is."""
        folded = _fold(text)
        if not all(code in folded for code in self._codes):
            return False
        return self.ratio(text) >= (CODE_HELD_RATIO if self._codes else HELD_RATIO)

    def excerpt(self, text: str) -> str:
        """Return the sentence of a text that holds most of the words, shortened; its beginning if none does."""
        spans = [text[span[0] : span[1]].strip() for span in sentences(text)] or [text]
        best = max(spans, key=self.ratio)
        return shorten(" ".join(best.split()), EXCERPT)

    @cached_property
    def _folded(self) -> str:
        return _fold(self.text).strip(f"{_MARKS} ") or _fold(self.text).strip()

    @cached_property
    def _codes(self) -> list[str]:
        """Numbers and codes, such as `e-47`."""
        return [code for token in _fold(self.text).split() if DIGIT.search(token) and (code := token.strip(_MARKS))]

    @cached_property
    def _plain(self) -> str:
        """The words without the codes."""
        return " ".join(token for token in self.text.split() if not DIGIT.search(token))

    @cached_property
    def _beginnings(self) -> list[str]:
        return list(dict.fromkeys(self._stem_beginnings()))

    def _stem_beginnings(self) -> Iterator[str]:
        for word in WORD.findall(compose(self._plain)):
            normalized = keys([word])
            if not stems_of(normalized):
                continue
            stem = stems_of(normalized)[0][:_BEGINNING]
            is_beginning = len(stem) > 2 and normalized[0].startswith(stem) and len(normalized[0]) == len(word)
            yield _fold(word[: len(stem)] if is_beginning and word.isascii() else word)


def _fold(text: str) -> str:
    return " ".join(unicodedata.normalize("NFC", text).casefold().split())
