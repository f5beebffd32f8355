"""What a language knows about pointing at a turn: its `references.toml`, joined with others into a lexicon.

These are its tables, all optional:

- `[positions]`: which turn a word counts to. `1` is the first, `-1` the most recent, `-2` the one before that.
- `[numbers]`: the cardinal numbers in words, for "question four".
- `[digits]`: the `suffixes` and `prefixes` that make a figure a position: "2nd", "ika-2".
- `[times]`: adverbs that say when something was said, with the position they mean: "earlier", "kanina".
- `[linker]`: how a language ties a modifier to its noun, if it does: in Tagalog `after_vowel` is "ng", `after_n` is "g"
  and `word` is "na". In such a language a position without its linker modifies nothing, so any word may follow it.
- `[words]`: lists of words by the part they play; `KINDS` says what the parts are.

Words are written in lower case, and are compared without accents and apostrophes. A hyphen is optional: "pang-apat"
stands for "pangapat" and "pang apat", too.
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
    "definite": "determiners of what is known: the, that, yung, ang",
    "oblique": "of `definite`, what makes an adverb of an `adverb`: sa (huli)",
    "pointer": "of `definite`, those that can point at a bare figure: yung (2)",
    "mine": "the user's: my, our, aking",
    "yours": "the assistant's: your, iyong",
    "others": "everybody else's: his, their, kanyang",
    "indefinite": "determiners of what is new: a, another, isang, may",
    "plural": "marks of the plural: mga",
    "modifier": "adjectives that may stand between: very, actual, pinaka",
    # after it
    "turn": "nouns for a turn: question, answer, tanong, sagot",
    "turns": "their plurals",
    "one": "the pronoun that stands for a noun: one",
    "thing": "nouns that mean a turn if somebody said, asked or gave them here: thing, topic, bagay",
    "made": "what an answer may hold, which is found by its time only: poem, recipe",
    "conversation": "nouns for the conversation: chat, usapan",
    "elsewhere": "where there are other questions and answers: exam, meeting",
    "quarter": "of `turn`, those that up to four also count the quarters of a year: q(uestion)3, q(uarter)3",
    "initial": "letters that stand for a noun for a turn if a figure is glued to them, and for much else: a(nswer)3",
    "compound": "nouns that make another word of a turn noun before them: answer *key*",
    "unit": "common words that take a position and are no turn: time, week, beses",
    # who
    "subject": "the two who talk, before their verb: I, you, we",
    "speaker": "the two who talk, after their verb, as those who do it: ko, mo, natin",
    "actor": "the same where the verb is about the doer: ako, ka, tayo",
    "you": "the two as those who are told: you, me, sa iyo",
    "i": "of `subject`, the user: I",
    "ko": "of `speaker` and `actor`, the user: ko, ako",
    "third": "everybody else: he, they, niya, ni",
    "person": "who can hold a rank or a place in a queue: I, he, who, ako, siya",
    # verbs
    "said": "to say, of the past: said, mentioned, sinabi",
    "asked": "to ask or tell somebody, of the past: asked, told, tinanong",
    "gave": "to give or send, of the past: gave, wrote, binigay",
    "did_say": "to say, ask or give of the doer, of the past: nagtanong, sumagot",
    "base": "the same verbs in a form that needs 'did': ask, say",
    "ask": "to ask, as what the user announces: (let me) ask",
    "did": "the auxiliary that sets `base` in the past: did",
    "understood": "to get what was said: understand, liked, naintindihan",
    "request": "what the assistant is asked to do, and what else is done with turns: repeat, compare, ulitin",
    "world": "what is done with anything but turns: bought, watched, binili",
    "copula": "to be: is, was, ay",
    "was": "of `copula`, the past: was",
    "question": "question words: what, how, ano",
    "auxiliary": "do, have, hindi",
    "modal": "should, will, would: what has not happened",
    # place and time
    "before": "before, bago",
    "after": "after, kasunod ng",
    "that": "a pointer at what was spoken of: that, iyon",
    "this": "a pointer at what is being said: this, ito",
    "late_time": "adverbs of `times` only at the end of what they modify: (as I said) before",
    "just": "just (said)",
    "just_said": "just said, in one word: kakasabi",
    "ago": "(two questions) ago, nakaraan",
    "end": "the end that is counted from: (second to) last, (pangalawa sa) huli",
    "from": "what stands between: (second) to (the last), (pangalawa) sa (huli)",
    "hour": "parts of the day: umaga",
    # particles
    "of": "prepositions that tie to a whole or an owner: of, by, ng, ni",
    "place": "prepositions of place: in, on, from, sa",
    "in": "of `place`, the one that can also say how: in (bullet points)",
    "to": "to",
    "toward": "between a verb of saying and who is told: to, with",
    "about": "what opens a content: about, whether, tungkol",
    "dated": "prepositions of a date: on, by, until",
    "manner": "how to answer, after 'in': detail, Tagalog, bullet",
    "coordinator": "and, or, at, o",
    "like": "likeness: as, like, same as, gaya ng",
    "again": "what asks for the same once more: again, repeat, ulit",
    "negation": "right before what is not meant: not, hindi",
    "dismissal": "right before what is meant only if nothing else is: skip, forget",
    "correction": "takes back what was said so far: I mean, este",
    "presenting": "opens what is new: here is, ito ang, may",
    "marker": "before a figure: number, no., bilang",
    "adverb": "positions that are adverbs, too: (ask me) first",
    "limit": "after a noun, that it is the last one to come: (last question) lang",
    "silent": "enclitics that change nothing, wherever they stand: po, nga",
    "particle": "small words that may stand inside a phrase: nga, po, ulit",
    "vocative": "whom one talks to: sir, bro, ate",
    "attributive": "positions that need a noun: my *initial* question",
    "polite": "words that change nothing: please, po, ulit",
    "filler": "words around a reference that is all there is: ok, hmm, eh",
    "function": "words of grammar without a part here. A word in no list is taken for a noun or a verb of the world",
    "degree": "adverbs before an adjective: fully, most",
    "glued": "prefixes that Taglish glues to English verbs: i-explain, na-mention",
    "idiom": "fixed expressions, whose words count nothing: first of all, una sa lahat",
}
"""The parts that a word can play, each with its meaning and examples. A word may play several."""

LANGUAGES: Final = files.languages("references")
"""The languages looked for unless others are named. Taglish is two of them at once."""

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
    """What is known about a word.

    Attributes:
        kinds: The parts it can play, of `KINDS`.
        position: The turn it counts to: positive from the oldest, negative from the newest.
        number: The cardinal number it names.
        time: The position that it means as an adverb of time.
        linked: Whether it is tied to the word after it.
        loose: Whether, unlinked, it modifies nothing, so that any word may follow.
    """

    kinds: frozenset[str] = frozenset()
    position: int | None = None
    number: int | None = None
    time: int | None = None
    linked: bool = False
    loose: bool = False

    def __or__(self, other: WordEntry) -> WordEntry:
        """What two files, or two tables, know together."""
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
    """A word of a text, or several that mean one thing.

    Attributes:
        text: Its letters, as they are compared.
        start: Where it begins in the folded text.
        end: Where it ends.
        gap: What stands between it and the word before.
        broken: Whether `gap` ends a clause.
        entry: What is known about it.
    """

    text: str
    start: int
    end: int
    gap: str
    broken: bool
    entry: WordEntry

    @property
    def kinds(self) -> frozenset[str]:
        """The parts it can play."""
        return self.entry.kinds


# What may stand between two words of one clause. Anything else - a comma, a bracket, an emoji - ends the clause.
_WITHIN: Final = re.compile(r"[ '\"*_~#\u201c\u201d\u00ab\u00bb-]*")


def _breaks(gap: str) -> bool:
    if gap in (" ", "", "-"):
        return False
    return _WITHIN.fullmatch(gap) is None or " -" in gap or "- " in gap


@dataclass(slots=True)
class ReferenceLexicon:
    """Everything some languages know, ready to be looked up."""

    entries: dict[str, WordEntry]
    phrases: dict[tuple[str, str], list[tuple[tuple[str, ...], WordEntry]]]
    suffixes: frozenset[str]
    prefixes: frozenset[str]

    def words(self, text: str) -> list[Word]:
        """The words of a folded text, fixed expressions as one."""
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
        """A noun for a turn, or a number sign, that has its figure glued to it."""
        letters = raw.rstrip("0123456789")
        if not 0 < len(letters) < len(raw):
            return None
        entry = self.entries.get(letters, UNKNOWN)
        if "initial" in entry.kinds:
            return _INITIAL
        return entry if entry.kinds & {"turn", "marker"} else None

    def _analyzed(self, raw: str) -> WordEntry:
        """A word that is in no list as it stands."""
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
        """Words that mean something together become one: "first of all", "pang apat", "ika-4"."""
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
        """How many words from a place on mean one thing, and what is known about that."""
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
    """The lexicon of the languages that come with the package."""
    return lexicon(LANGUAGES)


@cache
def lexicon(languages: tuple[str | Path, ...]) -> ReferenceLexicon:
    """The lexicon of some languages.

    Args:
        languages: Codes of files that come with the package, such as `en` and `tl`, or paths of others.

    Raises:
        ConfigurationError: There is no such language, or its file is not as described above.
    """
    read = [files.load("references", language, TABLES) for language in languages]
    known = files.merge_entries(entry for file in read for entry in _entries(file))
    suffixes = frozenset(each for file in read for each in file["digits"].get("suffixes", ()))
    prefixes = frozenset(each for file in read for each in file["digits"].get("prefixes", ()))
    return ReferenceLexicon(files.single_word(known), files.multi_word(known), suffixes, prefixes)


def _entries(file: files.File) -> Iterator[tuple[tuple[str, ...], WordEntry]]:
    """Every form of every word of a file, with what the file knows about it."""
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
    """The forms of a word that is tied to the one after it, if it has any."""
    last = parts[-1]
    after = "after_vowel" if last[-1] in "aeiou" else "after_n" if last[-1] == "n" else ""
    for ending in linker.get(after, ()):
        yield (*parts[:-1], last + ending), replace(entry, linked=True)


def _spellings(text: str) -> Iterable[tuple[str, ...]]:
    """A word with its optional hyphens left out, and as spaces."""
    folded = fold(text).text.replace("'", "")
    return {tuple(_WORD.findall(folded.replace("-", mark))) for mark in ("", " ")}
