"""What is to be done and what was asked: found, and found to be done or answered."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Final

from langchain_supabase_memory.cues.lexicon import WORD, keys, lexicon
from langchain_supabase_memory.extractive.dialogue import SPEAKING, replies
from langchain_supabase_memory.extractive.phrases import read
from langchain_supabase_memory.extractive.terms import stems

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_supabase_memory.extractive.phrases import Found, Reading
    from langchain_supabase_memory.extractive.said import Sentence
    from langchain_supabase_memory.flow import Line

_CLAUSE: Final = re.compile(r"[,;.!?()\u2014\n]")
_ASKED_FOR: Final = 5  # stems of a task that say which it is
_ASKING: Final = ("asks_to", "heads_task", "opens_task", "promises")
_NEAR: Final = 3  # words between "I'll" and what is going to be done
_AT_ONCE: Final = 1  # words before a phrase with which a sentence begins
_FIRST_REPLIES: Final = 2  # lines in which the last question of a board is answered without its words


def task(sentence: Sentence) -> frozenset[str] | None:
    """The stems of what is to be done, if a sentence says so.

    The user says it by asking or by promising, the assistant by promising what it still owes: to send or to find out
    something, not to keep it in mind.

    Args:
        sentence: A sentence.
    """
    reading = sentence.reading
    kinds = _ASKING if sentence.line.role == "user" else ("promises",)
    if reading.has("called"):
        return None
    idle = {each.first for each in reading.all("idles")}
    supposed = [each.first for each in reading.all("supposes")]
    delivers = reading.all("delivers")
    for each in reading.all(*kinds):
        if each.first in idle or any(each.first - 3 <= at < each.first for at in supposed):
            continue
        promises = "promises" in each.kinds
        if promises and _is_change(sentence):
            continue
        owes = sentence.line.role == "user" or any(_is_of(verb, each, reading) for verb in delivers)
        if not owes or (sentence.line.role != "user" and each.first > 1):  # "tell me when, and I'll"
            continue
        after = reading.text[reading.ends[each.end - 1] :]
        heads = "heads_task" in each.kinds and after.startswith(":")
        opens = "opens_task" in each.kinds and each.first == 0
        if not heads and not opens and each.kinds.isdisjoint({"asks_to", "promises"}):
            continue
        if sentence.marks.is_question and "reminds" not in each.kinds:
            continue
        is_word = each.end - each.first == 1 and "heads_task" not in each.kinds
        if is_word and each.first > 0 and _CLAUSE.match(after):  # "the list pls, I need it" asks for what is before
            continue
        # A word alone ("please") asks for little, and who promises in a word ("I'll wait") owes nothing.
        is_weak = not any(verb.first == each.first for verb in delivers) if promises else is_word
        found = _object(after)
        if len(found) > is_weak:
            return found
    return None


def opens(sentence: Sentence) -> bool:
    """Whether a sentence begins with what asks for a task, and so says little else."""
    return any(each.first <= _AT_ONCE for each in sentence.reading.all(*_ASKING))


def same(text: str) -> frozenset[str]:
    """The stems of a task of a board, by its text or quote."""
    reading = read(text)
    for each in reading.all(*_ASKING):
        found = _object(text[reading.ends[each.end - 1] :])
        if found:
            return found
    return _first(text)


def outcome(wanted: frozenset[str], sentence: Sentence) -> str | None:
    """Whether a sentence says that a task is `done` or `cancelled`.

    Args:
        wanted: The stems of the task.
        sentence: What was said after it.
    """
    shared = len(wanted & sentence.terms)
    if not wanted or shared < max(1, math.ceil(len(wanted) / 2)):
        return None
    reading = sentence.reading
    if sentence.marks.is_question or _is_supposed(sentence):
        return None
    if reading.has("cancels"):
        return "cancelled"
    if reading.has("asks_to", "promises") and not reading.has("idles"):
        return None
    return "done" if reading.has("finishes") else None


def answered(
    question: str, role: str | None, lines: Sequence[Line], spoken: Sequence[Sentence], *, is_last: bool
) -> int | None:
    """The number of the message that answers a question of the board, if one does.

    Args:
        question: Its words.
        role: Who asked it, if that is known.
        lines: What was said since.
        spoken: Their sentences.
        is_last: Whether it is the last question of the board, so that the next words of the other side may be meant.
    """
    asked = frozenset(stems(question))
    for each in spoken:
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
    """The stems of what is to be done, up to the end of the clause."""
    rest = text.lstrip(" :,-\u2013\u2014")
    end = _CLAUSE.search(rest)
    clause = rest[: end.start()] if end else rest
    return _first(clause) or _first(rest)


def _first(text: str) -> frozenset[str]:
    """The first stems of a text, those of a time left out: who says that it is done does not repeat them."""
    known = lexicon().entries
    words = [word for word in keys(WORD.findall(text)) if not (word in known and known[word].says_time)]
    return frozenset(list(dict.fromkeys(stems(" ".join(words))))[:_ASKED_FOR])


def _is_change(sentence: Sentence) -> bool:
    """Whether a sentence says how many it is going to be instead, and not when: that is settled once it is said."""
    said = sentence.marks
    return said.has_number and not said.has_time and sentence.reading.has("corrects")


def _is_of(verb: Found, promise: Found, reading: Reading) -> bool:
    """Whether a verb is that of a promise: it follows soon, or ends the sentence, as in German."""
    return promise.first <= verb.first < promise.end + _NEAR or promise.end < verb.end == len(reading.words)


def _is_supposed(sentence: Sentence) -> bool:
    return any(each.first == 0 for each in sentence.reading.all("supposes"))
