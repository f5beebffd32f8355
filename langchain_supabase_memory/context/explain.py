"""Explain what became of some words in the prompt of a past answer, from its manifest and what is stored. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final

from langchain_supabase_memory.context.explanation import RECALL_REASONS, Explanation, ExplanationPart
from langchain_supabase_memory.context.past_prompt import RebuiltPart, RebuiltPrompt, Sources, shown_sequences
from langchain_supabase_memory.context.profile_part import profile_line
from langchain_supabase_memory.humanize import pluralize
from langchain_supabase_memory.language.messages import content
from langchain_supabase_memory.language.shared_words import shared_word_ratios
from langchain_supabase_memory.operations.manifests.parts import PART_REASONS
from langchain_supabase_memory.operations.recall.search import is_related

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    from langchain_supabase_memory.context.expected_words import ExpectedWords
    from langchain_supabase_memory.context.explanation import ExplanationKind, RecallReason
    from langchain_supabase_memory.operations.boards.board import Board
    from langchain_supabase_memory.operations.manifests.manifest import Manifest
    from langchain_supabase_memory.operations.profile import ProfileItem
    from langchain_supabase_memory.operations.work import ConversationStatus
    from langchain_supabase_memory.values import Chunk, ConversationInfo, ConversationKey, Recall

_MAX_PLACES: Final = 3
"""How many messages with the words an explanation names."""

_MAX_ITEMS: Final = 3
"""How many items of a board or a profile it names."""


@dataclass(frozen=True)
class Place:
    """A message, or a passage, that has the words.

    Attributes:
        key: Its conversation.
        first: Its first message.
        last: Its last message.
        text: Its text.
        created_at: When it was said.
        chunk: The chunk that recall finds; `None` if it was found letter by letter only.
    """

    key: ConversationKey
    first: int
    last: int
    text: str
    created_at: datetime | None
    chunk: Chunk | None = None


@dataclass(frozen=True)
class PromptEvidence:
    """What was read to explain an answer.

    Attributes:
        key: The conversation.
        manifest: The manifest of the answer.
        rebuilt: Its prompt.
        sources: What the prompt was rebuilt from.
        board: The board as it was.
        profile: The profile; what held before is among it.
        places: The messages of this conversation that have the words, the oldest first.
        elsewhere: Those of other conversations of the user.
        recall: What recall finds for the question today; `None` if it was not asked.
        status: The status of the conversation with the words; `None` if it was not asked.
        info: That conversation as listed.
        embedder: The embedder's name; `None` without one.
        has_other_vectors: Whether the stored vectors are those of another embedder.
        is_complete: Whether every message was searched.
    """

    key: ConversationKey
    manifest: Manifest
    rebuilt: RebuiltPrompt
    sources: Sources
    board: Board
    profile: Sequence[ProfileItem]
    places: Sequence[Place] = ()
    elsewhere: Sequence[Place] = ()
    recall: Recall | None = None
    status: ConversationStatus | None = None
    info: ConversationInfo | None = None
    embedder: str | None = None
    has_other_vectors: bool = False
    is_complete: bool = True


class Explainer:
    """Explains one answer.

    Args:
        expected: The words that it should have known.
        evidence: What was read.
    """

    def __init__(self, expected: ExpectedWords, evidence: PromptEvidence) -> None:
        self._expected = expected
        self._evidence = evidence
        self._manifest = evidence.manifest
        self._parts = {part.name: part for part in evidence.rebuilt.parts}

    @cached_property
    def question(self) -> str | None:
        """The question; `None` if it is not stored any more."""
        for name in ("current", "recent"):
            part = self._parts.get(name)
            asked = [each for each in part.messages if each.type == "human"] if part else []
            if asked:
                return str(asked[0 if name == "current" else -1].text)
        return None

    @cached_property
    def before(self) -> list[Place]:
        """The messages of this conversation with the words that came before the question."""
        return [each for each in self._evidence.places if each.first < self._first_of_turn]

    @cached_property
    def missed(self) -> Place | None:
        """The message that the prompt should have had: the first that it did not show; `None` if it showed one."""
        if not self.before:
            return next(iter(self._elsewhere), None)
        return None if any(map(self._is_shown, self.before)) else self.before[0]

    def explain(self) -> Explanation:
        """Return the explanation."""
        places = [*self._places()]
        items = [*self._items()]
        fate = [*self._fates()]
        parts = [*places, *items, *fate]
        was_in_prompt = any(each.kind in _SHOWN for each in fate) or any(self._is_shown_item(each) for each in items)
        was_in_prompt = was_in_prompt or self._says_summary
        if not was_in_prompt and self.missed is not None:
            parts.append(self._not_recalled(self.missed))
        if not places and not items and not was_in_prompt:
            parts += self._nowhere()
        manifest = self._manifest
        unspent = f"{manifest.unspent:,} of {manifest.budget:,} {manifest.unit} unspent."
        parts.append(ExplanationPart("budget", unspent))
        return Explanation(
            manifest,
            self._expected.text,
            self.question,
            tuple(parts),
            was_in_prompt,
            self._evidence.is_complete,
        )

    @property
    def _first_of_turn(self) -> int:
        """The number of the first message of the answer's turn."""
        stored, later = shown_sequences(self._manifest, "current")
        places = [*(first for first, _ in stored), *later, self._manifest.turn, self._manifest.from_sequence]
        return min((each for each in places if each is not None), default=0)

    @property
    def _elsewhere(self) -> list[Place]:
        made_at = self._manifest.made_at
        return [
            each
            for each in self._evidence.elsewhere
            if made_at is None or each.created_at is None or each.created_at <= made_at
        ]

    def _places(self) -> Iterator[ExplanationPart]:
        """Yield where the words are stored."""
        shown = [*filter(self._is_shown, self.before)]
        rest = [each for each in self.before if each not in shown]
        for number, each in enumerate([*shown, *rest][:_MAX_PLACES]):
            yield self._part("stored", f"{'Also' if number else 'Said'} in {_messages(each)}.", each)
        if self.before:
            return
        for number, each in enumerate(self._elsewhere[:_MAX_PLACES]):
            where = f"the conversation {each.key.thread_id}"
            if each.key.agent_id != self._evidence.key.agent_id:
                where += f" with the agent {each.key.agent_id}"
            yield self._part("elsewhere", f"{'Also' if number else 'Said'} in {_messages(each)} of {where}.", each)
        if self._elsewhere:
            return
        later = [each for each in self._evidence.places if each.first > (self._manifest.to_sequence or 0)]
        turn = [each for each in self._evidence.places if each not in later]
        if turn:
            yield self._part("turn", f"Said only in the turn of this answer, in {_messages(turn[0])}.", turn[0])
        elif later:
            yield self._part("later", f"Said only after this answer, in {_messages(later[0])}.", later[0])
        elif self._evidence.elsewhere:
            after = self._evidence.elsewhere[0]
            words = f"Said only after this answer, in {_messages(after)} of the conversation {after.key.thread_id}."
            yield self._part("later", words, after)

    def _items(self) -> Iterator[ExplanationPart]:
        """Yield the items of the board and of the profile that have the words, or that a message of them supports."""
        board = self._evidence.board
        matches = [
            item for item in board.items if self._expected.is_in(item.text) or self._expected.is_in(item.quote or "")
        ]
        names = {item.id: item.text for item in board.items}
        for item in sorted(matches, key=lambda each: each.id[:8] not in self._manifest.items)[:_MAX_ITEMS]:
            if item.id[:8] in self._manifest.items:
                where = "On the board, and in the prompt"
            elif item.superseded_at is not None:
                newer = names.get(item.superseded_by or "")
                where = "On the board, and superseded" + (f" by “{newer}”" if newer else "")
            elif not item.is_open:
                where = f"On the board, and {item.state}"
            elif "board" in self._parts or self._manifest.items_left_out:
                where = "On the board, where it had no room in the prompt"
            else:
                where = "On the board, which the prompt did not show"
            yield ExplanationPart("board", f"{where}: {_quoted(item.text)}", self._evidence.key, item=item.id)
        shown = self._parts.get("board")
        lines = (
            [] if shown is None or matches else [each for each in shown.text.split("\n") if self._expected.is_in(each)]
        )
        if lines:
            yield ExplanationPart(
                "board", f"On the board, and in the prompt: {_quoted(lines[0].strip())}", self._evidence.key
            )
        yield from self._profile_items()

    def _profile_items(self) -> Iterator[ExplanationPart]:
        profile = self._evidence.profile
        for item in profile:
            if not self._expected.is_in(f"{item.subject} {item.value} {item.condition or ''}"):
                continue
            text = profile_line(item, profile).text.removeprefix("- ")
            if item.id[:8] in self._manifest.profile:
                where = "In the profile, and in the prompt"
            elif item.state == "proposed":
                where = "In the profile, where it is not used yet"
            elif item.state == "superseded":
                where = "In the profile, and superseded"
            elif "profile" in self._parts:
                where = "In the profile, where it had no room in the prompt"
            else:
                where = "In the profile, which the prompt did not show"
            yield ExplanationPart("profile", f"{where}: {_quoted(text)}", item=item.id)

    def _is_shown_item(self, part: ExplanationPart) -> bool:
        known = self._manifest.items if part.kind == "board" else self._manifest.profile
        return part.item is None or part.item[:8] in known

    def _fates(self) -> Iterator[ExplanationPart]:
        """Yield what became of the messages with the words: those that the prompt showed, else the first."""
        shown = [each for each in self.before if self._is_shown(each)]
        for each in shown[:1] or self.before[:1] or self._elsewhere[:1]:
            part = self._fate(each)
            if part is not None:
                yield part
        if not self.before and self._says_summary:
            yield self._summary_part(None)

    def _fate(self, place: Place) -> ExplanationPart | None:
        kind = self._how_shown(place)
        if kind == "verbatim":
            return self._part("verbatim", "In the prompt word for word.", place)
        if kind == "cut":
            return self._part("cut", "In the prompt, but cut before these words.", place)
        if kind == "recalled":
            return self._part("recalled", "Recalled into the prompt as a passage.", place)
        if kind == "reference":
            return self._part("reference", "In the prompt, as a turn that the question pointed at.", place)
        if place.key != self._evidence.key:
            return None
        summary = self._parts.get("summary")
        if summary is not None and summary.was.last is not None and place.last <= summary.was.last:
            return self._summary_part(place)
        for first, last, reason in self._manifest.omitted:
            if first <= place.last and last >= place.first:
                reasons = {str(name): words for name, words in PART_REASONS.items()}
                words = reasons.get(reason, reasons["other"])
                return self._part("left_out", f"Left out of the prompt: {words[0].lower()}{words[1:]}", place)
        if self._manifest.cut or self._manifest.opted_out:
            return None
        return self._part("left_out", "Not in the prompt.", place)

    @cached_property
    def _says_summary(self) -> bool:
        summary = self._parts.get("summary")
        return summary is not None and self._expected.is_in(summary.text)

    def _summary_part(self, place: Place | None) -> ExplanationPart:
        summary = self._parts["summary"]
        number = summary.was.number
        excerpt = self._expected.excerpt(_content(self._evidence.sources, summary))
        if self._says_summary:
            text = f"Summarized in segment {number}, which says {_quoted(excerpt)}"
        elif not summary.text:
            text = f"Summarized in segment {number}, whose text then is not stored any more."
        else:
            text = f"Summarized in segment {number}, which leaves it out: {_quoted(excerpt)}"
        if "resummarized" in summary.changes and summary.text:
            text += " It was rewritten since."
        key, first, last = (None, None, None) if place is None else (place.key, place.first, place.last)
        return ExplanationPart("summary", text, key or self._evidence.key, first, last, segment=number)

    def _is_shown(self, place: Place) -> bool:
        return self._how_shown(place) in _SHOWN

    def _how_shown(self, place: Place) -> ExplanationKind | None:
        """Return how the prompt showed a message."""
        manifest = self._manifest
        if place.key != self._evidence.key:
            ids = {each.id for each in manifest.passages}
            return "recalled" if place.chunk is not None and place.chunk.id[:8] in ids else None
        for first, last in self._verbatim:
            if first <= place.last and last >= place.first:
                is_cut = any(place.first <= each <= place.last for each in manifest.details.altered)
                return "cut" if is_cut and not self._expected.is_in(_words(self._parts["recent"])) else "verbatim"
        for each in manifest.passages:
            if (
                each.first is not None
                and each.last is not None
                and each.first <= place.last
                and each.last >= place.first
            ):
                return "recalled"
        reference = self._parts.get("reference")
        if reference is not None and reference.was.first is not None and reference.was.last is not None:
            return "reference" if reference.was.first <= place.first <= reference.was.last else None
        return None

    @cached_property
    def _verbatim(self) -> list[tuple[int, int]]:
        if "recent" not in self._parts:
            return []
        stored, later = shown_sequences(self._manifest, "recent")
        return [*stored, *((number, number) for number in later)]

    def _not_recalled(self, place: Place) -> ExplanationPart:
        reasons = tuple(dict.fromkeys(self._reasons(place)))
        text = f"Not recalled: {', '.join(RECALL_REASONS[each] for each in reasons)}."
        return ExplanationPart("not_recalled", text, place.key, place.first, place.last, reasons=reasons)

    def _reasons(self, place: Place) -> Iterator[RecallReason]:
        """Yield why a message was not recalled."""
        evidence, manifest = self._evidence, self._manifest
        recall, info, status = evidence.recall, evidence.info, evidence.status
        if manifest.recall == "none":
            yield "off"
            return
        if info is not None and info.private:
            yield "private"
            return
        if info is not None and info.opted_out_at is not None:
            yield "opted_out"
            return
        if place.key != evidence.key and manifest.recall in ("conversation", None):
            yield "other_conversation"
            return
        if place.key.agent_id != evidence.key.agent_id and manifest.recall == "agent":
            yield "other_agent"
            return
        if status is not None and status.indexed_through < place.last and place.chunk is None:
            yield "not_indexed"
            return
        if self.question is None:
            yield "no_question"
            return
        if recall is None:
            return
        yield from self._ranking_reasons(place, recall)

    def _ranking_reasons(self, place: Place, recall: Recall) -> Iterator[RecallReason]:
        """Yield why recall did not rank a message high enough, by what it finds for the question today."""
        manifest, embedder = self._manifest, self._evidence.embedder
        ranked = [each for each in recall.chunks if self._was_candidate(each)]
        chunk = next((each for each in ranked if _is_of(each, place)), None)
        if chunk is not None and not recall.fits:
            yield "not_enough"
            return
        if chunk is not None and ranked.index(chunk) < max(len(manifest.passages), 1):
            size = len(chunk.content) if manifest.unit == "characters" else len(chunk.content) // _CHARACTERS_A_TOKEN
            yield "no_room" if size > manifest.unspent else "indexed_later"
            return
        yield "outranked" if shared_word_ratios(self.question or "", [place.text])[0] else "no_words"
        if embedder is None:
            yield "no_embedder"
        elif self._evidence.has_other_vectors:
            yield "other_vectors"
        elif recall.failed or "recall" in manifest.failed:
            yield "embedder_failed"
        elif chunk is None or not is_related(chunk, embedder):
            yield "not_related"

    def _was_candidate(self, chunk: Chunk) -> bool:
        """Return whether a chunk could have been recalled: it was said before the question, and not shown anyway."""
        here = self._evidence.key
        if (chunk.thread_id, chunk.agent_id) != (here.thread_id, here.agent_id):
            return self._manifest.made_at is None or chunk.said_at <= self._manifest.made_at
        is_shown = any(first <= chunk.from_sequence and chunk.to_sequence <= last for first, last in self._verbatim)
        return chunk.to_sequence < self._first_of_turn and not is_shown

    def _nowhere(self) -> Iterator[ExplanationPart]:
        """Yield that nothing stored has the words, and how much was removed."""
        rest = "" if self._evidence.is_complete else " among those that were searched"
        yield ExplanationPart("never", f"Said nowhere: no stored message, item or summary has these words{rest}.")
        status = self._evidence.status
        removed = 0 if status is None else max(0, status.next_sequence - status.messages)
        if removed:
            text = f"{pluralize(removed, 'message')} of this conversation {'is' if removed == 1 else 'are'}"
            yield ExplanationPart("removed", f"{text} not stored any more: expired or forgotten.", self._evidence.key)

    def _part(self, kind: ExplanationKind, text: str, place: Place) -> ExplanationPart:
        return ExplanationPart(kind, text, place.key, place.first, place.last)


_SHOWN: Final[frozenset[ExplanationKind]] = frozenset({"verbatim", "recalled", "reference"})

_CHARACTERS_A_TOKEN: Final = 4


def _words(part: RebuiltPart) -> str:
    return "\n".join(content.line(each) for each in part.messages)


def _content(sources: Sources, summary: RebuiltPart) -> str:
    """Return the words of a summary without the frame that the prompt puts around it."""
    segment = sources.segment
    return summary.text if segment is None or segment.number != summary.was.number else segment.content


def _quoted(text: str) -> str:
    """Return a quote as the end of a sentence."""
    return f"“{text}”" if text.endswith((".", "!", "?", "…")) else f"“{text}”."


def _is_of(chunk: Chunk, place: Place) -> bool:
    """Return whether a chunk has a message of a place."""
    return (
        (chunk.thread_id, chunk.agent_id) == (place.key.thread_id, place.key.agent_id)
        and chunk.from_sequence <= place.last
        and chunk.to_sequence >= place.first
    )


def _messages(place: Place) -> str:
    if place.first == place.last:
        return f"message {place.first:,}"
    return f"messages {place.first:,} to {place.last:,}"
