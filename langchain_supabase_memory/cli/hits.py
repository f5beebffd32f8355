"""What a search has found, for a person: where it was said, when and by whom, and the words in it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rich.text import Text

from langchain_supabase_memory.cli.finding import Words
from langchain_supabase_memory.cli.look import shown_id
from langchain_supabase_memory.cli.sheet import LOUD, QUIET, Sheet
from langchain_supabase_memory.cli.transcript import STYLES
from langchain_supabase_memory.language.messages.content import LABELS, speaker
from langchain_supabase_memory.language.messages.invisible import spell_out

if TYPE_CHECKING:
    from datetime import datetime

    from rich.console import Console

    from langchain_supabase_memory.cli.finding import Excerpt, Found, Hit
    from langchain_supabase_memory.values import Chunk, Recall, Role

_LONGEST: Final = 400
"""The most characters that are shown of what is recalled."""

_MARK: Final = "bold black on yellow"


class Hits:
    """What is printed of a search.

    Args:
        console: Where to.
    """

    def __init__(self, console: Console) -> None:
        self._sheet = Sheet(console)

    def recalled(self, recalled: Recall, query: str, *, is_of_one: bool) -> None:
        """What recall gave.

        Args:
            recalled: What it gave.
            query: The words that were looked for.
            is_of_one: Whether only one conversation was asked, which need not be named.
        """
        if not recalled.chunks:
            self._sheet.lines("Nothing is recalled by these words.", style=QUIET)
            if not recalled.searched:
                self._sheet.lines(
                    "Nothing is indexed here yet: `supabase-memory worker --drain` does that.", style=QUIET
                )
            return
        words = Words(query.split())
        self._sheet.lines("Recalled, the best first", style=LOUD)
        for each in recalled.chunks:
            where = "" if is_of_one else _where(each)
            name = speaker(LABELS[each.role], each.speaker)
            self._place(each.from_sequence, each.said_at, each.role, name, where)
            self._excerpt(words.excerpt(each.content, _LONGEST))
            parts = sorted(each.score_parts.items(), key=lambda part: -abs(part[1]))
            if each.score is not None:
                self._sheet.lines(
                    f"  {each.score:.2f} = " + " ".join(f"{value:+.2f} {name}" for name, value in parts), style=QUIET
                )

    def found(self, found: Found, limit: int, *, is_of_one: bool) -> None:
        """Where the words stand.

        Args:
            found: Where.
            limit: The most messages that were asked for.
            is_of_one: Whether only one conversation was asked, which need not be named.
        """
        self._sheet.blank()
        if not found.hits:
            self._sheet.lines("No message holds every one of these words.", style=QUIET)
            return
        self._sheet.lines("Said, the newest first", style=LOUD)
        for hit in found.hits:
            where = "" if is_of_one else _where(hit)
            self._place(hit.sequence, hit.said_at, hit.role, LABELS[hit.role], where)
            for each in hit.excerpts:
                self._excerpt(each)
        if found.is_cut:
            self._sheet.blank()
            self._sheet.lines(f"There are more than these {limit}. --limit shows more.", style=QUIET)

    def _place(self, sequence: int, said_at: datetime, role: Role, name: str, where: str = "") -> None:
        at = said_at.astimezone()
        self._sheet.blank()
        place = f"  {at:%Y-%m-%d %H:%M}  [{sequence}]" + (f"  {where}" if where else "")
        self._sheet.line(Text.assemble((spell_out(name).strip(), STYLES[role]), (place, QUIET)))

    def _excerpt(self, excerpt: Excerpt) -> None:
        line = Text(excerpt.text)
        for start, end in excerpt.marks:
            line.stylize(_MARK, start, end)
        self._sheet.line(line, indent=2)


def _where(hit: Hit | Chunk) -> str:
    return f"{shown_id(hit.thread_id)}, with {shown_id(hit.agent_id)}"
