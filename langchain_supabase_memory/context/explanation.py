"""Why an answer did not know something, as a value: what is known of the words, each part with its place."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

from langchain_supabase_memory.operations.manifests.manifest import Manifest
from langchain_supabase_memory.values import ConversationKey

ExplanationKind: TypeAlias = Literal[
    "stored", "verbatim", "cut", "summary", "recalled", "reference", "board", "profile", "left_out", "not_recalled",
    "later", "turn", "elsewhere", "removed", "never", "budget",
]  # fmt: skip
"""What a part of an explanation says.

Where the words are `stored`: in this conversation, or `elsewhere`, in another one of the user. In the prompt:
`verbatim` in a message, `cut` from one, in the `summary` that stands for it, in a `recalled` passage, in the turn that
was pointed at (`reference`), on the `board` or in the `profile`, which also say so of items that it did not show. Not
in it: `left_out` for the budget or another reason, or `not_recalled`. Stored `later` than the answer, or only in its
own `turn`. Messages were `removed` since; nothing stored has the words (`never`). What was left of the `budget`.
"""

RecallReason: TypeAlias = Literal[
    "off", "opted_out", "private", "other_conversation", "other_agent", "not_indexed", "no_question", "no_words",
    "no_embedder", "other_vectors", "embedder_failed", "not_related", "not_enough", "outranked", "no_room",
    "indexed_later",
]  # fmt: skip
"""Why a passage was not recalled: `RECALL_REASONS` has each as words."""

RECALL_REASONS: Final[dict[RecallReason, str]] = {
    "off": "recall was off",
    "opted_out": "the conversation is opted out",
    "private": "the conversation is private",
    "other_conversation": "recall searched this conversation only",
    "other_agent": "recall searched conversations with this agent only",
    "not_indexed": "not indexed yet",
    "no_question": "the question is not stored any more",
    "no_words": "no word in common with the question",
    "no_embedder": "no embedder",
    "other_vectors": "its vectors are of another embedder",
    "embedder_failed": "the embedder failed",
    "not_related": "too far from the question in meaning",
    "not_enough": "too little of the question in all that recall finds",
    "outranked": "other passages fit the question better",
    "no_room": "no room for it in the budget",
    "indexed_later": "recall finds it now, so it was indexed later",
}
"""Each reason in words, as a sentence has it after `Not recalled:`."""


@dataclass(frozen=True)
class ExplanationPart:
    """A part of an explanation: a sentence, and the place that it is about.

    Attributes:
        kind: What it says: see `ExplanationKind`.
        text: The sentence.
        key: The conversation of `first` and `last`; `None` for no message.
        first: The first message that it is about.
        last: The last message.
        segment: The number of the summary's segment.
        item: The id of the item of the board or of the profile.
        reasons: Why it was not recalled.
    """

    kind: ExplanationKind
    text: str = field(repr=False)
    key: ConversationKey | None = None
    first: int | None = None
    last: int | None = None
    segment: int | None = None
    item: str | None = None
    reasons: tuple[RecallReason, ...] = ()


@dataclass(frozen=True)
class Explanation:
    """Why an answer knew something, or did not: what became of it in the prompt.

    Attributes:
        manifest: The manifest of the answer.
        expected: What it should have known.
        question: The question that it answered; `None` if it is not stored any more.
        parts: What is known, in order: where it was said, what became of it, why it was not recalled, and the budget.
        was_in_prompt: Whether the prompt had the words, in any part.
        is_complete: Whether every message was searched; a long conversation is searched up to 10,000 messages.
    """

    manifest: Manifest
    expected: str = field(repr=False)
    question: str | None = field(repr=False)
    parts: tuple[ExplanationPart, ...]
    was_in_prompt: bool
    is_complete: bool = True

    @property
    def text(self) -> str:
        """All parts as one text; it has words of messages."""
        return " ".join(part.text for part in self.parts)

    @property
    def reasons(self) -> tuple[RecallReason, ...]:
        """Why it was not recalled; empty if it was, or if it is stored nowhere."""
        return tuple(reason for part in self.parts for reason in part.reasons)
