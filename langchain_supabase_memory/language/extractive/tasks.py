"""Find tasks and questions, and whether they were completed or answered."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from datetime import date, timedelta
from typing import TYPE_CHECKING, Final

from langchain_supabase_memory.language.extractive.dialogue import SPEAKING, replies
from langchain_supabase_memory.language.extractive.phrases import ParsedText
from langchain_supabase_memory.language.extractive.stems import stems
from langchain_supabase_memory.language.extractive.utterances import day
from langchain_supabase_memory.language.query_hints.dates import dates
from langchain_supabase_memory.language.query_hints.lexicon import lexicon
from langchain_supabase_memory.language.query_hints.words import HintWords
from langchain_supabase_memory.language.spelling import WORD, keys

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from langchain_supabase_memory.effects import TranscriptLine
    from langchain_supabase_memory.language.extractive.phrases import FoundPhrase
    from langchain_supabase_memory.language.extractive.utterances import Sentence
    from langchain_supabase_memory.language.query_hints.dates import NamedDate

_CLAUSE: Final = re.compile(r"[,;.!?()\u2014\n]")
_ASKED_FOR: Final = 5  # stems that identify a task
_ASKING: Final = ("asks_to", "heads_task", "opens_task", "promises")
_PATIENCE: Final = timedelta(days=14)
_NEAR: Final = 3  # words between "I'll" and its verb
_MAX_COMPARED: Final = 300  # tasks that one sentence may close
_NOTHING: Final[frozenset[str]] = frozenset()
_AT_ONCE: Final = 1  # words before a phrase that still opens the sentence
_FIRST_REPLIES: Final = 2  # lines that may answer the last question of a board without sharing its words


@dataclass(slots=True)
class DialogueTask:
    """A task that a speaker mentioned.

    Attributes:
        requested: Its stems.
        sentence: The sentence that mentions it.
        state: `open`, `done` or `cancelled`.
        closing: The sentence that closes it.
    """

    requested: frozenset[str]
    sentence: Sentence
    state: str = "open"
    closing: Sentence | None = None


def tasks(sentences: Iterable[Sentence], known_names: frozenset[str] = frozenset()) -> list[DialogueTask]:
    """Return the tasks of a conversation, each once, with their state.

    Args:
        sentences: The sentences of the conversation.
        known_names: Case-folded sentences whose tasks are already known and are left out.
    """
    made: list[DialogueTask] = []
    for sentence in sentences:
        for each in made[-_MAX_COMPARED:]:
            is_waiting = each.state == "open" and each.sentence.place < sentence.place
            if is_waiting and (state := outcome(each.requested, sentence)):
                each.state, each.closing = state, sentence
        wanted = task(sentence)
        if wanted and sentence.text.casefold() not in known_names and all(wanted != each.requested for each in made):
            made.append(DialogueTask(wanted, sentence))
    return made


def task(sentence: Sentence) -> frozenset[str] | None:
    """Return the stems of the task in a sentence; `None` if there is none.

    The user states a task by asking or promising. The assistant states one by promising a deliverable: to send or find
    out something, not to keep it in mind.
    """
    reading = sentence.reading
    if reading.has("called") or not (sentence.line.role == "user" or sentence.is_prose):
        return None
    idle = {each.first for each in reading.all("idles")}
    embedding = [each.first for each in reading.all("supposes", "embeds")]
    for each in reading.all(*(_ASKING if sentence.line.role == "user" else ("promises",))):
        if each.first in idle or any(each.first - _NEAR <= at < each.first for at in embedding):
            continue
        if "reminds" not in each.kinds and (sentence.marks.is_question or _is_loose(each, sentence)):
            continue
        found = _promised(each, sentence) if "promises" in each.kinds else _requested_stems(each, reading)
        if found:
            return found
    return None


def _is_loose(phrase: FoundPhrase, sentence: Sentence) -> bool:
    """Return whether a request or promise is not a concrete task: a habit, a wish, an idea, or conditional."""
    reading = sentence.reading
    if "heads_task" in phrase.kinds:
        return False
    if (
        _is_supposed(sentence)
        or reading.has("recurs", "someday")
        or ("proposes" in phrase.kinds and not sentence.marks.has_time)
    ):
        return True
    # "Let me know when you are back and I'll": nothing is due before that.
    return "promises" in phrase.kinds and any(each.end <= phrase.first for each in reading.all("idles"))


def _promised(promise: FoundPhrase, sentence: Sentence) -> frozenset[str]:
    """Return the stems of a promise to do something once that can later be reported as done."""
    reading = sentence.reading
    delivers = any(_is_of(verb, promise, reading) for verb in reading.all("delivers"))
    if sentence.line.role == "user":
        owes = delivers or any(_is_of(verb, promise, reading) for verb in reading.all("does"))
    else:
        owes = delivers and promise.first <= _AT_ONCE  # not "tell me when, and I'll"
    if not owes or _is_change(sentence) or _endures(promise, reading):
        return _NOTHING
    found = _object(reading.text[reading.ends[promise.end - 1] :])
    return found if len(found) > (not delivers) else _NOTHING  # "I'll wait" promises nothing


def _requested_stems(phrase: FoundPhrase, reading: ParsedText) -> frozenset[str]:
    """Return the stems of a request."""
    after = reading.text[reading.ends[phrase.end - 1] :]
    heads = "heads_task" in phrase.kinds and after.startswith(":")
    opens = "opens_task" in phrase.kinds and phrase.first == 0
    asks = "asks_to" in phrase.kinds and not _advises(phrase, reading)
    if not (heads or opens or asks) or _endures(phrase, reading):
        return _NOTHING
    is_word = phrase.end - phrase.first == 1 and "heads_task" not in phrase.kinds
    if is_word and phrase.first > 0 and _CLAUSE.match(after):  # "the list pls, I need it" asks for what precedes it
        return _NOTHING
    found = _object(after)
    return found if len(found) > is_word else _NOTHING  # a single word ("please") is a weak request


def waits(task: DialogueTask, last: date) -> bool:
    """Return whether a task is still worth showing, that is, was mentioned in the last weeks.

    A reminder stays until it is done. An intention stays for two weeks, or until the day that it names.

    Args:
        task: A task.
        last: The day of the last message.
    """
    if task.state != "open" or task.sentence.reading.has("reminds", "heads_task"):
        return True
    said = day(task.sentence.line)
    named = dates(HintWords(task.sentence.text), said) if task.sentence.marks.has_time else ()
    days = [_resolve_date(found.date, said) for found in named if found.date]
    return last <= max([said + _PATIENCE, *(found for found in days if found)])


def _resolve_date(named: NamedDate, said_on: date) -> date | None:
    """Return the named day, or the last day of a named month; `None` without a month, since that is soon."""
    if named.month is None:
        return None
    year = named.year or said_on.year + (named.month < said_on.month)
    try:
        return date(year, named.month, named.day or 28)
    except ValueError:
        return None


def about_tasks(tasks: Sequence[DialogueTask]) -> frozenset[str]:
    """Return the sentences that only state a task or its completion; they are not facts."""
    opening = {each.sentence.text for each in tasks if _opens(each.sentence)}
    return frozenset(opening | {each.closing.text for each in tasks if each.closing})


def _opens(sentence: Sentence) -> bool:
    """Return whether a sentence begins with a request."""
    return any(each.first <= _AT_ONCE for each in sentence.reading.all(*_ASKING))


def same(text: str) -> frozenset[str]:
    """Return the stems of a board's task, from its text or quote."""
    reading = ParsedText(text)
    for each in reading.all(*_ASKING):
        found = _object(text[reading.ends[each.end - 1] :])
        if found:
            return found
    return _first(text)


def outcome(requested: frozenset[str], sentence: Sentence) -> str | None:
    """Return `done` or `cancelled` if a sentence says so about a task, else `None`.

    Args:
        requested: The stems of the task.
        sentence: A later sentence.
    """
    shared = len(requested & sentence.terms)
    if not requested or shared < max(1, math.ceil(len(requested) / 2)):
        return None
    reading = sentence.reading
    if sentence.marks.is_question or _is_supposed(sentence):
        return None
    if reading.has("cancels"):
        return "cancelled"
    if reading.has("asks_to", "promises") and not reading.has("idles"):
        return None
    return "done" if reading.has("finishes") else None


def answering_message(
    question: str, role: str | None, lines: Sequence[TranscriptLine], sentences: Sequence[Sentence], *, is_last: bool
) -> int | None:
    """Return the number of the message that answers a question of the board; `None` if there is none.

    Args:
        question: The text of the question.
        role: The role of the speaker who asked it, if known.
        lines: The new lines.
        sentences: Their sentences.
        is_last: Whether it is the last question of the board, so that the next reply of the other side may answer it.
    """
    asked = frozenset(stems(question))
    for each in sentences:
        if each.marks.is_question or each.reading.has("defers") or not asked:
            continue
        if len(asked & each.terms) >= max(min(2, len(asked)), len(asked) / 2):
            return each.line.number
    if is_last and role is not None:
        for line in lines[:_FIRST_REPLIES]:
            if line.role != role and line.role in SPEAKING and replies(line.text):
                return line.number
    return None


def _object(text: str) -> frozenset[str]:
    """Return the stems of a task, up to the end of the clause."""
    rest = text.lstrip(" :,-\u2013\u2014")
    end = _CLAUSE.search(rest)
    clause = rest[: end.start()] if end else rest
    return _first(clause) or _first(rest)


def _first(text: str) -> frozenset[str]:
    """Return the first stems of a text without those of a time: a report of completion does not repeat them."""
    known = lexicon().entries
    words = [word for word in keys(WORD.findall(text)) if not (word in known and known[word].says_time)]
    return frozenset(list(dict.fromkeys(stems(" ".join(words))))[:_ASKED_FOR])


def _is_change(sentence: Sentence) -> bool:
    """Return whether a sentence announces a changed number without a time: saying so already settles it."""
    said = sentence.marks
    return said.has_number and not said.has_time and sentence.reading.has("corrects")


def _is_of(verb: FoundPhrase, promise: FoundPhrase, reading: ParsedText) -> bool:
    """Return whether a verb belongs to a promise: it follows soon, or ends the sentence, as in German."""
    return promise.first <= verb.first < promise.end + _NEAR or promise.end < verb.end == len(reading.words)


def _endures(phrase: FoundPhrase, reading: ParsedText) -> bool:
    """Return whether the verb has no end, or is done by saying it: to stay, to keep at it."""
    return any(phrase.end <= each.first < phrase.end + _NEAR - 1 for each in reading.all("endures"))


def _advises(phrase: FoundPhrase, reading: ParsedText) -> bool:
    """Return whether "remember to" is advice: it is about "you", or not at the start of its clause."""
    if "advises" not in phrase.kinds:
        return False
    at = phrase.first
    begins = at == 0 or _CLAUSE.search(reading.text[reading.ends[at - 1] : reading.starts[at]]) is not None
    tied = ("asks_to", "greets", "joins") if "reminds" in phrase.kinds else ("asks_to", "greets")
    asks = any(each.end == at for each in reading.all(*tied))
    return not (begins or asks) or any(each.first >= phrase.end for each in reading.all("you"))


def _is_supposed(sentence: Sentence) -> bool:
    return any(each.first == 0 for each in sentence.reading.all("supposes"))
