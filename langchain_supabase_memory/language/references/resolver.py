"""Find the turn that a user refers to, by a small grammar over words; no model, no database, no clock.

An utterance is folded and split into words, each with its kinds (see `lexicon`). Every anchor word - a position, a
number, an adverb of time - is then read with its neighbors by one of these rules:

- `ordinal`: determiner and position, followed by no noun it could modify: "the second", "yung pangalawa nga".
- `ordinal_one`, `ordinal_noun`: the same with "one" or a noun for a turn: "the first one", "ikatlong tanong".
- `recency`, `recency_one`, `recency_noun`: the same with the last position: "the last one", "yung kanina".
- `from_end`, `from_end_one`, `from_end_noun`: counted from the end: "second to last", "pangalawa sa huli".
- `number`: a noun for a turn or a number sign, and a number: "turn 3", "question number four", "#2", "Q5". Q1 to Q4
  are questions in a request ("go back to Q3") but quarters in a question ("what did I ask in Q3?"), and "A3" is paper
  unless the utterance asks for it again.
- `bare_number`: figures that are the whole utterance: "2 please".
- `ago`: "two questions ago".
- `said`: the user or the assistant said or asked something, with a time: "what you said earlier", "sabi mo kanina".
- `time`: an adverb of time that is the whole utterance, or in a comparison: "kanina?", "same as before".
- `just_said`: "what you just said", "kakasabi mo lang".
- `relative`: before or after another: "the one before that" and "the one before" (before the last reference in the
  utterance; without one, two back), "the question after the first".

The decisions are the same in every language. A position before an ordinary noun counts that noun, not turns ("the
second largest city"). New things are not references ("a second question", "my last question is why"). Other people's
words, or words from elsewhere, are not turns ("the first question in the exam", "tanong ng teacher ko kanina"). People
hold ranks ("ako ang una"). An adverb next to a verb orders actions ("ask me first"). A number with a sign is negative
and counts nothing ("turn -1"), while a hyphen that joins it to a word ("turn-1") and a dash between words ("turn - 1")
are not signs.

If an utterance has several references, one with a noun wins over one without, any of these wins over an adverb of time,
and then the first wins; "I mean" and "este" retract what precedes them, and "not" retracts what follows it.
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
"""The maximum number of anchor words that are read in one utterance; more only cost time."""
_MAX_WORDS: Final = 24
"""The maximum number of words in an utterance that is only a reference and polite words."""
_QUARTERS: Final = 4
_GREATEST: Final = 999
"""The greatest number that figures alone can refer to a turn by."""


@dataclass(frozen=True, slots=True)
class Match:
    """A reference to a turn.

    Attributes:
        ordinal: The turn counted from the oldest retained one, from 1; `None` if it is counted from the newest.
        from_end: The turn counted from the newest, from 1; `None` if it is counted from the oldest.
        span: The span in the text: the first character, and one past the last.
        rule: The name of the rule that matched.
    """

    ordinal: int | None
    from_end: int | None
    span: tuple[int, int]
    rule: str


def find_reference(text: str, languages: str | Path | Iterable[str | Path] = LANGUAGES) -> Match | None:
    """Find a reference to a turn.

    Args:
        text: The user's text; any string. Of one longer than 1,000 characters the first and the last 500 are read.
        languages: One or several codes of the package's languages, or paths of language files.

    Returns:
        The reference; `None` if there is none.

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
    """Resolve a reference to a turn among those that exist.

    Positions and numbers count the retained turns, whatever their own numbers are. A summarized turn is retained, so
    compaction changes no reference. Once a limit has dropped the oldest turns, "the first one" is the oldest turn left
    and "turn 3" is the third one left, as if turns were renumbered; references from the end do not change. The current
    turn is not among `turns`, since it contains the reference.

    Args:
        match: The reference.
        turns: The numbers of the retained turns, oldest first.

    Returns:
        One of `turns`; `None` if there are not enough.
    """
    if match.ordinal is not None:
        return turns[match.ordinal - 1] if match.ordinal <= len(turns) else None
    if match.from_end is not None:
        return turns[-match.from_end] if match.from_end <= len(turns) else None
    return None


class _Candidate(NamedTuple):
    """A possible reference: its position, its first and last word, the rule, and its strength."""

    position: int
    first: int
    last: int
    rule: str
    weight: int


class _Resolver(Surroundings):
    """One utterance, parsed by the rules."""

    _mentioned: int | None = None
    """The position of the last reference so far, even if it is not the one that is meant."""

    def best(self) -> _Candidate | None:
        """Return the reference that wins, if any."""
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
        """Yield the references whose anchor is the word at an index."""
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
        """Return a determiner, a position, and the noun that it counts as a candidate."""
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
        """Return whether determiner, position and noun together refer to something that exists."""
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
        """Return whether a determiner and a position without a noun are a reference: "the second", "yung una"."""
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
        """Return whether a position without a determiner is a sentence: "second, please", "ulitin mo pangalawa"."""
        adverb = self._is(index, "adverb")
        places = range(len(self.words)) if adverb else self._sentence(index)
        if len(places) > _MAX_WORDS:
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
        """Return whether a position is equated with what the user wants: "pangalawa yung gusto ko"."""
        if not self.words[index].entry.loose or self._is(index, "adverb"):
            return False
        after = self._skip(end + 1)
        known = not any(self._unknown(each) for each in self._sentence(index))
        return known and self._next(after, "definite") and self._next(after + 1, "request")

    def _in_order(self, index: int) -> bool:
        """Return whether a position orders utterances here: "what did I ask first", "what I last said"."""
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
        """Return the offset from a reference to another, and its start: "the one before the last"."""
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
        """Return a candidate for a number with a noun for a turn or a number sign, or alone."""
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
        """Return whether a number has a sign: "turn -1", but neither "turn-1" nor "turn - 1"."""
        word = self.words[index]
        if not (word.entry.number or word.text[0].isdigit()) or word.gap[-1:] != "-":
            return False
        return word.start < 2 or not self.text[word.start - 2].isalnum()

    def _asks(self, noun: int, number: int) -> bool:
        """Return whether a letter with a number is a question, and neither a quarter nor a thing: "Audi Q5"."""
        if self._follows(noun) and self._unknown(noun - 1):
            return False
        if not 1 <= number <= _QUARTERS:
            return True
        if self._is_of_the_world or self._before(noun, "number", "mine", "about"):
            return False  # 2024 Q3; our Q3; what did you say about Q3
        if "#" in self.words[noun + 1].gap:
            return True
        # A quarter, unless the sentence mentions a question or an answer: "go back to Q3".
        asks = any(self._is(each, "ask", "asked") for each in self._sentence(noun))
        return asks or any(self._is(each, "turn", "turns") for each in (noun - 1, noun - 2))  # the answer to Q3

    def _again(self, noun: int, index: int) -> bool:
        """Return whether the request is to repeat a letter with a number: "A3 again", not "print it on A4 again"."""
        if self._is_of_the_world or self._before(noun, "of", "place", "to", "number", "indefinite", "others"):
            return False
        others = [each for each in range(len(self.words)) if each not in (noun, index)]
        fitting = AROUND | {"again", "definite", "request", "modal", "subject", "speaker"}
        return any(self._is(each, "again") for each in others) and all(self._is(each, *fitting) for each in others)

    def _figure(self, index: int, number: int) -> _Candidate | None:
        """Return a candidate for figures alone: "2 please", "yung 2"."""
        word = self.words[index]
        if not word.text.isdigit() or number > _GREATEST or self._is_of_the_world or len(self.words) > _MAX_WORDS:
            return None
        others = [each.kinds for each in self.words if each is not word]
        if all(each & AROUND and not each & {"limit", "of", "place"} for each in others):
            return _Candidate(number, index, index, "bare_number", 1)
        if self._before(index, "pointer") and self._stops(self._skip(index + 1)):
            return _Candidate(number, index - 1, index, "number", 2)
        return None

    def _is_whole_number(self, index: int) -> bool:
        """Return whether figures are a whole number, and neither a price, a time, a range nor a fraction."""
        word = self.words[index]
        before = self.text[word.start - 1] if word.start else " "
        after = self.text[word.end : word.end + 2] + "  "
        if before in "$\u20ac\u00a3\u20b1+/\u2044=<>~^%&@:" or after[0] in "%\u00b0+=^&/\u2044<>@$\u20b1_":
            return False
        if after[0] in ".,:-*" and after[1].isalnum():
            return False
        return not (before in ".,-*" and word.start > 1 and self.text[word.start - 2].isdigit())

    def _verb(self, noun: int) -> bool:
        """Return whether a noun for a turn is a verb here: "I turn 30", "can you answer 3"."""
        if self._before(noun, "to"):
            return not (noun > 1 and self._is(noun - 2, "request", "said"))  # go back to turn 3
        return self._before(noun, "modal", "subject", "person", "others", "indefinite")

    def _number_ends(self, index: int, start: int) -> bool:
        """Return whether what follows a number lets it be a turn number: not "3 degrees", "3 na tao"."""
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
        """Return whether "number 2" stands alone: not "room number 2", "we are number 2", "the number 2"."""
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
        """Return a candidate for an adverb of time with what was said then."""
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
        """Return a candidate for a noun and a time: "the question earlier", "tanong ko kanina"."""
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
        """Return a candidate for a clause and a time: "what you said earlier", "as mentioned above"."""
        for verb in range(index - 1, max(index - 12, -1), -1):
            if self._sentence_ends(verb + 1) or (self._is(verb, "third") and verb > index - 3):
                return None
            if self._is(verb, "base", *SPOKEN):
                start = self._speaks(verb, index)
                if start is not None and self._to_us(verb, index, start):
                    return _Candidate(position, min(start, verb), index, "said", 1)
        return None

    def _then_clause(self, index: int, position: int) -> _Candidate | None:
        """Return a candidate for a time and a clause: "earlier you said", "kanina tinanong ko"."""
        for verb in range(index + 1, min(index + 6, len(self.words))):
            if self._sentence_ends(verb) or self._is(verb, "third"):
                return None
            if self._is(verb, "base", *SPOKEN):
                start = self._speaks(verb, min(verb + 5, len(self.words)), since=index + 1)
                here = start is not None and self._to_us(verb, min(verb + 4, len(self.words)), start)
                return _Candidate(position, index, verb, "said", 1) if here else None
        return None

    def _speaks(self, verb: int, end: int, since: int = 0) -> int | None:
        """Return the start of a clause with a verb of saying, if its subject is the user or the assistant."""
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
        """Return whether something was said in this conversation: not "I told my mom", "tinanong ko siya"."""
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
        """Return a candidate for a comparison with a time: "same as before", "gaya ng kanina"."""
        first = index - 1
        while first and self._is(first, "like", "definite"):
            first -= 1
        opening = range(self._sentence(index).start, first)
        plain = not any(self._unknown(each) or self._is(each, "third", "negation") for each in opening)
        return _Candidate(-1, first, index, "time", 1) if plain else None

    def _is_time_only(self, index: int) -> bool:
        """Return whether an adverb of time is a whole sentence: "earlier?", "ano yung kanina"."""
        fitting = AROUND | {"definite", "request", "place", "to", "speaker"}
        foreign = NOUNS | {"third", "copula", "person", "world", "idiom", "modal"}
        others = [self.words[place].kinds for place in self._sentence(index) if place != index]
        return len(others) < _MAX_WORDS and all(each & fitting and not each & foreign for each in others)

    def _just_said_turn(self, index: int) -> _Candidate | None:
        """Return a candidate for a single word that means "just said": "kakasabi mo lang"."""
        speaker = index + 2 if self._next(index + 1, "particle") else index + 1
        return _Candidate(-1, index, speaker, "just_said", 1) if self._next(speaker, "speaker") else None

    def _last_answer(self, index: int) -> _Candidate | None:
        """Return a candidate for what was just said: "what you just said", "what did I just ask"."""
        doer = index - 1
        told = self._next(index + 1, *SPOKEN) or (self._next(index + 1, "base") and self._did(index))
        if not told or not self._before(index, "subject"):
            return None
        pointing = ("question", "like", "turn", "one", "that", "thing", "did")
        if self._is(doer, "i") and not self._before(doer, *pointing):
            return None  # I just asked my boss
        return _Candidate(-1, doer, index + 1, "just_said", 1)

    def _before_that(self, index: int) -> _Candidate | None:
        """Return a candidate before another: "the one before that" is two back, "the one before this" is one back."""
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
        """Return whether "before" ends the phrase: "the one before", "was the one before better?"."""
        if not self._is(index - 1, "one") or before.kind not in ("definite", "mine", "yours") or self._is_elsewhere:
            return False
        if self._before(before.start, "presenting"):
            return False
        after = self._skip(index + 1)
        ends = self._stops(after) or self._is(after, "copula", "coordinator")
        opening = range(self._sentence(index).start, before.start)
        return ends and not any(self._unknown(each) or self._is(each, "world", "person") for each in opening)
