"""Parse a message's own words into sentences and clauses, each with the marks that decide whether it counts."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from langchain_supabase_memory.language.extractive.phrases import FoundPhrase
from langchain_supabase_memory.language.extractive.profile.lexicon import profile_phrases
from langchain_supabase_memory.language.extractive.profile.mask import MASK
from langchain_supabase_memory.language.sentences import sentences
from langchain_supabase_memory.language.spelling import WORD, keys

if TYPE_CHECKING:
    from collections.abc import Iterator

_LONGEST: Final = 400  # characters; a longer sentence was pasted
_BREAK: Final = re.compile(rf"[,;:.!?()\u2014\u2026{MASK}](?!\S)|[,;?!()\u2014\u2026{MASK}]|[.:](?=\W)| [-\u2013] ")
_PERSONAL: Final = ("frames.", "marks.lasting")


@dataclass(slots=True)
class ParsedSentence:
    """A sentence with its words and phrases, without the words that `fills` lists.

    Attributes:
        text: The message, masked.
        words: The normalized words.
        starts: The offset of each.
        ends: The end offset of each.
        phrases: The phrases in it.
        starting: Those that begin at each word.
        clauses: The first word of each clause and the one after its last.
        kinds: The lists of which a phrase is in it.
        is_question: Whether it ends in a question mark.
    """

    text: str
    words: list[str]
    starts: list[int]
    ends: list[int]
    phrases: list[FoundPhrase] = field(default_factory=list)
    starting: dict[int, list[FoundPhrase]] = field(default_factory=dict)
    kinds: frozenset[str] = frozenset()
    clauses: list[tuple[int, int]] = field(default_factory=list)
    is_question: bool = False

    def has(self, kind: str, first: int = 0, end: int | None = None) -> bool:
        """Return whether a phrase of a list is between two words."""
        if kind not in self.kinds:
            return False
        end = len(self.words) if end is None else end
        return any(kind in each.kinds and first <= each.first and each.end <= end for each in self.phrases)

    def at(self, first: int, end: int, *kinds: str) -> FoundPhrase | None:
        """Return the longest phrase of some lists that begins at a word."""
        best: FoundPhrase | None = None
        for each in self.starting.get(first, ()):
            if each.end <= end and (best is None or each.end > best.end) and not each.kinds.isdisjoint(kinds):
                best = each
        return best

    def gap(self, at: int) -> str:
        """Return what is between a word and the one before, with the words that are passed over."""
        return self.text[self.ends[at - 1] : self.starts[at]] if 0 < at < len(self.words) else ""

    def slice(self, first: int, end: int) -> str:
        """Return the text from one word to before another."""
        return self.text[self.starts[first] : self.ends[end - 1]] if first < end else ""


def statements(text: str) -> Iterator[ParsedSentence]:
    """Yield the sentences that can tell something, up to one that begins a game or something pasted.

    Args:
        text: The own words of a message; see `own_words`.
    """
    for span in sentences(text):
        if span.end - span.start > _LONGEST:
            continue
        sentence = _sentence(text, span.start, span.end)
        if not sentence.words:
            continue
        if sentence.has("marks.pretends"):
            return
        sentence.clauses = _clauses(sentence)
        colon = _foreign_colon(sentence, span.end)
        if colon is not None:
            sentence.clauses = [each for each in sentence.clauses if each[1] < colon]
        if not (sentence.has("marks.reports") and colon is not None) and _counts(sentence):
            yield sentence
        if colon is not None or sentence.has("marks.pastes"):
            return


def _counts(sentence: ParsedSentence) -> bool:
    """Return whether a sentence is stated, in the speaker's own name."""
    if any(sentence.has(f"marks.{kind}") for kind in ("supposes", "reports", "pastes", "sarcastic", "denies")):
        return False
    return not (sentence.is_question and sentence.at(0, len(sentence.words), "marks.opens_question"))


def _sentence(text: str, start: int, end: int) -> ParsedSentence:
    known = profile_phrases()
    matches = list(WORD.finditer(text, start, end))
    words = keys([each.group() for each in matches])
    kept = [at for at, word in enumerate(words) if "words.fills" not in known.known.get(word, ())]
    sentence = ParsedSentence(
        text, [words[at] for at in kept], [matches[at].start() for at in kept], [matches[at].end() for at in kept]
    )
    sentence.phrases = _outermost(list(known.find(sentence.words)))
    for each in sentence.phrases:
        sentence.starting.setdefault(each.first, []).append(each)
    sentence.kinds = frozenset().union(*(each.kinds for each in sentence.phrases))
    sentence.is_question = text[start:end].rstrip("\"')\u201d ").endswith("?")
    return sentence


def _outermost(phrases: list[FoundPhrase]) -> list[FoundPhrase]:
    """Return the phrases whose marks count: none inside a longer mark or frame, as "now" in "from now on"."""
    kept: list[FoundPhrase] = []
    covered = 0  # the end of the longest mark or frame so far
    begins = -1
    for each in phrases:
        is_inside = each.end <= covered and (each.first > begins or each.end < covered)
        kinds = frozenset(filter(_stays, each.kinds)) if is_inside else each.kinds
        if kinds:
            kept.append(FoundPhrase(each.first, each.end, kinds))
        if each.end > covered and any(kind.startswith(("marks.", "frames.")) for kind in each.kinds):
            covered, begins = each.end, each.first
    return kept


def _stays(kind: str) -> bool:
    """Return whether a phrase of a list counts inside a longer one: "no longer" in "I no longer live in"."""
    return not kind.startswith("marks.") or kind == "marks.corrects"


def _clauses(sentence: ParsedSentence) -> list[tuple[int, int]]:
    """Return the clauses of a sentence."""
    count = len(sentence.words)
    starting: dict[int, set[str]] = {}
    inner: set[int] = set()
    for each in sentence.phrases:
        starting.setdefault(each.first, set()).update(each.kinds)
        if any(kind.startswith(("frames.", "marks.")) for kind in each.kinds):
            inner.update(range(each.first + 1, each.end))
    cuts = [0]
    for at in range(1, count):
        kinds = starting.get(at, set())
        is_joined = "words.joins" in kinds and any(
            kind.startswith(_PERSONAL) or kind == "words.persons" for kind in starting.get(at + 1, ())
        )
        splits = at not in inner and ("words.splits" in kinds or is_joined)
        if splits or _BREAK.search(sentence.gap(at)):
            cuts.append(at)
    return list(zip(cuts, [*cuts[1:], count], strict=True))


def _foreign_colon(sentence: ParsedSentence, end: int) -> int | None:
    """Return the first word after a colon that introduces somebody else's words, or text to be worked on."""
    for at in range(1, len(sentence.words) + 1):
        gap = sentence.gap(at) if at < len(sentence.words) else sentence.text[sentence.ends[-1] : end]
        if ":" not in gap or (gap == ":" and at < len(sentence.words)):  # not in "10:30"
            continue
        own = ("marks.introduces", "marks.insists", "marks.lasting", "marks.corrects")
        if not any(sentence.has(kind, 0, at) for kind in own) or sentence.has("marks.reports", 0, at):
            return at
    return None
