"""A language's words for references to a turn: its `references.toml`, merged with others into a lexicon.

These are its tables, all optional:

- `[positions]`: the turn that a word means. `1` is the first, `-1` the most recent, `-2` the one before that.
- `[numbers]`: the cardinal numbers in words, for "question four".
- `[digits]`: the `suffixes` and `prefixes` that make a figure a position: "2nd", "ika-2".
- `[times]`: adverbs of time with the position they mean: "earlier", "kanina".
- `[linker]`: how a language links a modifier to its noun, if it does: in Tagalog `after_vowel` is "ng", `after_n` is
  "g" and `word` is "na". In such a language a position without its linker modifies nothing, so any word may follow it.
- `[words]`: lists of words by kind; `KINDS` documents the kinds.

Words are in lowercase, and are compared without accents and apostrophes. A hyphen is optional: "pang-apat" also
matches "pangapat" and "pang apat".
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Final

from langchain_supabase_memory.language import lexicon as files
from langchain_supabase_memory.language.references.folding import fold

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

KINDS: Final = {
    # before a position
    "definite": "definite determiners: the, that, yung, ang",
    "oblique": "`definite` words that turn an `adverb` into an adverbial: sa (huli)",
    "pointer": "`definite` words that can precede a bare figure: yung (2)",
    "mine": "the user's: my, our, aking",
    "yours": "the assistant's: your, iyong",
    "others": "everybody else's: his, their, kanyang",
    "indefinite": "indefinite determiners: a, another, isang, may",
    "plural": "plural markers: mga",
    "modifier": "adjectives that may come between: very, actual, pinaka",
    # after it
    "turn": "nouns for a turn: question, answer, tanong, sagot",
    "turns": "their plurals",
    "one": "the pronoun that replaces a noun: one",
    "thing": "nouns that mean a turn if somebody said, asked or gave them here: thing, topic, bagay",
    "made": "parts of an answer, which are only found by their time: poem, recipe",
    "conversation": "nouns for the conversation: chat, usapan",
    "elsewhere": "places with other questions and answers: exam, meeting",
    "quarter": "`turn` words that up to four also mean quarters of a year: q(uestion)3, q(uarter)3",
    "initial": "letters that abbreviate a noun for a turn before a figure, and much else: a(nswer)3",
    "compound": "nouns that form a compound with a turn noun before them: answer *key*",
    "unit": "common words that take a position and are not turns: time, week, beses",
    # who
    "subject": "the user and the assistant, before their verb: I, you, we",
    "speaker": "the user and the assistant as agents, after their verb: ko, mo, natin",
    "actor": "the same where the verb focuses on the agent: ako, ka, tayo",
    "you": "the user and the assistant as addressees: you, me, sa iyo",
    "i": "`subject` words for the user: I",
    "ko": "`speaker` and `actor` words for the user: ko, ako",
    "third": "everybody else: he, they, niya, ni",
    "person": "words for who can hold a rank or a place in a queue: I, he, who, ako, siya",
    # verbs
    "said": "to say, in the past tense: said, mentioned, sinabi",
    "asked": "to ask or tell somebody, in the past tense: asked, told, tinanong",
    "gave": "to give or send, in the past tense: gave, wrote, binigay",
    "did_say": "to say, ask or give, with agent focus, in the past tense: nagtanong, sumagot",
    "base": "the same verbs in the form after 'did': ask, say",
    "ask": "to ask, when the user announces a question: (let me) ask",
    "did": "the auxiliary that makes `base` past tense: did",
    "understood": "to understand or like an utterance: understand, liked, naintindihan",
    "request": "requests to the assistant, and other actions on turns: repeat, compare, ulitin",
    "world": "actions on anything but turns: bought, watched, binili",
    "copula": "to be: is, was, ay",
    "was": "`copula` words in the past tense: was",
    "question": "question words: what, how, ano",
    "auxiliary": "do, have, hindi",
    "modal": "modals of future or hypothetical events: should, will, would",
    # place and time
    "before": "before, bago",
    "after": "after, kasunod ng",
    "that": "a pronoun for something mentioned: that, iyon",
    "this": "a pronoun for the current utterance: this, ito",
    "late_time": "adverbs of `times` only at the end of the phrase they modify: (as I said) before",
    "just": "just (said)",
    "just_said": "single words for just said: kakasabi",
    "ago": "(two questions) ago, nakaraan",
    "end": "the end to count from: (second to) last, (pangalawa sa) huli",
    "from": "words in between: (second) to (the last), (pangalawa) sa (huli)",
    "hour": "parts of the day: umaga",
    # particles
    "of": "prepositions before a whole or an owner: of, by, ng, ni",
    "place": "prepositions of place: in, on, from, sa",
    "in": "the `place` word that can also express manner: in (bullet points)",
    "to": "to",
    "toward": "words between a verb of saying and its addressee: to, with",
    "about": "words that introduce a subject: about, whether, tungkol",
    "dated": "prepositions of a date: on, by, until",
    "manner": "forms of an answer, after 'in': detail, Tagalog, bullet",
    "coordinator": "and, or, at, o",
    "like": "words of comparison: as, like, same as, gaya ng",
    "again": "requests for a repetition: again, repeat, ulit",
    "negation": "right before a reference that is not meant: not, hindi",
    "dismissal": "right before a reference that is only meant if no other is: skip, forget",
    "correction": "words that retract the text so far: I mean, este",
    "presenting": "words that introduce something new: here is, ito ang, may",
    "marker": "before a figure: number, no., bilang",
    "adverb": "positions that are also adverbs: (ask me) first",
    "limit": "after a noun, says that no more will follow: (last question) lang",
    "silent": "enclitics that change nothing, in any place: po, nga",
    "particle": "small words that may occur inside a phrase: nga, po, ulit",
    "vocative": "forms of address: sir, bro, ate",
    "attributive": "positions that need a noun: my *initial* question",
    "polite": "words that change nothing: please, po, ulit",
    "filler": "words around a reference that is the whole utterance: ok, hmm, eh",
    "function": "grammatical words without another kind. A word in no list counts as an ordinary noun or verb",
    "degree": "adverbs before an adjective: fully, most",
    "glued": "prefixes that Taglish attaches to English verbs: i-explain, na-mention",
    "idiom": "fixed expressions whose words count nothing: first of all, una sa lahat",
}
"""The kinds of words, each with its meaning and examples. A word may have several."""

LANGUAGES: Final = files.languages("references")
"""The default languages. Taglish is two of them combined."""

TABLES: Final[files.Tables] = {
    "positions": files.COUNTED,
    "numbers": files.COUNTED,
    "digits": ("suffixes", "prefixes"),
    "times": files.COUNTED,
    "linker": ("after_vowel", "after_n", "word"),
    "words": KINDS,
}
_WORD: Final = re.compile(r"[^\W_]+(?:'[^\W_]+)*")
_FIGURE: Final = re.compile(r"([0-9]{1,6})([^\W\d_]*)")
_RUN: Final = re.compile(r"(.)\1{2,}")


@dataclass(frozen=True, slots=True)
class WordEntry:
    """The entry of a word.

    Attributes:
        kinds: Its kinds, of `KINDS`.
        position: The turn that it means: positive from the oldest, negative from the newest.
        number: The cardinal number that it names.
        time: The position that it means as an adverb of time.
        linked: Whether it is linked to the word after it.
        loose: Whether, unlinked, it modifies nothing, so that any word may follow.
    """

    kinds: frozenset[str] = frozenset()
    position: int | None = None
    number: int | None = None
    time: int | None = None
    linked: bool = False
    loose: bool = False

    def __or__(self, other: WordEntry) -> WordEntry:
        """Merge two entries of a word from two files or tables."""
        return WordEntry(
            self.kinds | other.kinds,
            self.position if self.position is not None else other.position,
            self.number if self.number is not None else other.number,
            self.time if self.time is not None else other.time,
            self.linked or other.linked,
            self.loose or other.loose,
        )


UNKNOWN: Final = WordEntry()
_OWNER: Final = WordEntry(frozenset({"others"}))
_GLUED: Final = WordEntry(frozenset({"glued"}))
_INITIAL: Final = WordEntry(frozenset({"initial"}))
_POSSESSED: Final = frozenset({"turn", "one"})


@dataclass(slots=True)
class Word:
    """A word of a text, or several with one meaning.

    Attributes:
        text: The folded text.
        start: Its start in the folded text.
        end: Its end.
        gap: The text between it and the word before.
        broken: Whether `gap` ends a clause.
        entry: Its entry in the lexicon.
    """

    text: str
    start: int
    end: int
    gap: str
    broken: bool
    entry: WordEntry

    @property
    def kinds(self) -> frozenset[str]:
        """Its kinds."""
        return self.entry.kinds


# Characters that may separate two words of a clause. Any other - a comma, a bracket, an emoji - ends the clause.
_WITHIN: Final = re.compile(r"[ '\"*_~#\u201c\u201d\u00ab\u00bb-]*")


def _breaks(gap: str) -> bool:
    if gap in (" ", "", "-"):
        return False
    return _WITHIN.fullmatch(gap) is None or " -" in gap or "- " in gap


@dataclass(slots=True)
class ReferenceLexicon:
    """The merged entries of some languages."""

    entries: dict[str, WordEntry]
    phrases: dict[tuple[str, str], list[tuple[tuple[str, ...], WordEntry]]]
    suffixes: frozenset[str]
    prefixes: frozenset[str]

    def words(self, text: str) -> list[Word]:
        """Return the words of a folded text, with fixed expressions as single words."""
        found: list[Word] = []
        after = 0
        broken = False
        for match in _WORD.finditer(text):
            raw = match.group()
            gap = text[after : match.start()]
            after = match.end()
            plain = raw.replace("'", "") if "'" in raw else raw
            entry = self.entries.get(plain)
            if entry is not None and "elsewhere" in entry.kinds and "'" in raw:
                entry = _OWNER  # the exam's
            if entry is None:
                if glued := self._glued(raw):  # turn3
                    letters = len(raw.rstrip("0123456789"))
                    noun = Word(raw[:letters], match.start(), match.start() + letters, gap, _breaks(gap), glued)
                    found.append(noun)
                    plain = raw = raw[letters:]
                    gap = ""
                entry = self._analyzed(raw)
            broken = bool(found) and (broken or _breaks(gap))
            if "silent" in entry.kinds:
                if found and entry.linked:  # una pong tanong
                    found[-1].entry = replace(found[-1].entry, linked=True)
                continue
            found.append(Word(plain, after - len(raw), after, gap, broken, entry))
            broken = False
        return self._join_phrases(found)

    def _glued(self, raw: str) -> WordEntry | None:
        """Return the entry of a noun for a turn, or a number sign, with a figure attached."""
        letters = raw.rstrip("0123456789")
        if not 0 < len(letters) < len(raw):
            return None
        entry = self.entries.get(letters, UNKNOWN)
        if "initial" in entry.kinds:
            return _INITIAL
        return entry if entry.kinds & {"turn", "marker"} else None

    def _analyzed(self, raw: str) -> WordEntry:
        """Return the entry of a word that is not listed as written."""
        plain, _, rest = raw.partition("'")
        if figure := _FIGURE.fullmatch(plain):
            number = int(figure[1])
            if not figure[2]:
                return WordEntry(frozenset({"number"}), number=number)
            return WordEntry(position=number) if figure[2] in self.suffixes and number else UNKNOWN
        for prefix in self.prefixes:  # pang2, pangsecond
            if plain.startswith(prefix) and plain != prefix:
                counted = plain[len(prefix) :]
                figure = _FIGURE.fullmatch(counted)
                if figure and (not figure[2] or figure[2] in self.suffixes) and int(figure[1]):
                    return WordEntry(position=int(figure[1]))
                if position := self.entries.get(counted, UNKNOWN).position:
                    return WordEntry(position=position)
        if rest:  # una't, the teacher's
            entry = self.entries.get(plain, UNKNOWN)
            return _OWNER if rest == "s" and not entry.kinds & _POSSESSED and entry.position is None else entry
        if _RUN.search(plain):  # unaaa, pleeease
            once, twice = _RUN.sub(r"\1", plain), _RUN.sub(r"\1\1", plain)
            return (self.entries.get(once) if len(once) > 2 else None) or self.entries.get(twice, UNKNOWN)
        return UNKNOWN

    def _join_phrases(self, words: list[Word]) -> list[Word]:
        """Join words with a combined meaning: "first of all", "pang apat", "ika-4"."""
        joined: list[Word] = []
        at = 0
        while at < len(words):
            word = words[at]
            length, entry = self._longest(words, at)
            text = word.text if length == 1 else " ".join(each.text for each in words[at : at + length])
            joined.append(Word(text, word.start, words[at + length - 1].end, word.gap, word.broken, entry))
            at += length
        return joined

    def _longest(self, words: list[Word], index: int) -> tuple[int, WordEntry]:
        """Return the number of words from an index that have one meaning, and their entry."""
        word = words[index]
        if index + 1 == len(words) or words[index + 1].broken:
            return 1, word.entry
        after = words[index + 1]
        for rest, entry in self.phrases.get((word.text, after.text), ()):
            others, beyond = (
                words[index + 2 : index + 2 + len(rest)],
                words[index + 2 + len(rest) : index + 3 + len(rest)],
            )
            if tuple(each.text for each in others) != rest or any(each.broken for each in others):
                continue
            counts = "idiom" in entry.kinds and any(each.kinds & _POSSESSED and not each.broken for each in beyond)
            if not counts:  # this second; but: this second answer
                return len(rest) + 2, entry
        if word.text in self.prefixes and after.entry.number and after.text.isdigit():
            return 2, WordEntry(position=after.entry.number)  # pang-2
        if after.gap == "-":
            if whole := self.entries.get(word.text + after.text):
                return 2, whole  # ika-lawa, paki-ulit
            if "glued" in word.kinds:
                return 1, _GLUED
        return 1, word.entry


@files.load_once
def standard() -> ReferenceLexicon:
    """Return the lexicon of the package's languages."""
    return lexicon(LANGUAGES)


@cache
def lexicon(languages: tuple[str | Path, ...]) -> ReferenceLexicon:
    """Return the lexicon of some languages.

    Args:
        languages: Codes of the package's languages, such as `en` and `tl`, or paths of other files.

    Raises:
        ConfigurationError: A language does not exist, or its file is malformed.
    """
    read = [files.load("references", language, TABLES) for language in languages]
    known = files.merge_entries(entry for file in read for entry in _entries(file))
    suffixes = frozenset(each for file in read for each in file["digits"].get("suffixes", ()))
    prefixes = frozenset(each for file in read for each in file["digits"].get("prefixes", ()))
    return ReferenceLexicon(files.single_word(known), files.multi_word(known), suffixes, prefixes)


def _entries(file: files.File) -> Iterator[tuple[tuple[str, ...], WordEntry]]:
    """Yield every form of every word of a file, with its entry."""
    linker = file["linker"]
    loose = bool(linker)
    plain = [(text, WordEntry(position=int(key), loose=loose)) for key, text in files.table_words(file["positions"])]
    plain += [
        (text, WordEntry(frozenset({"number"}), number=int(key))) for key, text in files.table_words(file["numbers"])
    ]
    plain += [(text, WordEntry(frozenset({"time"}), time=int(key))) for key, text in files.table_words(file["times"])]
    plain += [(text, WordEntry(frozenset({kind}), loose=loose)) for kind, text in files.table_words(file["words"])]
    plain += [(text, WordEntry(frozenset({"linker"}))) for text in linker.get("word", ())]
    for text, entry in plain:
        for parts in _spellings(text):
            yield parts, entry
            if entry.position or entry.number or entry.kinds & _LINKED:
                yield from _tied(parts, entry, linker)


_LINKED: Final = frozenset({"speaker", "ko", "silent", "particle", "third", "actor", "end"})


def _tied(
    parts: tuple[str, ...], entry: WordEntry, linker: dict[str, list[str]]
) -> Iterator[tuple[tuple[str, ...], WordEntry]]:
    """Yield the linked forms of a word, if it has any."""
    last = parts[-1]
    after = "after_vowel" if last[-1] in "aeiou" else "after_n" if last[-1] == "n" else ""
    for ending in linker.get(after, ()):
        yield (*parts[:-1], last + ending), replace(entry, linked=True)


def _spellings(text: str) -> Iterable[tuple[str, ...]]:
    """Return the spellings of a word: its optional hyphens removed, and as spaces."""
    folded = fold(text).text.replace("'", "")
    return {tuple(_WORD.findall(folded.replace("-", mark))) for mark in ("", " ")}
