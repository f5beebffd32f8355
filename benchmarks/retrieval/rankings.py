"""The ranking in a few lines of numpy: the reference for this package's SQL, and the steps that led to it.

    score = .5 words + .7 meaning + .3 speaker + .4 date + .2 kind of answer - .1 is itself a question

- words: BM25 over a turn's own lexemes and, at a half and a quarter, those of the turns one and two away in the same
  session; divided by its maximum.
- meaning: .4 of the cosine of the turn's own text with the question without the speakers' names, and .6 of the mean of
  that cosine over the turns within two; scaled from 0 to 1.
- the cues are 0 or 1, and 0 if the question names nothing.

The weights are round and were chosen on one half of LoCoMo, where they are flat: .4 or .6 for the words makes no
significant difference; without the cues r@4000c is 4 points lower. k1, b and the idf are the usual ones.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from benchmarks.retrieval.data import Conversation, Turn
    from benchmarks.retrieval.embedder import MiniLM
    from benchmarks.retrieval.postgres import Lexemes, Postgres

Scores = NDArray[np.float64]
"""One row for each question, one column for each turn."""

_NEAR: Final = (1.0, 0.5, 0.25)
_MONTHS: Final = (
    "January", "February", "March", "April", "May", "June",
    "July", "August", "September", "October", "November", "December",
)  # fmt: skip
_MONTH: Final = re.compile(rf"\b({'|'.join(_MONTHS)})\b")
_YEAR: Final = re.compile(r"\b((?:19|20)\d\d)\b")
_DAY: Final = re.compile(
    rf"\b(\d{{1,2}})(?:st|nd|rd|th)?,? +(?:of )?(?:{'|'.join(_MONTHS)})\b"
    rf"|\b(?:{'|'.join(_MONTHS)}) +(\d{{1,2}})(?:st|nd|rd|th)?\b"
)
_TIME: Final = re.compile(
    rf"\b(?:{'|'.join(_MONTHS)}|(?:mon|tues|wednes|thurs|fri|satur|sun)day|yesterday|today|tonight|tomorrow|ago"
    r"|week|weekend|month|year|(?:19|20)\d\d)s?\b",
    re.IGNORECASE,
)
# Without "one", which is mostly a pronoun.
_NUMBER: Final = re.compile(
    r"\d|\b(?:two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|dozen|once|twice|hundred|thousand|couple"
    r"|several)\b",
    re.IGNORECASE,
)
_ASKS_TIME: Final = re.compile(r"\s*when\b", re.IGNORECASE)
_ASKS_NUMBER: Final = re.compile(r"\bhow (?:many|much)\b", re.IGNORECASE)
_CAPTION: Final = re.compile(r"\s*\[[^\]]*\]$")


@dataclass
class Study:
    """The parts of the score for all questions about one conversation."""

    conversation: Conversation
    postgres: Postgres
    embedder: MiniLM

    @property
    def questions(self) -> list[str]:
        return [question.text for question in self.conversation.questions]

    @property
    def bare(self) -> list[str]:
        """The texts of the turns."""
        return [turn.text for turn in self.conversation.turns]

    @property
    def dated(self) -> list[str]:
        """The turns with their date and speaker."""
        return [dated(turn) for turn in self.conversation.turns]

    @cached_property
    def nameless(self) -> list[str]:
        """The questions without the speakers' names, which identify the speaker, not the content."""
        return [without(text, words(self.conversation.speakers)) for text in self.questions]

    def near(self, weights: Sequence[float]) -> NDArray[np.float64]:
        """Return the weight of each turn (a column) for each (a row), by their distance in the same session."""
        sessions = np.array([turn.session for turn in self.conversation.turns])
        places = np.arange(len(sessions))
        distance = np.abs(places[:, None] - places[None])
        table = np.array([*weights, 0.0])[np.minimum(distance, len(weights))]
        return np.where(sessions[:, None] == sessions[None], table, 0.0)

    def bm25(
        self, near: Sequence[float] = _NEAR, texts: Sequence[str] | None = None, *, k1: float = 0.9, b: float = 0.4
    ) -> Scores:
        """Return BM25 over Postgres' lexemes, including those of nearby turns."""
        lexemes = self.postgres.lexemes(self.bare if texts is None else texts)
        return bm25(self.postgres.lexemes(self.questions), lexemes, self.near(near), k1=k1, b=b)

    def cosines(self, questions: Sequence[str] | None = None, texts: Sequence[str] | None = None) -> Scores:
        """Return the cosine of each turn with each question."""
        asked = self.embedder.matrix(self.questions if questions is None else questions)
        return np.asarray(asked @ self.embedder.matrix(self.bare if texts is None else texts).T, np.float64)

    def around(self, cosines: Scores) -> Scores:
        """Return the mean of the cosines of a turn and those within two of it."""
        near = self.near([1.0] * len(_NEAR))
        return np.asarray(cosines @ (near / near.sum(1, keepdims=True)).T)

    def words(self) -> Scores:
        return over_most(self.bm25())

    def meaning(self, own: float = 0.4) -> Scores:
        cosines = self.cosines(self.nameless)
        return from_0_to_1(own * cosines + (1 - own) * self.around(cosines))

    def cues(self) -> Scores:
        turns = self.conversation.turns
        named = [_named(text, turns) for text in self.questions]
        asked = np.array([bool(turn.text) and _CAPTION.sub("", turn.text).rstrip().endswith("?") for turn in turns])
        speaker, date, kind = (np.array([row[part] for row in named], np.float64) for part in range(3))
        return 0.3 * speaker + 0.4 * date + 0.2 * kind - 0.1 * asked

    def recommended(self) -> Scores:
        """Return the score that this package's SQL should rank by."""
        return 0.5 * self.words() + 0.7 * self.meaning() + self.cues()


STEPS: Final[dict[str, Callable[[Study], Scores]]] = {
    "reference: words, of a turn and those nearby": Study.words,
    "reference: words + meaning": lambda study: 0.5 * study.words() + 0.7 * study.meaning(),
    "reference: words + cues, no embedder": lambda study: 0.8 * study.words() + study.cues(),
    "reference: words + meaning + cues": Study.recommended,
}
"""The steps, each with one addition."""


def dated(turn: Turn) -> str:
    """Return a turn with its date and speaker, a common form for embedding."""
    return f"[{turn.at.day} {turn.at:%B %Y}] {turn.speaker}: {turn.text}"


def words(names: Iterable[str]) -> set[str]:
    """Return the words of names: a question may use only a first name."""
    return {word for name in names for word in name.split() if len(word) > 2}


def without(text: str, names: Iterable[str]) -> str:
    """Return a text without names and their possessive endings; the text itself if no word would be left."""
    names = set(names)
    if not names:
        return text
    left = re.sub(rf"\b(?:{'|'.join(map(re.escape, sorted(names)))})\b(?:['’]s\b)?", " ", text)
    left = re.sub(r"\s+([?.,!;:])", r"\1", re.sub(r"\s+", " ", left)).strip()
    return left if re.search(r"\w", left) else text


def bm25(
    questions: Sequence[Lexemes],
    texts: Sequence[Lexemes],
    near: NDArray[np.float64] | None = None,
    *,
    k1: float = 0.9,
    b: float = 0.4,
) -> Scores:
    """Return Okapi BM25 (Robertson and Zaragoza 2009), with each lexeme of a question counted once.

    Args:
        questions: The lexemes of each question.
        texts: The lexemes of each text.
        near: The weight of each text's words (a column) for each (a row); by default only its own count. Document
            frequencies and lengths include the nearby texts.
        k1: How fast repetitions of a word saturate.
        b: How much long texts are penalized.
    """
    columns = {lexeme: number for number, lexeme in enumerate(sorted({each for text in texts for each in text}))}
    counts = np.zeros((len(texts), len(columns)))
    for row, text in enumerate(texts):
        for lexeme, count in text.items():
            counts[row, columns[lexeme]] = count
    if near is not None:
        counts = near @ counts
    spread = (counts > 0).sum(0)
    idf = np.log(1 + (len(texts) - spread + 0.5) / (spread + 0.5))
    lengths = counts.sum(1, keepdims=True)
    weighed = idf * counts * (k1 + 1) / (counts + k1 * (1 - b + b * lengths / max(float(lengths.mean()), 1.0)))
    asked = np.zeros((len(questions), len(columns)))
    for row, question in enumerate(questions):
        asked[row, [columns[lexeme] for lexeme in question if lexeme in columns]] = 1
    return np.asarray(asked @ weighed.T)


def over_most(scores: Scores) -> Scores:
    """Divide each row by its maximum."""
    return np.asarray(scores / np.maximum(scores.max(1, keepdims=True), 1e-9))


def from_0_to_1(scores: Scores) -> Scores:
    """Scale each row from 0 to 1."""
    least = scores.min(1, keepdims=True)
    return np.asarray((scores - least) / np.maximum(scores.max(1, keepdims=True) - least, 1e-9))


def _named(question: str, turns: Sequence[Turn]) -> tuple[list[bool], list[bool], list[bool]]:
    """Return for each turn whether the question names its speaker, its date, and whether it has the answer's kind."""
    said = set(re.findall(r"\w+", question))
    speaker = [bool(words([turn.speaker]) & said) for turn in turns]
    months, years = set(_MONTH.findall(question)), {int(year) for year in _YEAR.findall(question)}
    days = {int(first or second) for first, second in _DAY.findall(question)}
    date = [
        bool(months or years or days)
        and (not months or _MONTHS[turn.at.month - 1] in months)
        and (not years or turn.at.year in years)
        and (not days or turn.at.day in days)
        for turn in turns
    ]
    wanted = _TIME if _ASKS_TIME.match(question) else _NUMBER if _ASKS_NUMBER.search(question) else None
    return speaker, date, [wanted is not None and wanted.search(turn.text) is not None for turn in turns]
