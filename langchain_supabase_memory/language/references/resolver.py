"""Finds the turn that a user's words point at, by a small grammar over words; no model, no database, no clock.

An utterance is folded and cut into words, each with the parts it can play (see `language`). Every word that counts - a
position, a number, an adverb of time - is then read with its neighbors by one of these rules:

- `ordinal`: determiner, position, and nothing that the position could modify: "the second", "yung pangalawa nga".
- `ordinal_one`, `ordinal_noun`: the same with "one" or a noun for a turn: "the first one", "ikatlong tanong".
- `recency`, `recency_one`, `recency_noun`: the same with the last position: "the last one", "yung kanina".
- `from_end`, `from_end_one`, `from_end_noun`: counted from the end: "second to last", "pangalawa sa huli".
- `number`: a noun for a turn or a number sign, and a number: "turn 3", "question number four", "#2", "Q5". Its first
  letter counts quarters up to four ("go back to Q3"), unless something is asked ("what did I ask in Q3?"), and "A3"
  is paper unless it is asked for again.
- `bare_number`: figures that are the whole utterance: "2 please".
- `ago`: "two questions ago".
- `said`: one of the two who talk said or asked something, and when: "what you said earlier", "sabi mo kanina".
- `time`: an adverb of time that is the whole utterance, or is likened to: "kanina?", "same as before".
- `just_said`: "what you just said", "kakasabi mo lang".
- `relative`: before or after another: "the one before that" and "the one before" (before the last one that the
  utterance speaks of; if it speaks of none, two back), "the question after the first".

What decides is the same in every language: a position before a noun of the world counts that noun, not turns ("the
second largest city"); what is new is not pointed at ("a second question", "my last question is why"); what others said,
or what was said elsewhere, is no turn ("the first question in the exam", "tanong ng teacher ko kanina"); a rank is held
by persons ("ako ang una"); an adverb beside a verb orders deeds ("ask me first"); a number with a sign is below zero
and counts nothing ("turn -1"), while a hyphen that ties it to a word ("turn-1") and a dash between words ("turn - 1")
are no signs.

Where an utterance points more than once, the reference with a noun wins over one without, any of these over an adverb
of time, and then the first; "I mean" and "este" take back what stands before them, and "not" what follows it.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from langchain_supabase_memory.errors import InvalidInputError
from langchain_supabase_memory.language.references.clause import AROUND, NOUNS, SPOKEN, CountedNoun, Determiner
from langchain_supabase_memory.language.references.folding import fold
from langchain_supabase_memory.language.references.lexicon import LANGUAGES, lexicon, standard
from langchain_supabase_memory.language.references.surroundings import Surroundings

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

_ANCHOR_WORDS: Final = frozenset({"late_time", "before", "just", "just_said"})
_MAX_ANCHOR_WORDS: Final = 32
"""The most words that count, of one utterance, that are read: more than that is no address, but work for nothing."""
_MOST_WORDS: Final = 24
"""The most words of an utterance that may be nothing but a reference and what is polite."""
_QUARTERS: Final = 4
_GREATEST: Final = 999
"""The greatest number that figures alone can mean a turn by."""


@dataclass(frozen=True, slots=True)
class Match:
    """Words that point at a turn.

    Attributes:
        ordinal: The turn counted from the oldest that is kept, from 1; `None` if it is counted from the newest.
        from_end: The turn counted from the newest, from 1; `None` if it is counted from the oldest.
        span: Where the words stand in the text: the first character, and one past the last.
        rule: The name of the rule that matched.
    """

    ordinal: int | None
    from_end: int | None
    span: tuple[int, int]
    rule: str


def find_reference(text: str, languages: str | Path | Iterable[str | Path] = LANGUAGES) -> Match | None:
    """Find the words that point at a turn.

    Args:
        text: What the user says; any string. Of one longer than 1,000 characters the first and the last 500 are read.
        languages: Codes of languages that come with the package, or paths of language files; one or several.

    Returns:
        What was found; `None` if nothing points at a turn.

    Raises:
        InvalidInputError: `text` is not a string.
        ConfigurationError: A language file cannot be read.
    """
    if not isinstance(text, str):
        raise InvalidInputError(f"text must be a string, not {type(text).__name__}.", hint="Pass the user's words.")
    folded = fold(text)
    named = (languages,) if isinstance(languages, str | Path) else tuple(languages)
    words = (standard() if named == LANGUAGES else lexicon(named)).words(folded.text)
    found = _Resolver(words, folded.text).best()
    if found is None:
        return None
    start, end = words[found.first].start, words[found.last].end
    if start and folded.text[start - 1] == "#":
        start -= 1
    span = (folded.origin[start], folded.origin[end - 1] + 1)
    counted = found.position
    return Match(counted if counted > 0 else None, -counted if counted < 0 else None, span, found.rule)


def turn_number(match: Match, turns: Sequence[int]) -> int | None:
    """The turn that a match means, among those that exist.

    Positions and numbers count the turns that are kept, whatever their own numbers are. A turn that was summarized is
    kept, so compaction changes no reference. Once a limit has dropped the oldest turns, "the first one" is the oldest
    that is left and "turn 3" the third that is left, as it is where turns are numbered anew; references from the end
    mean the same as before. The turn that is being said is not among `turns`: it is what points.

    Args:
        match: What was found.
        turns: The numbers of the turns that are kept, oldest first.

    Returns:
        One of `turns`; `None` if there are not so many.
    """
    if match.ordinal is not None:
        return turns[match.ordinal - 1] if match.ordinal <= len(turns) else None
    if match.from_end is not None:
        return turns[-match.from_end] if match.from_end <= len(turns) else None
    return None


class _Candidate(NamedTuple):
    """A reference: the turn it counts to, its first and last word, the rule, and how strongly it binds."""

    position: int
    first: int
    last: int
    rule: str
    weight: int


class _Resolver(Surroundings):
    """One utterance, read by the rules."""

    _mentioned: int | None = None
    """What the last reference so far counts to, whether it is meant or not."""

    def best(self) -> _Candidate | None:
        """The reference that wins, if there is one."""
        kept: list[_Candidate] = []
        taken_back: list[_Candidate] = []
        dismissed: list[_Candidate] = []
        hearts = 0
        for at, word in enumerate(self.words):
            entry = word.entry
            if "correction" in entry.kinds:
                kept, taken_back = [], kept or taken_back
            counts = entry.position is not None or entry.number or entry.time is not None or entry.kinds & _ANCHOR_WORDS
            if not counts or hearts == _MAX_ANCHOR_WORDS or self._signed_figure(at):
                continue
            hearts += 1
            for each in self._candidate_at(at):
                self._mentioned = each.position
                if self._before(each.first, "dismissal"):
                    dismissed.append(each)
                elif not self._before(each.first, "negation"):
                    kept.append(each)
        return min(kept or taken_back or dismissed, key=lambda each: (-each.weight, each.first), default=None)

    def _candidate_at(self, index: int) -> Iterator[_Candidate]:
        """The references that the word at a place is the heart of."""
        entry = self.words[index].entry
        if entry.position is not None and (made := self._phrase(index)):
            yield made
        if entry.number and (made := self._number(index)):
            yield made
        if (entry.time is not None or "late_time" in entry.kinds) and (made := self._time(index)):
            yield made
        if "before" in entry.kinds and (made := self._before_that(index)):
            yield made
        if "just_said" in entry.kinds and (made := self._just_said_turn(index)):
            yield made
        if "just" in entry.kinds and (made := self._last_answer(index)):
            yield made

    # -- a position and what it counts

    def _phrase(self, index: int) -> _Candidate | None:
        """A determiner, a position, and what it counts."""
        entry = self.words[index].entry
        before = self._determiner(index)
        if entry.position is None or before.kind in ("indefinite", "others", "plural"):
            return None
        position, end = entry.position, index
        if position > 1 and (last := self._end(index + 1)):
            position, end = -position, last
        linked = self.words[end].entry.linked
        head = CountedNoun("turn", end + 1, end) if before.noun else self._head(end + 1, linked=linked)
        if head is None:
            return None
        start, rule = before.start, "ordinal" if position > 0 else "recency" if position == -1 else "from_end"
        if shift := self._shift(start):
            step, start = shift
            position, rule = position + step, "relative"
            after = self._skip(head.after)
            bounded = self._stops(after) or (before.kind != "none" and self._cannot_be_counted(after))
            if position == 0 or (head.kind == "none" and not bounded):
                return None
        elif not self._points(index, end, before, head, position):
            return None
        fits = (
            not self._is_elsewhere
            and self._tail(head.after, head.kind, governed=before.kind == "yours" or self._governed(start))
            and self._stands(start, before, head, position)
            and not (head.kind in ("none", "one") and self._was_listed_before(start))
            and not (head.kind != "none" and self._opens(start, before, head))
        )
        if not fits:
            return None
        named = head.kind not in ("none", "one") and rule != "relative"
        if rule != "relative" and head.kind != "none":
            rule += "_noun" if named else "_one"
        return _Candidate(position, start, head.last, rule, 3 if named else 2)

    def _points(self, index: int, end: int, before: Determiner, head: CountedNoun, position: int) -> bool:
        """Whether determiner, position and noun together point at what is there already."""
        if head.kind == "turn":
            deed = before.kind == "none" and self._is(index, "adverb") and self._is(head.last, "base")
            return not (deed and self._next(head.after, "definite", "mine", "yours", "you"))  # first answer my question
        if head.kind == "one":
            if before.kind == "mine":
                asked = any("question" in each.kinds for each in self.words[: before.start])
                return asked or self._governed(before.start) or not self._is_of_the_world
            return before.kind != "none" or self._stops(head.after) or not self._unknown(head.after)
        if head.kind == "made" and position != -1:
            return False  # the second recipe need not be in the second turn
        if (
            head.kind == "thing"
            and position == -1
            and self._stops(self._skip(head.after))
            and self._governed(before.start)
        ):
            return True  # say the last thing again
        if head.kind != "none":
            return "yours" in (before.kind, head.owner) or self._begins_telling(head.after, head.kind)
        if before.kind == "none":
            told = self._is_sentence(index, end) or self._in_order(index) or self._equated(index, end)
            return told and self.words[index].entry.time is None
        return before.kind != "mine" and self._points_bare(index, before, head)

    def _points_bare(self, index: int, before: Determiner, head: CountedNoun) -> bool:
        """Whether a determiner and a position without a noun point: "the second", "yung una"."""
        word, start = self.words[index], before.start
        asked = self._governed(start)
        if "attributive" in word.kinds:
            return self._stops(head.after) and asked and word.entry.time is not None  # explain the above
        if word.text[0].isdigit() and not self._plain(start):
            return False  # she arrives the 5th
        if not word.entry.loose and self._follows(start) and self._unknown(start - 1):
            return False  # Henry the eighth
        if "adverb" in word.kinds and self._before(index, "oblique") and not (asked and self._plain(start)):
            return False  # sa huli nanalo siya
        if self._stops(head.after):
            return True
        if before.kind == "yours" or self._is(head.after, "hour"):
            return False
        if word.entry.loose and (word.entry.time is None or self._is(head.after, "request")):
            return True
        asks = self._before(start, "auxiliary", "modal") and self._is(head.after, "request", "base")
        return asks or self._cannot_be_counted(head.after)  # how does the third compare

    def _is_sentence(self, index: int, end: int) -> bool:
        """Whether a position without a determiner is all of a sentence: "second, please", "ulitin mo pangalawa"."""
        adverb = self._is(index, "adverb")
        places = range(len(self.words)) if adverb else self._sentence(index)
        if len(places) > _MOST_WORDS:
            return False
        for place in places:
            kinds = self.words[place].kinds
            if index <= place <= end or (kinds & AROUND and not kinds & {"person", "third"}):
                continue
            if adverb or place > end or self._unknown(place) or kinds & NOUNS:
                return False
            if kinds & {"person", "third", "world", "indefinite", "idiom", "copula"} and "question" not in kinds:
                return False
        return True

    def _equated(self, index: int, end: int) -> bool:
        """Whether a position is said to be what is looked for: "pangalawa yung gusto ko"."""
        if not self.words[index].entry.loose or self._is(index, "adverb"):
            return False
        after = self._skip(end + 1)
        known = not any(self._unknown(each) for each in self._sentence(index))
        return known and self._next(after, "definite") and self._next(after + 1, "request")

    def _in_order(self, index: int) -> bool:
        """Whether a position says when something was said here: "what did I ask first", "what I last said"."""
        verb = index - 1
        if self._before(index, "subject") and self._next(index + 1, "base", *SPOKEN):
            verb = index + 1
        elif self._before(index, "you", "speaker"):
            verb = index - 2
        if not self._is(verb, "base", *SPOKEN) or not (verb > index or self._stops(self._skip(index + 1))):
            return False
        start = self._speaks(verb, index)
        if start is None or not self._follows(start):
            return False
        if self._is(start - 1, "question", "one", "turn", "that"):
            return True
        if self._is(verb + 1, "speaker") and self._is(start - 1, "definite"):
            return True  # yung tinanong ko last
        return self._is(start - 1, "did") and self._before(start - 1, "question")

    def _shift(self, start: int) -> tuple[int, int] | None:
        """How far from a reference, and from which place on, another is counted: "the one before the last"."""
        for kind, step in (("before", -1), ("after", 1)):
            if not self._before(start, kind):
                continue
            noun = start - 2
            if not self._follows(start - 1):  # "bago yung huli", and nothing else
                around = AROUND | {"definite", kind}
                alone = all(each.kinds & around or each.entry.position for each in self.words)
                return (step, start - 1) if alone else None
            if self._is(noun, "turn", "one"):
                other = self._determiner(noun)
                return (step, other.start) if other.kind not in ("indefinite", "others") else None
            if self._is(noun, "definite", "speaker", "base", *SPOKEN):
                return step, noun
        return None

    # -- numbers

    def _number(self, index: int) -> _Candidate | None:
        """A number with a noun for a turn or a number sign, or alone."""
        words, word = self.words, self.words[index]
        number = word.entry.number
        if number is None or not self._is_whole_number(index):
            return None
        if self._next(index + 1, "turn", "turns") and self._next(index + 2, "ago"):
            fits = self._stops(index + 3) or not self._unknown(index + 3)
            return _Candidate(-number, index, index + 2, "ago", 3) if fits else None
        if word.entry.linked:
            return None
        marked = self._is(index - 1, "marker") and word.gap.strip(" #") in ("", ".")
        if marked and self._is(index - 1, "filler") and not word.text.isdigit():
            return None  # no two are alike
        first = index - 1 if marked else index
        if self._is(first - 1, "initial") and not words[first].gap:
            return _Candidate(number, first - 1, index, "number", 3) if self._again(first - 1, index) else None
        if self._is(first - 1, "turn") and words[first].gap.strip(" #") in ("", "-"):
            if self._is(first - 1, "quarter") and not self._asks(first - 1, number):
                return None
            before = self._determiner(first - 1)
            opens = self._opens(
                before.start, before, CountedNoun("number", index + 1, index)
            )  # question 1: what is a cell?
            if opens or self._verb(first - 1) or not self._number_ends(index + 1, first - 1):
                return None
            return _Candidate(number, before.start, index, "number", 3)
        if first < index or "#" in word.gap:
            start = first - 1 if self._before(first, "pointer") else first
            return _Candidate(number, start, index, "number", 2) if self._signed(first, index) else None
        return self._figure(index, number)

    def _signed_figure(self, index: int) -> bool:
        """Whether a sign stands before a number: "turn -1", and neither "turn-1" nor "turn - 1"."""
        word = self.words[index]
        if not (word.entry.number or word.text[0].isdigit()) or word.gap[-1:] != "-":
            return False
        return word.start < 2 or not self.text[word.start - 2].isalnum()

    def _asks(self, noun: int, number: int) -> bool:
        """Whether a letter with a number is a question, and neither a quarter of a year nor a thing: "Audi Q5"."""
        if self._follows(noun) and self._unknown(noun - 1):
            return False
        if not 1 <= number <= _QUARTERS:
            return True
        if self._is_of_the_world or self._before(noun, "number", "mine", "about"):
            return False  # 2024 Q3; our Q3; what did you say about Q3
        if "#" in self.words[noun + 1].gap:
            return True
        # A quarter, unless the sentence speaks of what was asked or answered: "go back to Q3".
        asks = any(self._is(each, "ask", "asked") for each in self._sentence(noun))
        return asks or any(self._is(each, "turn", "turns") for each in (noun - 1, noun - 2))  # the answer to Q3

    def _again(self, noun: int, index: int) -> bool:
        """Whether a letter with a number is all that is asked for again: "A3 again", and not "print it on A4 again"."""
        if self._is_of_the_world or self._before(noun, "of", "place", "to", "number", "indefinite", "others"):
            return False
        others = [each for each in range(len(self.words)) if each not in (noun, index)]
        fitting = AROUND | {"again", "definite", "request", "modal", "subject", "speaker"}
        return any(self._is(each, "again") for each in others) and all(self._is(each, *fitting) for each in others)

    def _figure(self, index: int, number: int) -> _Candidate | None:
        """Figures alone: "2 please", "yung 2"."""
        word = self.words[index]
        if not word.text.isdigit() or number > _GREATEST or self._is_of_the_world or len(self.words) > _MOST_WORDS:
            return None
        others = [each.kinds for each in self.words if each is not word]
        if all(each & AROUND and not each & {"limit", "of", "place"} for each in others):
            return _Candidate(number, index, index, "bare_number", 1)
        if self._before(index, "pointer") and self._stops(self._skip(index + 1)):
            return _Candidate(number, index - 1, index, "number", 2)
        return None

    def _is_whole_number(self, index: int) -> bool:
        """Whether figures are a whole number, and neither a price, a time, a range nor a fraction."""
        word = self.words[index]
        before = self.text[word.start - 1] if word.start else " "
        after = self.text[word.end : word.end + 2] + "  "
        if before in "$\u20ac\u00a3\u20b1+/\u2044=<>~^%&@:" or after[0] in "%\u00b0+=^&/\u2044<>@$\u20b1_":
            return False
        if after[0] in ".,:-*" and after[1].isalnum():
            return False
        return not (before in ".,-*" and word.start > 1 and self.text[word.start - 2].isdigit())

    def _verb(self, noun: int) -> bool:
        """Whether a noun for a turn is a verb here: "I turn 30", "can you answer 3"."""
        if self._before(noun, "to"):
            return not (noun > 1 and self._is(noun - 2, "request", "said"))  # go back to turn 3
        return self._before(noun, "modal", "subject", "person", "others", "indefinite")

    def _number_ends(self, index: int, start: int) -> bool:
        """Whether what follows a number leaves it the number of a turn: not "3 degrees", "3 na tao"."""
        index = self._skip(index)
        if self._next(index, "linker") and self._follows(index + 1):
            return self._is(index + 1, "particle", "polite")
        if self._follows(index) and (
            self._unknown(index) or self.words[index].kinds & NOUNS or self._is(index, "turn", "actor")
        ):
            return False
        if self._is(start, "base") and self._next(index, "definite", "mine"):
            return False  # reply 2 this text
        return not self._is_elsewhere and self._tail(index, "turn", governed=self._governed(start))

    def _signed(self, first: int, index: int) -> bool:
        """Whether "number 2" stands for itself: not "room number 2", "we are number 2", "the number 2"."""
        if not self._number_ends(index + 1, first) or self._was_listed_before(first):
            return False
        if not self._follows(first):
            return True
        before = self.words[first - 1]
        if self._unknown(first - 1) or before.kinds & (NOUNS - {"number"}):
            return False
        if before.kinds & {"indefinite", "others", "mine", "yours", "person"}:
            return False
        if "definite" in before.kinds and not before.entry.loose:
            return False
        return "copula" not in before.kinds or "question" in before.kinds or self._is_asked_of(first - 1, "none", 1)

    # -- time

    def _time(self, index: int) -> _Candidate | None:
        """An adverb of time with what was said then."""
        entry = self.words[index].entry
        position = -1 if entry.time is None else entry.time
        late = entry.time is None
        if entry.linked or self._is_elsewhere or self._next(index + 1, "hour"):
            return None
        after = self._skip(index + 1)
        ends = self._stops(after) or self._is(after, "copula", "coordinator", "question")
        if late and (not ends or self._before(index, "definite", "mine", "yours", "indefinite")):
            return None
        if noun := self._noun_then(index, position):
            return noun if self._tail(after, "turn", governed=self._governed(noun.first)) else None
        if clause := self._clause_then(index, position) or (None if late else self._then_clause(index, position)):
            return clause
        if position == -1 and self._before(index, "like") and (ends or not self._unknown(after)):
            return self._likened(index)
        if not late and self._is_time_only(index) and (position == -1 or self._governed(index)):
            return _Candidate(position, index, index, "time", 1)
        return None

    def _noun_then(self, index: int, position: int) -> _Candidate | None:
        """A noun and a time: "the question earlier", "tanong ko kanina", "the one from earlier"."""
        noun = index - 1
        while self._follows(noun + 1) and self._is(noun, "speaker", "particle", "place", "linker"):
            noun -= 1
        if not self._follows(noun + 1) or not self._is(noun, "turn", "one", "thing", "conversation"):
            return None
        before = self._determiner(noun)
        own = any(self._is(each, "speaker") for each in range(noun + 1, index))
        if not own:
            vague = self._is(noun, "conversation") and self._is(noun - 1, "oblique")
            alone = before.kind == "none" and self._is(noun, "turn") and not self._follows(noun)
            pointed = before.kind in ("definite", "mine", "yours") and not vague
            if not (pointed or alone) or self._before(before.start, "presenting"):
                return None
        return _Candidate(position, before.start, index, "said", 2)

    def _clause_then(self, index: int, position: int) -> _Candidate | None:
        """A clause and a time: "what you said earlier", "sinabi mo kanina", "as mentioned above"."""
        for verb in range(index - 1, max(index - 12, -1), -1):
            if self._sentence_ends(verb + 1) or (self._is(verb, "third") and verb > index - 3):
                return None
            if self._is(verb, "base", *SPOKEN):
                start = self._speaks(verb, index)
                if start is not None and self._to_us(verb, index, start):
                    return _Candidate(position, min(start, verb), index, "said", 1)
        return None

    def _then_clause(self, index: int, position: int) -> _Candidate | None:
        """A time and a clause: "earlier you said", "kanina tinanong ko"."""
        for verb in range(index + 1, min(index + 6, len(self.words))):
            if self._sentence_ends(verb) or self._is(verb, "third"):
                return None
            if self._is(verb, "base", *SPOKEN):
                start = self._speaks(verb, min(verb + 5, len(self.words)), since=index + 1)
                here = start is not None and self._to_us(verb, min(verb + 4, len(self.words)), start)
                return _Candidate(position, index, verb, "said", 1) if here else None
        return None

    def _speaks(self, verb: int, end: int, since: int = 0) -> int | None:
        """Where the clause of a verb of saying begins, if its doer is one of the two who talk."""
        told = self._is(verb, "said", "asked", "gave")
        for after in range(verb + 1, min(verb + 4, end)):
            if (told and self._is(after, "speaker")) or (self._is(verb, "did_say") and self._is(after, "actor")):
                return verb
            if not self._is(after, "particle"):
                break
        leading = verb - 2 if self._before(verb, "particle") else verb - 1
        if told and leading >= since and self._is(leading, "speaker"):
            return leading  # kanina mo pa sinabi
        if not self._is(verb, *SPOKEN) and not self._did(verb) and not self._is(verb - 1, "you"):
            return None
        for doer in range(verb, max(verb - 5, since - 1), -1):
            if self._is(doer, "subject"):
                inverted = self._before(doer, "auxiliary", "modal")  # have I told you this before?
                return doer if not inverted or self._did(verb) else None
            if doer == verb:
                continue
            if self._unknown(doer) or self._is(doer, "third", "modal"):
                return None
            if self._is(doer, "like", "question") and self._is(verb, *SPOKEN):
                return doer  # as mentioned
        return None

    def _to_us(self, verb: int, end: int, start: int) -> bool:
        """Whether what was said was said here: not "I told my mom", "tinanong ko siya"."""
        user = self._is(start, "i") or any(self._is(each, "ko") for each in range(verb + 1, min(verb + 4, end)))
        to_somebody = user and self._is(verb, "asked", "gave", "base")
        for each in range(verb + 1, end):
            word = self.words[each]
            if "third" in word.kinds:
                return False
            if "toward" in word.kinds and self._follows(each + 1):
                told = self.words[each + 1]
                if not told.kinds & {"you", "this", "turn"} and told.entry.position is None:
                    return False
            if "about" in word.kinds:
                return not any("third" in later.kinds for later in self.words[each:end])
            if to_somebody and (self._unknown(each) or word.kinds & {"vocative", "elsewhere"}):
                return False
        if user and self._is(verb, "gave") and not self._is(verb, "asked", "said"):
            around = range(max(start - 3, 0), end)
            return any(self._is(each, "you", "question", "turn", "one", "definite", "made", "thing") for each in around)
        return True

    def _likened(self, index: int) -> _Candidate | None:
        """Likeness to a time: "same as before", "gaya ng kanina"."""
        first = index - 1
        while first and self._is(first, "like", "definite"):
            first -= 1
        opening = range(self._sentence(index).start, first)
        plain = not any(self._unknown(each) or self._is(each, "third", "negation") for each in opening)
        return _Candidate(-1, first, index, "time", 1) if plain else None

    def _is_time_only(self, index: int) -> bool:
        """Whether an adverb of time is all of a sentence: "earlier?", "ano yung kanina"."""
        fitting = AROUND | {"definite", "request", "place", "to", "speaker"}
        foreign = NOUNS | {"third", "copula", "person", "world", "idiom", "modal"}
        others = [self.words[place].kinds for place in self._sentence(index) if place != index]
        return len(others) < _MOST_WORDS and all(each & fitting and not each & foreign for each in others)

    def _just_said_turn(self, index: int) -> _Candidate | None:
        """What was just said, in one word: "kakasabi mo lang"."""
        speaker = index + 2 if self._next(index + 1, "particle") else index + 1
        return _Candidate(-1, index, speaker, "just_said", 1) if self._next(speaker, "speaker") else None

    def _last_answer(self, index: int) -> _Candidate | None:
        """What was just said: "what you just said", "what did I just ask"."""
        doer = index - 1
        told = self._next(index + 1, *SPOKEN) or (self._next(index + 1, "base") and self._did(index))
        if not told or not self._before(index, "subject"):
            return None
        pointing = ("question", "like", "turn", "one", "that", "thing", "did")
        if self._is(doer, "i") and not self._before(doer, *pointing):
            return None  # I just asked my boss
        return _Candidate(-1, doer, index + 1, "just_said", 1)

    def _before_that(self, index: int) -> _Candidate | None:
        """Before what was spoken of: "the one before that", two back; or is: "the one before this", one back."""
        noun = index - 1
        while self._follows(noun + 1) and self._is(noun, "speaker", "particle"):
            noun -= 1
        told = self._is(noun, "turn", "one", "definite", *SPOKEN) or (self._is(noun, "base") and self._did(noun))
        before = self._determiner(noun)
        if not told or not self._follows(noun + 1) or before.kind in ("indefinite", "others"):
            return None
        spoken_of = -1 if self._mentioned is None else self._mentioned
        pointer = index + 1
        while self._next(pointer, "particle"):
            pointer += 1
        back = spoken_of - 1 if self._next(pointer, "that") else -1 if self._next(pointer, "this") else None
        if back is None and noun == index - 1 and self._one_before(index, before):
            back, pointer = spoken_of - 1, index
        if not back or (
            self._next(pointer, "that", "this") and self._follows(pointer + 1) and self._unknown(pointer + 1)
        ):
            return None
        return _Candidate(back, before.start, pointer, "relative", 2)

    def _one_before(self, index: int, before: Determiner) -> bool:
        """Whether "before" ends what it says: "the one before", "was the one before better?"."""
        if not self._is(index - 1, "one") or before.kind not in ("definite", "mine", "yours") or self._is_elsewhere:
            return False
        if self._before(before.start, "presenting"):
            return False
        after = self._skip(index + 1)
        ends = self._stops(after) or self._is(after, "copula", "coordinator")
        opening = range(self._sentence(index).start, before.start)
        return ends and not any(self._unknown(each) or self._is(each, "world", "person") for each in opening)
