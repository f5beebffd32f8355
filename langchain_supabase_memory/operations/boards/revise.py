"""Revise a board from its previous version and the new messages, by compare-and-swap.

The flow reads the range, asks the summarizer without holding a connection, checks the answer against the messages, and
commits only if the board has not changed since. A failed or malformed answer leaves the board unchanged.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

from langchain_supabase_memory.effects import Flow, Material, call, offload
from langchain_supabase_memory.language import extractive, prompts
from langchain_supabase_memory.language.chunks.units import is_recalled
from langchain_supabase_memory.language.extractive import facts
from langchain_supabase_memory.language.messages import content
from langchain_supabase_memory.language.messages.sanitizer import clean
from langchain_supabase_memory.language.quality import is_scored
from langchain_supabase_memory.language.tokens import count_tokens
from langchain_supabase_memory.operations.arguments import conversation_ids
from langchain_supabase_memory.operations.boards import editing
from langchain_supabase_memory.operations.boards.kinds import BOARD_KINDS
from langchain_supabase_memory.operations.boards.parse_answer import (
    NewItem,
    Revision,
    document,
    parse_revision,
)
from langchain_supabase_memory.operations.boards.profile_answer import SCHEMA_WITH_PROFILE, parse_profile
from langchain_supabase_memory.operations.boards.schema import SCHEMA
from langchain_supabase_memory.operations.model_calls import (
    ModelAnswerError,
    ask_with_retries,
    is_nothing,
    shorten_to_tokens,
)
from langchain_supabase_memory.operations.recall.ranges import parse_time, zone
from langchain_supabase_memory.operations.unreadable import numbered_messages
from langchain_supabase_memory.values import BoardResult

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import tzinfo

    from langchain_core.messages import BaseMessage

    from langchain_supabase_memory.operations.boards.kinds import BoardItemKind
    from langchain_supabase_memory.settings import BoardPolicy
    from langchain_supabase_memory.values import ConversationKey

_CHARACTERS_A_TOKEN: Final = 4
_MIDDLING: Final = 0.7


def revise_board(
    key: ConversationKey,
    policy: BoardPolicy,
    *,
    summarizer: str | None = None,
    if_due: bool = False,
    max_revisions: int | None = None,
    time_zone: str | tzinfo | None = None,
    profile: bool = False,
) -> Flow[BoardResult]:
    """Bring the board up to the newest message now, whether it is due or not.

    Args:
        key: The conversation.
        policy: The board policy.
        summarizer: The name that is recorded as the author.
        if_due: Do nothing unless one of the policy's thresholds is reached.
        max_revisions: The maximum number of revisions.
        time_zone: The time zone of the message times in the prompt; UTC by default.
        profile: Whether what users say of themselves goes into their profile.

    Returns:
        The result. If the model fails, nothing is changed and nothing is raised.

    Raises:
        ConfigurationError: There is no model.
    """
    here = zone(time_zone)
    added = changed = refused = revisions = 0
    calls = [0]
    version = 0
    score: float | None = None
    through = -1
    while True:
        pending = yield from call(
            "memory_pending_board",
            {**conversation_ids(key), "p_characters": policy.input_characters, "p_items": policy.max_items},
        )
        if pending is None:
            return BoardResult(-1)
        through, version = pending["through_sequence"], pending["version"]
        rows = pending["messages"]
        due = pending["behind"] >= policy.update_frequency or pending["behind_characters"] > policy.characters
        if not rows or (if_due and not revisions and not due):
            is_out = pending.get("opted_out", False)
            return BoardResult(through, version, added, changed, refused, calls[0], quality=score, opted_out=is_out)
        shown = _messages_for_model((yield from numbered_messages(key, rows)), pending.get("hidden") or ())
        times = {row["sequence"]: parse_time(row["created_at"], here) for row in rows}
        try:
            found = yield from _revision(pending, shown, times, policy, calls, profile=profile and not key.is_in_space)
        except ModelAnswerError as reason:
            return BoardResult(through, version, added, changed, refused, calls[0], failed=str(reason))
        score = yield from is_scored(prompts.lines(shown, times), found.summary, before=pending["summary"] or None)
        items = yield from offload(
            partial(_items, found.items), sum(len(each.text) for each in found.items), warm_caches=extractive.KEPT
        )
        commit = yield from call(
            "memory_commit_board",
            {
                **conversation_ids(key),
                "p_conversation_id": pending["conversation_id"],
                "p_through": through,
                "p_revision": pending["revision"],
                "p_to": rows[-1]["sequence"],
                "p_message_ids": [row["message_id"] for row in rows],
                "p_summary": found.summary,
                "p_context_notes": found.context_notes,
                "p_title": found.title or None,
                "p_items": items,
                "p_closed": [vars(each) for each in found.closed],
                "p_author": summarizer or "model",
                "p_tokens": count_tokens(found.summary),
                "p_quality": score,
                "p_profile": [vars(each) for each in found.profile] or None,
            },
            "write board",
        )
        refused += found.refused
        through = commit["through_sequence"]
        if not commit["committed"]:
            return BoardResult(through, version, added, changed, refused, calls[0], conflict=True)
        version = commit["version"]
        added += commit["added"]
        changed += commit["changed"]
        revisions += 1
        if not pending["more"] or revisions == max_revisions:
            return BoardResult(through, version, added, changed, refused, calls[0], quality=score)


def _messages_for_model(
    stored: Sequence[tuple[int, BaseMessage]], hidden: Sequence[Mapping[str, Any]]
) -> list[tuple[int, BaseMessage]]:
    """Return what the summarizer reads: messages without recalled text and without what a person deleted."""
    texts: dict[int, list[str]] = {}
    for each in hidden:
        texts.setdefault(each["sequence"], []).append(each["words"])
    said = [
        (at, content.without(each, texts.get(at, ())))
        for at, each in stored
        if content.is_conversation(each) and not is_recalled(each)
    ]
    return [(at, each) for at, each in said if at not in texts or content.display_text(each).strip() != content.HIDDEN]


def _revision(
    pending: Mapping[str, Any],
    messages: Sequence[tuple[int, BaseMessage]],
    times: Mapping[int, str],
    policy: BoardPolicy,
    calls: list[int],
    *,
    profile: bool,
) -> Flow[Revision]:
    """Ask for the revision, in several pieces if the range is longer than the summarizer's input."""
    # Models copy short ids without mistakes, and they cost few tokens.
    listed = [{**each, "item_id": each["id"]} for each in pending["items"]]
    for number, each in enumerate(listed, 1):
        each["id"] = f"{each['kind'][0]}{number}"
    ids: dict[str, tuple[str, BoardItemKind]] = {each["id"]: (each["item_id"], each["kind"]) for each in listed}
    characters = policy.max_tokens * _CHARACTERS_A_TOKEN
    summary: str | None = pending["summary"] or None
    edited: str | None = pending["edited_summary"]
    made = Revision(pending["summary"], pending["context_notes"], [], [], 0)
    schema = SCHEMA_WITH_PROFILE if profile else SCHEMA
    for piece in prompts.pieces(messages, policy.input_characters, times):
        given = [{name: each[name] for name in ("id", "kind", "text", "state", "quote")} for each in listed]
        document_of = yield from ask_with_retries(
            prompts.avoid_topics_prompt(
                prompts.board_prompt(summary, given, piece.text, characters, schema, edited=edited),
                pending.get("topics") or (),
            ),
            _document,
            timeout_seconds=policy.timeout_seconds,
            attempts=policy.attempts,
            calls=calls,
            material=Material("board", summary, piece.lines, characters, given, profile=profile),
            schema=schema,
        )
        found = yield from offload(partial(parse_revision, document_of, piece.lines, dict(ids)), len(piece.text))
        person, refused = parse_profile(document_of, piece.lines) if profile else ([], 0)
        for item in found.items:  # the next piece may contradict or close this item
            listed.append({"id": f"{item.kind[0]}{len(listed) + 1}", "item_id": item.id, "kind": item.kind})
            listed[-1] |= {"text": item.text, "state": item.state, "quote": item.quote}
            ids[listed[-1]["id"]] = (item.id, item.kind)
        summary = shorten_to_tokens(found.summary, policy.max_tokens)
        made = Revision(
            summary,
            found.context_notes or made.context_notes,
            [*made.items, *found.items],
            [*made.closed, *found.closed],
            made.refused + found.refused + refused,
            made.title or found.title,
            [*made.profile, *person],
        )
    return made


def _document(text: str) -> Mapping[str, Any] | None:
    """Return the document in an answer if its summary is usable."""
    found = document(text)
    return None if found is None or is_nothing(clean(str(found["summary"]))) else found


def _items(items: Sequence[NewItem]) -> list[dict[str, Any]]:
    return [{**vars(each), "importance": _importance(each)} for each in items]


def _importance(item: NewItem) -> float:
    """Rate the kinds that are rated: identity and lasting facts are more important than events."""
    if not BOARD_KINDS[item.kind].is_rated:
        return _MIDDLING
    # A quote is rated without its label, as in "User: his name is Teo".
    return facts.importance(item.quote if item.text.endswith(item.quote) else item.text)


def regenerate_board(
    key: ConversationKey,
    policy: BoardPolicy,
    *,
    actor: str,
    summarizer: str | None = None,
    time_zone: str | tzinfo | None = None,
    profile: bool = False,
) -> Flow[BoardResult]:
    """Regenerate the board from the messages; what a person wrote, edited, pinned or deleted is preserved.

    Args:
        key: The conversation.
        policy: The board policy, with every number set.
        actor: Who requests it.
        summarizer: The summarizer's name, recorded as the author; `None` without one.
        time_zone: The time zone of the message times; UTC by default.
        profile: Whether what users say of themselves goes into their profile.

    Raises:
        ConfigurationError: There is no model.
        NotFoundError: There is no such conversation.
    """
    yield from editing.edit_board(key, "regenerate", actor=actor)
    return (yield from revise_board(key, policy, summarizer=summarizer, time_zone=time_zone, profile=profile))
