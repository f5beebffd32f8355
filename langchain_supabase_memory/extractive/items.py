"""The board by rules: what is new, what takes the place of what, what is done, what is still asked.

Every item quotes the message it comes from; nothing is worded by this module but who said it.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from langchain_supabase_memory.extractive.dialogue import SPEAKING, unanswered
from langchain_supabase_memory.extractive.digest import summary
from langchain_supabase_memory.extractive.entities import entities
from langchain_supabase_memory.extractive.facts import Claim, claim, clauses, is_fact, ranked, replaced
from langchain_supabase_memory.extractive.quotes import label
from langchain_supabase_memory.extractive.said import spoken
from langchain_supabase_memory.extractive.tasks import answered, opens, outcome, same, task
from langchain_supabase_memory.extractive.topics import topics

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from langchain_supabase_memory.extractive.said import Sentence
    from langchain_supabase_memory.flow import Line, Material

_MOST_FACTS: Final = 30
_MOST_ENTITIES: Final = 20
_MOST_TOPICS: Final = 6
_MOST_ACTIONS: Final = 15
_MOST_QUESTIONS: Final = 5
_MOST_COMPARED: Final = 300
_BEFORE: Final = -1_000_000  # the place of what was said before the lines


def board(material: Material) -> str:
    """Revise a board: the JSON document that `boards.answer.SCHEMA` describes.

    Args:
        material: The summary so far, what was said since, and the board's present items.
    """
    lines = material.lines
    sentences = list(spoken(lines))
    items = _Items(material.items)
    used: set[str] = set()
    actions, closed = _actions(sentences, items, used)
    return json.dumps(
        {
            "summary": summary(material.previous, lines, material.characters),
            "context_notes": "",
            "facts": _facts(sentences, items, frozenset(used)),
            "entities": [
                {"text": each.name, "source": each.number, "quote": each.name, "type": each.type}
                for each in entities(sentences, items.texts("entity"), _MOST_ENTITIES)
            ],
            "topics": [
                {"text": each.text, "source": each.number, "quote": each.text}
                for each in topics(sentences, items.texts("topic"), _MOST_TOPICS)
            ],
            "action_items": actions,
            "pending_questions": _questions(lines, items),
            "closed": [*closed, *_answered(lines, sentences, items)],
        },
        ensure_ascii=False,
    )


class _Items:
    """The present items of a board, by kind."""

    def __init__(self, items: Sequence[Mapping[str, Any]]) -> None:
        self._items = items

    def of(self, kind: str) -> Iterator[tuple[str, str, str]]:
        """Id, words and text of the items of a kind that are still open or hold."""
        for each in self._items:
            if each.get("kind") == kind and each.get("id") and each.get("state") in (None, "open", "current"):
                text = str(each.get("text") or "")
                yield str(each["id"]), str(each.get("quote") or "") or text, text

    def texts(self, kind: str) -> frozenset[str]:
        """The texts and quotes of a kind, in one case."""
        return frozenset(said.casefold() for _, quote, text in self.of(kind) for said in (quote, text))


def _item(sentence: Sentence, **more: Any) -> dict[str, Any]:
    """A sentence as an item, with who said it."""
    who = label(sentence.line.role, sentence.line.speaker)
    return {
        "text": f"{who}: {sentence.text}",
        "source": sentence.line.number,
        "quote": sentence.text,
        **more,
    }


def _facts(sentences: Sequence[Sentence], items: _Items, used: frozenset[str]) -> list[dict[str, Any]]:
    """The new facts, each with the item that it takes the place of; `used` is what was said about tasks."""
    present = list(items.of("fact"))
    known = items.texts("fact")
    held: list[tuple[int, Claim]] = [(_BEFORE, claim(quote)) for _, quote, _ in present]
    places: dict[int, tuple[Sentence, str | None] | str] = {at: ident for at, (ident, _, _) in enumerate(present)}
    said: set[str] = set()
    for sentence in (clause for each in sentences if each.text not in used for clause in clauses(each)):
        if not is_fact(sentence):
            continue
        folded = sentence.text.casefold()
        made = claim(sentence.text, sentence.reading)
        living = [(at, held[at]) for at in [*places][-_MOST_COMPARED:]]
        before = replaced(made, [each for _, each in living], sentence.place)
        if before is not None:
            at = living[before][0]
            if _is_said_again(made, held[at][1], places[at]):
                continue
        if folded in said or folded in known:
            if before is not None and not isinstance(places[living[before][0]], str):
                places.pop(living[before][0])  # said again after what contradicted it
            continue
        said.add(folded)
        gone = None if before is None else places.pop(living[before][0])
        places[len(held)] = sentence, gone if gone is None or isinstance(gone, str) else gone[1]
        held.append((sentence.place, made))
    fresh = [each for each in places.values() if not isinstance(each, str)]
    kept = {id(each) for each in ranked((sentence for sentence, _ in fresh), _MOST_FACTS)}
    return [_item(sentence, replaces=gone) for sentence, gone in fresh if id(sentence) in kept or gone]


def _is_said_again(new: Claim, old: Claim, place: object) -> bool:
    """Whether a statement of the board is only repeated."""
    return isinstance(place, str) and new.terms <= old.terms


def _actions(
    sentences: Sequence[Sentence], items: _Items, used: set[str]
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The new tasks, and those of the board that are done or cancelled; the sentences about nothing else are `used`."""
    known = items.texts("action")
    made: list[tuple[frozenset[str], Sentence, str]] = []
    waiting = [(ident, same(quote)) for ident, quote, _ in items.of("action")]
    closed: list[dict[str, Any]] = []
    for sentence in sentences:
        for ident, wanted in list(waiting):
            if state := outcome(wanted, sentence):
                closed.append({"id": ident, "state": state, "source": sentence.line.number})
                waiting.remove((ident, wanted))
                used.add(sentence.text)
        for at in range(max(len(made) - _MOST_COMPARED, 0), len(made)):
            wanted, asked, state = made[at]
            if state == "open" and asked.place < sentence.place and (now := outcome(wanted, sentence)):
                made[at] = wanted, asked, now
                used.add(sentence.text)
        wanted_now = task(sentence)
        if wanted_now and sentence.text.casefold() not in known and all(wanted_now != each for each, _, _ in made):
            made.append((wanted_now, sentence, "open"))
            if opens(sentence):
                used.add(sentence.text)
    kept = sorted(range(len(made)), key=lambda at: (made[at][2] != "open", made[at][1].line.role != "user", -at))
    return [_item(made[at][1], state=made[at][2], replaces=None) for at in sorted(kept[:_MOST_ACTIONS])], closed


def _questions(lines: Sequence[Line], items: _Items) -> list[dict[str, Any]]:
    """The questions that nobody has answered yet."""
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
    return found[-_MOST_QUESTIONS:]


def _answered(lines: Sequence[Line], sentences: Sequence[Sentence], items: _Items) -> list[dict[str, Any]]:
    """The questions of the board that were answered since."""
    present = list(items.of("question"))
    closed = []
    for at, (ident, quote, text) in enumerate(present):
        role = next((role for role in SPEAKING if text.casefold().startswith(role)), None)
        number = answered(quote, role, lines, sentences, is_last=at == len(present) - 1)
        if number is not None:
            closed.append({"id": ident, "state": "answered", "source": number})
    return closed
