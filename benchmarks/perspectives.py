"""Measure whether a perspective shows an agent what its role needs, against the order without one.

`perspectives.json` has two invented boards of 60 items each, and for each of four roles its perspective and the items
that it needs. They were labeled before anything was measured. The first board chose how words are compared;
the second is held out: it was written before, and has changed nothing. A fact's importance is what the memory gives it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from benchmarks.harness import Table
from langchain_supabase_memory.context.board import BoardPart
from langchain_supabase_memory.language.extractive import facts
from langchain_supabase_memory.operations.boards.kinds import BOARD_KINDS
from langchain_supabase_memory.operations.boards.perspective import Perspective

if TYPE_CHECKING:
    from collections.abc import Mapping

    from benchmarks.services import Lab

FIRST: Final = 10
"""How many of the first items are looked at."""

_FROM: Final = datetime(2026, 6, 1, 9, tzinfo=UTC)


@dataclass(frozen=True)
class Role:
    """A role that reads a board.

    Attributes:
        board: The name of the board.
        name: Its name.
        perspective: What it watches.
        needed: The ids of the items that it needs.
        document: The board, as `memory_context` returns it.
    """

    board: str
    name: str
    perspective: Perspective
    needed: frozenset[str]
    document: Mapping[str, Any]

    def share(self, perspective: Perspective | None) -> float:
        """Return the share of what the role needs that is among the first items."""
        part = BoardPart.from_document(self.document, 200, perspective=perspective)
        return sum(item.id in self.needed for item in part.items[:FIRST]) / len(self.needed)


@cache
def roles() -> list[Role]:
    """Return the roles of all boards."""
    boards = json.loads(Path(__file__).with_suffix(".json").read_text(encoding="utf-8"))["boards"]
    return [
        Role(
            board["name"],
            name,
            Perspective(**each),
            frozenset(str(place) for place, item in enumerate(board["items"]) if name in item["needed_by"]),
            _document(board["items"]),
        )
        for board in boards
        for name, each in board["roles"].items()
    ]


def _document(items: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the board of items that were mentioned one after the other."""
    rows = []
    for place, item in enumerate(items):
        kind, seen = BOARD_KINDS[item["kind"]], (_FROM + timedelta(hours=place)).isoformat()
        row = dict.fromkeys(("superseded_by", "superseded_at", "edited_by", "editor_kind", "edited_at", "quote"))
        row |= {"id": str(place), "kind": kind.kind, "type": item.get("type"), "text": item["text"]}
        row |= {"state": kind.states[0], "message_ids": [str(place)], "sequences": [place], "version": 1}
        row |= {"first_seen_at": seen, "last_seen_at": seen, "pinned": False, "author": "model"}
        row["importance"] = facts.importance(item["text"]) if kind.is_rated else 0.7
        rows.append(row)
    return {"items": rows, "edited_summary": None, "editor_kind": None, "context_notes": ""}


async def run(_: Lab) -> list[Table]:
    rows: list[list[str | float]] = []
    for board in dict.fromkeys(role.board for role in roles()):
        own = [role for role in roles() if role.board == board]
        shares = [(role.share(None), role.share(role.perspective)) for role in own]
        rows += [_row(f"{board}: {role.name}", *each) for role, each in zip(own, shares, strict=True)]
        rows.append(_row(f"{board}: mean", *(sum(each) / len(own) for each in zip(*shares, strict=True))))
    return [
        Table(
            f"What a role needs in the first {FIRST} of 60 items of a board, in per cent",
            ["board and role", "plain order", "its perspective", "gain"],
            rows,
            ["The second board is held out. A role needs 10 to 12 items, so 83 to 100 per cent can be reached."],
        )
    ]


def _row(name: str, plain: float, seen: float) -> list[str | float]:
    return [name, 100 * plain, 100 * seen, 100 * (seen - plain)]
