"""The context pack: what the next prompt receives, as messages or as text."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from langchain_supabase_memory.context.alternate import alternate_roles
from langchain_supabase_memory.context.board import BoardPart
from langchain_supabase_memory.context.fit import FittedContext
from langchain_supabase_memory.context.manifest import encode_manifest, is_reference
from langchain_supabase_memory.context.profile_part import ProfilePart
from langchain_supabase_memory.context.recall_part import RecallPart
from langchain_supabase_memory.context.report import ContextReport, Section
from langchain_supabase_memory.context.shared_part import SharedPart
from langchain_supabase_memory.context.summary_part import BORDER
from langchain_supabase_memory.context.token_meter import Sizes
from langchain_supabase_memory.context.turn_parts import NOWHERE, Position, TurnParts, with_parts
from langchain_supabase_memory.humanize import pluralize
from langchain_supabase_memory.language.messages import chaining, content
from langchain_supabase_memory.language.messages.blocks import PromptEntry
from langchain_supabase_memory.operations.manifests.beginning import Beginning, Move
from langchain_supabase_memory.settings import ContextBudget
from langchain_supabase_memory.values import ConversationKey, RecallScope

if TYPE_CHECKING:
    from collections.abc import Iterable

    from langchain_core.messages import BaseMessage

    from langchain_supabase_memory.operations.manifests.manifest import Manifest
    from langchain_supabase_memory.values import Chunk, Segment


OPTED_OUT = "not to be remembered"
"""Why what is not shown is not summarized either."""


@dataclass(frozen=True)
class ContextPack:
    """What the next prompt receives of a conversation, within its budget.

    Attributes:
        key: The conversation.
        budget: The budget it was fitted to.
        fitted: What was chosen; its parts are served by the properties below.
        full_messages: How many messages the whole history has.
        full_characters: Characters of the whole history.
        full_tokens: Approximate tokens of the whole history.
        through_sequence: The last message that any stored summary covers; -1 if none.
        due: Whether enough is not yet summarized for a summary to be made.
        due_through: The last message that such a summary has to cover, as it is not shown whole; `None` if none has.
        summary_error: Why the last try of a summary failed, in a word; `None` if it did not.
        remembered: What was recalled; its parts are served by the properties below.
        board: What is shown of the board: `board.items`, what a person wrote, and how much is left out.
        shared: What is shown of the boards of spaces and other agents, and which spaces may not be read.
        profile: What is shown of the user's profile, at the beginning.
        taken: What these four weigh, in each form of the pack.
        work: How a worker stands to the conversation: `running` under a lease, `due`, `waiting` after a failure or
            `dead`; `None` if it has nothing to do there.
        lacks_summary: Whether something is left out that no summary stands for.
        unattended: Whether something is left out, and no worker has taken the conversation up for an hour.
        expired: Whether something is beyond the retention, and so not shown, and not removed yet.
        index_due: Whether something that is not shown can not be recalled yet.
        index_soon: Whether so much of what is shown can not be recalled yet that a question, or the next segment, may
            take it out of view; or anything, where recall looks into other conversations.
        opted_out: Whether nothing is derived from the conversation, so that only recent messages are shown.
        recall_error: Why words alone found what was recalled though there is an embedder; `None` if they did not.
        rerank_error: Why the reranker did not order what was recalled; `None` if it did, or if there is none.
        nothing_fits: Whether recall found nothing that fits the question, so that nothing recalled is shown.
        branch_token: Names the state of a graph that is stored; `None` if none is.
        position: The state of the conversation in which it was read.
        moved: Why the prompt's beginning is another than that of the prompt before; `None` if it is the same, or if
            this process made none before.
        recall_scope: Where recall searched; `None` if it did not.
    """

    key: ConversationKey
    budget: ContextBudget
    fitted: FittedContext = field(repr=False)
    full_messages: int = 0
    full_characters: int = 0
    full_tokens: int = 0
    through_sequence: int = -1
    due: bool = False
    due_through: int | None = None
    summary_error: str | None = None
    remembered: RecallPart = field(default_factory=RecallPart, repr=False)
    board: BoardPart = field(default_factory=BoardPart, repr=False)
    shared: SharedPart = field(default_factory=SharedPart, repr=False)
    profile: ProfilePart = field(default_factory=ProfilePart, repr=False)
    taken: Sizes = field(default_factory=Sizes)
    work: str | None = None
    lacks_summary: bool = False
    unattended: bool = False
    expired: bool = False
    index_due: bool = False
    index_soon: bool = False
    opted_out: bool = False
    recall_error: str | None = None
    rerank_error: str | None = None
    nothing_fits: bool = False
    branch_token: str | None = None
    position: Position = NOWHERE
    moved: Move | None = None
    recall_scope: RecallScope | None = None

    @property
    def recalled(self) -> list[Chunk]:
        """What was recalled and is shown beside the recent messages, the best first."""
        return list(self.remembered.chunks)

    @property
    def summary(self) -> Segment | None:
        """The segment whose summary is shown; `None` without one."""
        return self.fitted.head.summary

    @property
    def messages(self) -> list[BaseMessage]:
        """The history for the prompt: the fenced summary, the recent messages verbatim, the board, what was recalled.

        The current user message is not among them: it comes after. `prompt` has both, and the board and what was
        recalled in the message of the question. What changes from turn to turn comes last, so that a provider's prompt
        cache holds. A provider that is asked to go on from a response it holds would not be sent the summary at all, so
        ids of responses are left out here; `SupabaseMemoryMiddleware` keeps them as long as they fit.
        """
        history = self._history
        return chaining.cut(alternate_roles(history, ends=True) if self.budget.alternate_roles else history)

    @property
    def prompt(self) -> list[BaseMessage]:
        """The history and the current turn: all messages of the next request, but for your own system message."""
        return chaining.cut(self.chained)

    @property
    def chained(self) -> list[BaseMessage]:
        """`prompt` with the ids of responses left in, for who makes sure that they fit (`chaining.prepared`)."""
        current = [entry.message for entry in self.fitted.current]
        beginning = [*self._head, *(entry.message for entry in self.fitted.recent)]
        messages = [*beginning, *with_parts(current, self._turn_messages)] if current else self._history
        return alternate_roles(messages) if self.budget.alternate_roles else messages

    @cached_property
    def omitted(self) -> list[tuple[int, int, str]]:
        """First, last and reason of each range that is neither shown whole nor covered by the summary shown."""
        singles = [(sequence, sequence, why) for sequence, why in self.fitted.omitted.items()]
        ranges = [*self.fitted.ranges, *singles]
        if self.opted_out:
            ranges = [(first, last, f"{why}; {OPTED_OUT}") for first, last, why in ranges]
        return merge_ranges(ranges)

    @property
    def clipped(self) -> list[int]:
        """The sequences of messages that are shown cut."""
        return sorted(self.fitted.truncated)

    @property
    def note(self) -> str:
        """That older messages are omitted, and how many are shown; empty if none is."""
        return self.fitted.head.note

    def text(self) -> str:
        """The history as text, for a prompt of your own: "Conversation so far", summary, recent wording.

        Nothing that was said can begin a line, so it can neither pose as another speaker nor end the text.
        """
        return "\n".join(self._lines())

    def block(self) -> str:
        """The same between two lines `=== CONVERSATION CONTEXT ===`."""
        lines = self._lines()
        return "\n".join([BORDER, *lines, BORDER]) if lines else ""

    def report(self, *, previous_response_id: bool | None = None) -> ContextReport:
        """What is sent and why, and what resending everything would cost.

        Args:
            previous_response_id: Whether the provider was asked to go on from a response that it holds.
        """
        recent = [entry.message for entry in self.fitted.recent]
        current = [entry.message for entry in self.fitted.current]
        summary = self.summary
        unit = "tokens" if self.budget.tokens is not None else "characters"
        limit = self.budget.tokens if self.budget.tokens is not None else self.budget.characters
        messages, characters, tokens = self.full_history
        return ContextReport(
            thread_id=self.key.thread_id,
            sections=[*self.sections],
            message_ids=[str(message.id) for message in [*recent, *current]],
            budget=f"{limit:,} {unit}",
            used=self.used,
            summary=None if summary is None else summary.number,
            covered=None if summary is None else (0, summary.to_sequence),
            through_sequence=self.through_sequence,
            omitted=self.omitted,
            clipped=self.clipped,
            full_messages=messages,
            full_characters=characters,
            full_tokens=tokens,
            previous_response_id=previous_response_id,
            summary_error=self.summary_error,
            recall_error=self.recall_error,
            rerank_error=self.rerank_error,
            nothing_fits=self.nothing_fits,
            board_left_out=self.board.left_out,
            refused_spaces=self.shared.refused,
            moved=self.moved,
        )

    @property
    def used(self) -> int:
        """What it weighs against its budget, in the budget's unit."""
        return (self.fitted.forms + self.taken).heavier

    @cached_property
    def full_history(self) -> tuple[int, int, int]:
        """Messages, characters and approximate tokens of the whole history, with the current turn."""
        # That may not be stored yet; resending everything would send it all the same.
        messages, characters, tokens = _sum(entry for entry in self.fitted.current if not entry.sequences)
        return self.full_messages + messages, self.full_characters + characters, self.full_tokens + tokens

    @cached_property
    def sections(self) -> list[Section]:
        """The parts of the prompt with what they weigh, in the order of the report."""
        shown = [sequence for entry in self.fitted.recent for sequence in entry.sequences]
        summary = self.summary
        sections = []
        if self.profile.message is not None:
            sections.append(_section("profile", [PromptEntry(self.profile.message)], self.profile.has_content))
        if self.fitted.head_message is not None:
            covers = "" if summary is None else f"messages 0 to {summary.to_sequence}"
            head = [PromptEntry(self.fitted.head_message)]
            sections.append(_section("note" if summary is None else "summary", head, covers))
        covers = f"messages {shown[0]} to {shown[-1]}" if shown else "nothing yet"
        sections.append(_section("recent", self.fitted.recent, covers))
        if self.board.message is not None:
            sections.append(_section("board", [PromptEntry(self.board.message)], self.board.has_content))
        if self.shared.message is not None:
            sections.append(_section("shared", [PromptEntry(self.shared.message)], self.shared.has_content))
        found = self.remembered.message
        if found is not None:
            count, threads = len(self.recalled), len({(each.thread_id, each.agent_id) for each in self.recalled})
            covers = pluralize(count, "passage") + (f" of {threads} conversations" if threads > 1 else "")
            sections.append(_section("recalled", [PromptEntry(found)], covers))
        if self.fitted.current:
            sections.append(_section("current", self.fitted.current, "the turn under way"))
        return sections

    @property
    def manifest(self) -> Manifest:
        """What stands in it and why, in numbers: `Conversation.append(messages, pack=pack)` keeps it with an answer."""
        from langchain_supabase_memory.operations.manifests.manifest import manifest

        return manifest(encode_manifest(self, "api"))

    def _repr_html_(self) -> str:
        return self.report()._repr_html_()

    def __rich__(self) -> Any:
        """The report's table, for a terminal (needs `rich`)."""
        return self.report().__rich__()

    @property
    def first_sequence(self) -> int | None:
        """The number of the first message that is shown verbatim; `None` if none that is stored is."""
        shown = (entry.sequences for entry in (*self.fitted.recent, *self.fitted.current))
        return next((sequences[0] for sequences in shown if sequences), None)

    @property
    def _head(self) -> list[BaseMessage]:
        return [each for each in (self.profile.message, self.fitted.head_message) if each is not None]

    @property
    def beginning(self) -> Beginning:
        """What the prompt begins with, before what belongs to the turn."""
        summary, position = self.summary, self.position
        return Beginning(
            unit="characters" if self.budget.tokens is None else "tokens",
            budget=self.budget.tokens or self.budget.characters or 0,
            segment=None if summary is None else summary.number,
            segment_id=None if summary is None else summary.id,
            first=next((entry.sequences[0] for entry in self.fitted.recent if entry.sequences), None),
            revision=position.revision,
            expired_through=position.expired_through,
            summary=len(self.fitted.head.text),
            profile=tuple(item.id[:8] for item in self.profile.items),
            gives_room=self.fitted.gives_room,
            messages=tuple(
                hash((message.type, str(message.text)))
                for message in (*self._head, *(entry.message for entry in self.fitted.recent))
            ),
        )

    @property
    def turn_parts(self) -> TurnParts:
        """What belongs to the current turn alone, for the further prompts of its tool loop."""
        reference = next((each.message for each in self.fitted.current if is_reference(each.message)), None)
        return TurnParts(
            self.key,
            self.board,
            self.shared,
            self.profile,
            self.remembered,
            reference,
            self.position,
            self.fitted.gives_room,
        )

    @property
    def _turn_messages(self) -> list[BaseMessage]:
        parts = (self.board.message, self.shared.message, self.remembered.message)
        return [message for message in parts if message is not None]

    @property
    def _history(self) -> list[BaseMessage]:
        recent, found = [entry.message for entry in self.fitted.recent], self._turn_messages
        # What changes from turn to turn comes last; but nothing stands between calls and results that are to come.
        if not self.fitted.current and recent and (content.tool_calls(recent[-1]) or recent[-1].type == "tool"):
            return [*self._head, *found, *recent]
        return [*self._head, *recent, *found]

    def _lines(self) -> list[str]:
        recent = [content.line(entry.message) for entry in self.fitted.recent]
        beside = [*self.board.lines(), *self.shared.lines(), *self.remembered.lines()]
        if not recent and not self._head and not beside:
            return []
        return [
            *self.profile.lines(),
            *self.fitted.head.lines(),
            *beside,
            *(["Recent messages:", *recent] if recent else []),
        ]


def merge_ranges(ranges: Iterable[tuple[int, int, str]]) -> list[tuple[int, int, str]]:
    """Ranges in order; those next to one another with one reason become one."""
    made: list[tuple[int, int, str]] = []
    for first, last, why in sorted(ranges):
        if made and made[-1][2] == why and first <= made[-1][1] + 1:
            made[-1] = (made[-1][0], max(last, made[-1][1]), why)
        else:
            made.append((first, last, why))
    return made


def _section(name: str, entries: Iterable[PromptEntry], covers: str) -> Section:
    return Section(name, *_sum(entries), covers)


def _sum(entries: Iterable[PromptEntry]) -> tuple[int, int, int]:
    """How many messages, their characters and their tokens."""
    counts = zip((0, 0, 0), *(entry.counts for entry in entries), strict=True)
    messages, characters, tokens = map(sum, counts)
    return messages, characters, tokens
