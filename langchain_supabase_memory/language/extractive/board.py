"""Fill a board by rules: new items, replaced items, completed items and open questions.

Every item quotes its message; this module only words the speaker's label.
"""

from __future__ import annotations

import json
from datetime import date
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from langchain_supabase_memory.language.extractive.dialogue import SPEAKING, is_posed, unanswered
from langchain_supabase_memory.language.extractive.digest import summary
from langchain_supabase_memory.language.extractive.entities import entities
from langchain_supabase_memory.language.extractive.facts import facts, rank
from langchain_supabase_memory.language.extractive.profile.find import find_profile
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
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from langchain_supabase_memory.effects import Material, TranscriptLine
    from langchain_supabase_memory.language.extractive.entities import Entity
    from langchain_supabase_memory.language.extractive.tasks import DialogueTask
    from langchain_supabase_memory.language.extractive.utterances import Sentence

_MAX_FACTS: Final = 30
_MIN_FACTS: Final = 6  # in a short conversation, if it has so many
_FACT_EACH: Final = 6  # user messages for each fact, in a long conversation
_MAX_ENTITIES: Final = 20
_MAX_TOPICS: Final = 6
_MAX_ACTIONS: Final = 15
_MAX_QUESTIONS: Final = 5
_MAX_PROFILE: Final = 20


def board(material: Material) -> str:
    """Revise a board: return the JSON document that `boards.schema.SCHEMA` describes.

    Args:
        material: The summary so far, the new messages, and the board's current items.
    """
    news = _News(material)
    return json.dumps(
        {
            "summary": summary(material.previous, news.lines, material.characters),
            "context_notes": "",
            **{plural: rule(news) for plural, rule in RULES.items()},
            "closed": [*(each for each, _ in news.closed), *_answered_questions(news)],
            **({"profile": _profile(material.lines)} if material.profile else {}),
        },
        ensure_ascii=False,
    )


def _profile(lines: Sequence[TranscriptLine]) -> list[dict[str, Any]]:
    """Return what users say of themselves; what lasts first, where it is more than an answer may have."""
    found = [(line.number, each) for line in lines if line.role == "user" for each in find_profile(line.text)]
    if len(found) > _MAX_PROFILE:
        found.sort(key=lambda each: not (each[1].is_durable or each[1].corrects))
    return [
        {
            "kind": each.kind,
            "subject": each.subject,
            "value": each.value,
            "polarity": each.polarity,
            "condition": each.condition,
            "durable": each.is_durable,
            "corrects": each.corrects,
            "source": number,
            "quote": each.quote,
        }
        for number, each in found[:_MAX_PROFILE]
    ]


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


class _News:
    """What the rules read: the new messages, the current items, and what several rules find in them."""

    def __init__(self, material: Material) -> None:
        self.lines = material.lines
        self.sentences = list(utterances(material.lines))
        self.items = _Items(material.items)

    @cached_property
    def tasks(self) -> list[DialogueTask]:
        """The new tasks, waiting or done."""
        return tasks(self.sentences, self.items.texts("action"))

    @cached_property
    def closed(self) -> list[tuple[dict[str, Any], Sentence]]:
        """The board's tasks that are done or cancelled, with the sentences that say so."""
        return list(_closed(self.sentences, self.items))

    @cached_property
    def entities(self) -> list[Entity]:
        """The new names and dates."""
        return entities(self.sentences, self.items.texts("entity"), _MAX_ENTITIES)


def _item(sentence: Sentence, **more: Any) -> dict[str, Any]:
    """Return a sentence as an item, with its speaker."""
    who = label(sentence.line.role, sentence.line.speaker)
    return {
        "text": f"{who}: {sentence.text}",
        "source": sentence.line.number,
        "quote": sentence.text,
        **more,
    }


def _facts(news: _News) -> list[dict[str, Any]]:
    """Return the new facts, each with the id of the fact it replaces, without sentences about tasks."""
    items, used = news.items, about_tasks(news.tasks) | {sentence.text for _, sentence in news.closed}
    present = [(ident, quote) for ident, quote, _ in items.open_items("fact")]
    told = [each for each in news.sentences if each.text not in used]
    fresh = facts(told, present, items.texts("fact"))
    own = len({each.place for each in news.sentences if each.line.role == "user"})
    most = min(max(_MIN_FACTS, own // _FACT_EACH), _MAX_FACTS)
    kept = {id(each) for each in rank((sentence for sentence, _ in fresh), _MIN_FACTS, most)}
    return [_item(sentence, replaces=gone) for sentence, gone in fresh if id(sentence) in kept or gone]


def _entities(news: _News) -> list[dict[str, Any]]:
    """Return the new names and dates."""
    return [{"text": each.name, "source": each.number, "quote": each.name, "type": each.type} for each in news.entities]


def _topics(news: _News) -> list[dict[str, Any]]:
    """Return the new topics, without names."""
    names = [each.name for each in news.entities if each.type != "date"]
    found = topics(news.sentences, news.items.texts("topic"), [*news.items.texts("entity"), *names], _MAX_TOPICS)
    return [{"text": each.text, "source": each.number, "quote": each.text} for each in found]


def _actions(news: _News) -> list[dict[str, Any]]:
    """Return the new tasks; if there are too many, open ones first, then the user's, then the latest."""
    last = max((day(each) for each in news.lines), default=date.min)
    found = [each for each in news.tasks if waits(each, last)]
    kept = sorted(
        range(len(found)),
        key=lambda at: (found[at].state != "open", found[at].sentence.line.role != "user", -at),
    )[:_MAX_ACTIONS]
    return [_item(found[at].sentence, state=found[at].state, replaces=None) for at in sorted(kept)]


def _questions(news: _News) -> list[dict[str, Any]]:
    """Return the questions that are not answered yet."""
    known, lines = news.items.texts("question"), news.lines
    found = [
        {
            "text": f"{label(lines[each.place].role, lines[each.place].speaker)}: {each.text}",
            "source": lines[each.place].number,
            "quote": each.text,
        }
        for each in unanswered(lines)
        if each.text.casefold() not in known and is_posed(each, lines[each.place])
    ]
    return found[-_MAX_QUESTIONS:]


RULES: Final[Mapping[str, Callable[[_News], list[dict[str, Any]]]]] = MappingProxyType(
    {
        "facts": _facts,
        "entities": _entities,
        "topics": _topics,
        "action_items": _actions,
        "pending_questions": _questions,
    }
)
"""The rule for each kind of items, by the name of its list on a board."""


def _closed(sentences: Sequence[Sentence], items: _Items) -> Iterator[tuple[dict[str, Any], Sentence]]:
    """Yield the board's tasks that are done or cancelled, with the sentences that say so."""
    for ident, quote, _ in items.open_items("action"):
        wanted = same(quote)
        for sentence in sentences:
            if state := outcome(wanted, sentence):
                yield {"id": ident, "state": state, "source": sentence.line.number}, sentence
                break


def _answered_questions(news: _News) -> list[dict[str, Any]]:
    """Return the board's questions that the new messages answer."""
    present = list(news.items.open_items("question"))
    closed = []
    for at, (ident, quote, text) in enumerate(present):
        role = next((role for role in SPEAKING if text.casefold().startswith(role)), None)
        number = answering_message(quote, role, news.lines, news.sentences, is_last=at == len(present) - 1)
        if number is not None:
            closed.append({"id": ident, "state": "answered", "source": number})
    return closed
