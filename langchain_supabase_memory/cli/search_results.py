"""The results of `search`: recalled chunks, and the messages that contain every word."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC
from typing import TYPE_CHECKING, Final

from rich.text import Text

from langchain_supabase_memory.cli.formatting import format_id, spinner
from langchain_supabase_memory.cli.highlight import CONTEXT_CHARACTERS, Highlighter
from langchain_supabase_memory.cli.text_layout import STYLE_BOLD, STYLE_DIM, TextLayout
from langchain_supabase_memory.cli.transcript import STYLES
from langchain_supabase_memory.language.messages import content
from langchain_supabase_memory.language.messages.invisible import spell_out
from langchain_supabase_memory.operations.recall import exact_search, render

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from rich.console import Console

    from langchain_supabase_memory.memory.memory import SupabaseMemory
    from langchain_supabase_memory.values import Chunk, FoundMessage, Recall, Role, Scope

_MAX_CHARACTERS: Final = 400
"""The maximum number of characters shown of a recalled chunk."""


@dataclass(frozen=True)
class Hit:
    """A message that contains the words.

    Attributes:
        thread_id: The thread of its conversation.
        agent_id: The agent.
        sequence: Its number in the conversation.
        said_at: The time of the message.
        role: The speaker's role.
        excerpts: Excerpts around the words.
    """

    thread_id: str
    agent_id: str
    sequence: int
    said_at: datetime
    role: Role
    excerpts: list[str] = field(repr=False)


@dataclass(frozen=True)
class Matches:
    """Messages that contain the words, the newest first.

    Attributes:
        hits: The messages.
        has_more: Whether there are more.
        highlighter: The highlighter of the words.
    """

    hits: list[Hit]
    has_more: bool
    highlighter: Highlighter


def find_matches(memory: SupabaseMemory, scope: Scope, texts: Sequence[str], limit: int) -> Matches:
    """Find the newest messages that contain all given texts.

    Args:
        memory: The memory.
        scope: The scope to search.
        texts: The words or phrases, ignoring case.
        limit: The maximum number of messages.
    """
    highlighter, hits, read, after = Highlighter(texts), list[Hit](), 0, None
    with spinner("Searching the messages …") as update:
        while len(hits) <= limit:
            query = exact_search.ExactQuery(texts=texts, limit=min(exact_search.MAX_LIMIT, limit + 1 - len(hits)))
            page = memory._services.run(
                exact_search.find_page(scope, query, after=after, retention=memory._services.settings.retention)
            )
            hits += [_hit(each, highlighter) for each in page]
            read, after = read + page.read, page.after
            update(f"Searching the messages … {read:,}")
            if after is None:
                break
    return Matches(hits[:limit], len(hits) > limit, highlighter)


def _hit(match: FoundMessage, highlighter: Highlighter) -> Hit:
    stored = match.message
    assert stored.role is not None  # a search always selects these columns
    assert stored.created_at is not None
    text = content.display_text(stored.message)
    excerpts = highlighter.excerpts(text) or [highlighter.excerpt(text, 2 * CONTEXT_CHARACTERS)]
    return Hit(match.thread_id, match.agent_id, stored.sequence, stored.created_at, stored.role, excerpts)


class SearchResults:
    """Print the results of a search.

    Args:
        console: The output console.
        with_ids: Whether each result shows its conversation.
    """

    def __init__(self, console: Console, *, with_ids: bool) -> None:
        self._layout = TextLayout(console)
        self._with_ids = with_ids

    def print_recall(self, recall: Recall, query: str) -> None:
        """Print the recalled chunks.

        Args:
            recall: The recalled chunks.
            query: The search query.
        """
        if not recall.chunks:
            self._layout.text("Recall found nothing for these words.", style=STYLE_DIM)
            if not recall.searched:
                self._layout.text("Nothing is indexed here yet. Run: supabase-memory worker --drain", style=STYLE_DIM)
            return
        highlighter = Highlighter(query.split())
        self._layout.text("Recalled, best first", style=STYLE_BOLD)
        for each in recall.chunks:
            name = content.speaker(content.LABELS[each.role], each.speaker)
            self._heading(each, each.from_sequence, name)
            self._layout.text(highlighter.mark(highlighter.excerpt(each.content, _MAX_CHARACTERS)), indent=2)
            for note in render.notes(each, UTC):
                self._layout.text(spell_out(note), indent=2, style=STYLE_DIM)
            if each.score is not None:
                parts = sorted(each.score_parts.items(), key=lambda part: -abs(part[1]))
                terms = " ".join(f"{value:+.2f} {name}" for name, value in parts)
                self._layout.text(f"  {each.score:.2f} = {terms}", style=STYLE_DIM)

    def print_matches(self, matches: Matches, limit: int) -> None:
        """Print the messages that contain every word.

        Args:
            matches: The messages.
            limit: The maximum number of messages of this search.
        """
        self._layout.blank()
        if not matches.hits:
            self._layout.text("No message contains all of these words.", style=STYLE_DIM)
            return
        self._layout.text("Messages, newest first", style=STYLE_BOLD)
        for hit in matches.hits:
            self._heading(hit, hit.sequence, content.LABELS[hit.role])
            for each in hit.excerpts:
                self._layout.text(matches.highlighter.mark(each), indent=2)
        if matches.has_more:
            self._layout.blank()
            self._layout.text(f"There are more than these {limit}. --limit shows more.", style=STYLE_DIM)

    def _heading(self, result: Hit | Chunk, sequence: int, name: str) -> None:
        ids = f"  {format_id(result.thread_id)}, with {format_id(result.agent_id)}" if self._with_ids else ""
        reference = f"  {result.said_at.astimezone():%Y-%m-%d %H:%M}  [{sequence}]{ids}"
        self._layout.blank()
        self._layout.text(Text.assemble((spell_out(name).strip(), STYLES[result.role]), (reference, STYLE_DIM)))
