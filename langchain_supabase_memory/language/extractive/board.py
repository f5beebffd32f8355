"""Fill a board by rules: new items, replaced items, completed items and open questions.

Every item quotes its message; this module only words the speaker's label.
"""

from __future__ import annotations

import json
from datetime import date
from typing import TYPE_CHECKING, Any, Final

from langchain_supabase_memory.language.extractive.dialogue import SPEAKING, unanswered
from langchain_supabase_memory.language.extractive.digest import summary
from langchain_supabase_memory.language.extractive.entities import entities
from langchain_supabase_memory.language.extractive.facts import facts, rank
from langchain_supabase_memory.language.extractive.quotes import label
from langchain_supabase_memory.language.extractive.tasks import (
    about_tasks,
    answering_message,
    outcome,
    same,
    tasks,
    waits,
)
from langchain_supabase_memory.language.extractive.topics import topics
from langchain_supabase_memory.language.extractive.utterances import day, utterances

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from langchain_supabase_memory.effects import Material, TranscriptLine
    from langchain_supabase_memory.language.extractive.tasks import DialogueTask
    from langchain_supabase_memory.language.extractive.utterances import Sentence

_MAX_FACTS: Final = 30
_MIN_FACTS: Final = 6  # in a short conversation, if it has so many
_FACT_EACH: Final = 6  # user messages for each fact, in a long conversation
_MAX_ENTITIES: Final = 20
_MAX_TOPICS: Final = 6
_MAX_ACTIONS: Final = 15
_MAX_QUESTIONS: Final = 5


def board(material: Material) -> str:
    """Revise a board: return the JSON document that `boards.schema.SCHEMA` describes.

    Args:
        material: The summary so far, the new messages, and the board's current items.
    """
    lines = material.lines
    sentences = list(utterances(lines))
    items = _Items(material.items)
    last = max((day(each) for each in lines), default=date.min)
    found = tasks(sentences, items.texts("action"))
    closed = list(_closed(sentences, items))
    used = about_tasks(found) | {sentence.text for _, sentence in closed}
    named = entities(sentences, items.texts("entity"), _MAX_ENTITIES)
    names = [each.name for each in named if each.type != "date"]
    return json.dumps(
        {
            "summary": summary(material.previous, lines, material.characters),
            "context_notes": "",
            "facts": _facts(sentences, items, used),
            "entities": [
                {"text": each.name, "source": each.number, "quote": each.name, "type": each.type} for each in named
            ],
            "topics": [
                {"text": each.text, "source": each.number, "quote": each.text}
                for each in topics(sentences, items.texts("topic"), [*items.texts("entity"), *names], _MAX_TOPICS)
            ],
            "action_items": _actions([each for each in found if waits(each, last)]),
            "pending_questions": _questions(lines, items),
            "closed": [*(each for each, _ in closed), *_answered_questions(lines, sentences, items)],
        },
        ensure_ascii=False,
    )


class _Items:
    """The current items of a board, by kind."""

    def __init__(self, items: Sequence[Mapping[str, Any]]) -> None:
        self._items = items

    def open_items(self, kind: str) -> Iterator[tuple[str, str, str]]:
        """Yield the id, quote and text of the items of a kind that are open or current."""
        for each in self._items:
            if each.get("kind") == kind and each.get("id") and each.get("state") in (None, "open", "current"):
                text = str(each.get("text") or "")
                yield str(each["id"]), str(each.get("quote") or "") or text, text

    def texts(self, kind: str) -> frozenset[str]:
        """Return the texts and quotes of a kind, case-folded."""
        return frozenset(said.casefold() for _, quote, text in self.open_items(kind) for said in (quote, text))


def _item(sentence: Sentence, **more: Any) -> dict[str, Any]:
    """Return a sentence as an item, with its speaker."""
    who = label(sentence.line.role, sentence.line.speaker)
    return {
        "text": f"{who}: {sentence.text}",
        "source": sentence.line.number,
        "quote": sentence.text,
        **more,
    }


def _facts(sentences: Sequence[Sentence], items: _Items, used: frozenset[str]) -> list[dict[str, Any]]:
    """Return the new facts, each with the id of the fact it replaces; `used` holds the sentences about tasks."""
    present = [(ident, quote) for ident, quote, _ in items.open_items("fact")]
    told = [each for each in sentences if each.text not in used]
    fresh = facts(told, present, items.texts("fact"))
    own = len({each.place for each in sentences if each.line.role == "user"})
    most = min(max(_MIN_FACTS, own // _FACT_EACH), _MAX_FACTS)
    kept = {id(each) for each in rank((sentence for sentence, _ in fresh), _MIN_FACTS, most)}
    return [_item(sentence, replaces=gone) for sentence, gone in fresh if id(sentence) in kept or gone]


def _actions(tasks: Sequence[DialogueTask]) -> list[dict[str, Any]]:
    """Return the new tasks; if there are too many, open ones first, then the user's, then the latest."""
    kept = sorted(
        range(len(tasks)),
        key=lambda at: (tasks[at].state != "open", tasks[at].sentence.line.role != "user", -at),
    )[:_MAX_ACTIONS]
    return [_item(tasks[at].sentence, state=tasks[at].state, replaces=None) for at in sorted(kept)]


def _closed(sentences: Sequence[Sentence], items: _Items) -> Iterator[tuple[dict[str, Any], Sentence]]:
    """Yield the board's tasks that are done or cancelled, with the sentences that say so."""
    for ident, quote, _ in items.open_items("action"):
        wanted = same(quote)
        for sentence in sentences:
            if state := outcome(wanted, sentence):
                yield {"id": ident, "state": state, "source": sentence.line.number}, sentence
                break


def _questions(lines: Sequence[TranscriptLine], items: _Items) -> list[dict[str, Any]]:
    """Return the questions that are not answered yet."""
    known = items.texts("question")
    found = [
        {
            "text": f"{label(lines[each.place].role, lines[each.place].speaker)}: {each.text}",
            "source": lines[each.place].number,
            "quote": each.text,
        }
        for each in unanswered(lines)
        if each.text.casefold() not in known
    ]
    return found[-_MAX_QUESTIONS:]


def _answered_questions(
    lines: Sequence[TranscriptLine], sentences: Sequence[Sentence], items: _Items
) -> list[dict[str, Any]]:
    """Return the board's questions that the new messages answer."""
    present = list(items.open_items("question"))
    closed = []
    for at, (ident, quote, text) in enumerate(present):
        role = next((role for role in SPEAKING if text.casefold().startswith(role)), None)
        number = answering_message(quote, role, lines, sentences, is_last=at == len(present) - 1)
        if number is not None:
            closed.append({"id": ident, "state": "answered", "source": number})
    return closed
