"""The shapes of the SQL functions' documents, as one table for both transports.

A proxy's page, an empty body or a truncated document is never accepted as an answer. Only the document's type and keys
are checked, so the check is cheap.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from langchain_supabase_memory import documents
from langchain_supabase_memory.errors import UnavailableError

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True)
class Shape:
    """The type and keys of a document.

    Attributes:
        kind: Its Python type: `dict`, `list`, `int`, `bool` or `str`.
        keys: The required keys of an object.
        or_null: Whether `null` is valid, too.
        parts: For a key, the function whose answer is its value.
    """

    kind: type
    keys: frozenset[str] = frozenset()
    or_null: bool = False
    parts: Mapping[str, str] = field(default_factory=dict)

    def fits(self, document: Any) -> bool:
        """Return whether a document has this shape."""
        if document is None:
            return self.or_null
        # Compare exact types: a boolean is not a number.
        if type(document) is not self.kind or (isinstance(document, dict) and not self.keys <= document.keys()):
            return False
        parts: Any = document
        return all(SHAPES[function].fits(parts[key]) for key, function in self.parts.items())


def _object(keys: str, *, or_null: bool = False, parts: Mapping[str, str] | None = None) -> Shape:
    return Shape(dict, frozenset(keys.split()), or_null, parts or {})


_ARRAY: Final = Shape(list)
_NUMBER: Final = Shape(int)
_COMMITTED: Final = _object("committed through_sequence")

SHAPES: Final[dict[str, Shape]] = {
    "memory_append": _object("conversation_id sequences appended updated"),
    "memory_append_context": _object("stored context", parts={"stored": "memory_append", "context": "memory_context"}),
    "memory_assign_topics": _object("assigned more"),
    "memory_board": _object(
        "conversation_id revision next_sequence title summary context_notes edited_summary edited_by editor_kind"
        " edited_at language model tokens quality through_sequence version updated_at items unlisted gone rewritten"
        " changes",
        or_null=True,
    ),
    "memory_chunks": _object("chunks more"),
    "memory_commit_board": _COMMITTED,
    "memory_commit_chunks": _object("committed through_sequence chunks"),
    "memory_commit_parent": _object("committed"),
    "memory_commit_summary": _COMMITTED,
    "memory_commit_topics": _object("committed topics"),
    "memory_compare": _object("recorded covered_by_summary"),
    "memory_comparison_report": _ARRAY,
    "memory_comparisons": _ARRAY,
    "memory_context": _object("recalled", or_null=True),
    "memory_contribute": _object("space_id item_id quote said_at is_new"),
    "memory_consent": _object("changed profile topics"),
    "memory_consents": _ARRAY,
    "memory_control_changes": _ARRAY,
    "memory_conversations": _object("conversations before after"),
    "memory_count": _NUMBER,
    "memory_coverage": _object(
        "next_sequence through_sequence expired_through unreadable stored superseded segments levels unshown",
        or_null=True,
    ),
    "memory_create_space": _object("space_id name"),
    "memory_describe_summary": _object("described"),
    "memory_due": _ARRAY,
    "memory_edit_topic": _object("topic_id"),
    "memory_edits": _object(
        "title metadata created_at updated_at opt_outs summary items deleted ratings summaries superseded", or_null=True
    ),
    "memory_edit_board": _object("item_id version is_new"),
    "memory_edit_profile": _object("item_id is_new"),
    "memory_edit_summary": _object("taken_back"),
    "memory_embed_summaries": _ARRAY,
    "memory_export": _ARRAY,
    "memory_fail_index": _object("retry_at"),
    "memory_fail_summary": _object("retry_at"),
    "memory_find": _object("found read after"),
    "memory_forget": _object("conversations messages segments chunks items contributions profile"),
    "memory_forget_expired": _object("conversations messages segments chunks after"),
    "memory_forget_message": _object("conversations messages segments chunks contributions profile"),
    "memory_forget_topic": _object("words stretches chunks"),
    "memory_update_space": _object("space_id name about retention"),
    "memory_forget_space": _object("conversations messages segments chunks items members invitations"),
    "memory_held": _object("memberships contributions authored"),
    "memory_import": _ARRAY,
    "memory_index_due": _ARRAY,
    "memory_invite": _object("token expires_at"),
    "memory_join": _object("space_id name role"),
    "memory_limits": _object("message_bytes call_bytes"),
    "memory_manifests": _object("manifests after"),
    "memory_opt_in": _object("removed"),
    "memory_opt_out": _object("is_new conversations"),
    "memory_opt_outs": _ARRAY,
    "memory_pending": _object(
        "conversation_id through_sequence revision characters previous messages more waiting opted_out topics",
        or_null=True,
    ),
    "memory_pending_board": _object(
        "conversation_id revision through_sequence version summary context_notes edited_summary items messages hidden"
        " behind behind_characters more opted_out topics",
        or_null=True,
    ),
    "memory_pending_chunks": _object(
        "conversation_id through_sequence revision messages more waiting before failures unembedded_from stale speech",
        or_null=True,
    ),
    "memory_profile": _object("items after"),
    "memory_promote": _ARRAY,
    "memory_prompt": _object("messages superseded expired segment board passages turn", or_null=True),
    "memory_rate_chunk": _object("importance version"),
    "memory_read": _object("messages more"),
    "memory_recall": _object("chunks searched approximate by_meaning"),
    "memory_recall_summaries": _ARRAY,
    "memory_recent_packs": _ARRAY,
    "memory_reembed": _object("embedded dropped complete"),
    "memory_request": _object("requested_at"),
    "memory_restore": _object("restored refused"),
    "memory_rollout": _object("version stage share rest set_at mine", or_null=True),
    "memory_schema": _object("version code"),
    "memory_reinstate": _ARRAY,
    "memory_set_aside": _ARRAY,
    "memory_name_member": _object("space_id user_id name"),
    "memory_signals": _object("signals more"),
    "memory_set_member": _object("space_id user_id role"),
    "memory_space": _object("space_id name about retention created_by created_at role members invitations"),
    "memory_spaces": _ARRAY,
    "memory_status": _ARRAY,
    "memory_store": _ARRAY,
    "memory_store_reindex": _object("items after indexed"),
    "memory_store_sweep": _object("items after"),
    "memory_summaries": _ARRAY,
    "memory_topic_days": _ARRAY,
    "memory_topic_stretches": _object("version since alike stretches more"),
    "memory_topics": _ARRAY,
    "memory_turns": _object("turns more"),
    "memory_unembedded_summaries": _object("summaries after"),
    "memory_unread": _object("chunks chunks_unread bytes_unread segments segments_unread"),
    "memory_unreadable": _ARRAY,
    "memory_usage": _ARRAY,
    "memory_update": _object("id user_id agent_id thread_id title metadata message_count created_at updated_at"),
    "memory_withdraw": _object("space_id item_id"),
    "memory_withdrawn": _object("user_id memories"),
    "memory_worker_archive": _object("archived"),
    "memory_worker_chore": _object("mine"),
    "memory_worker_claim": _ARRAY,
    "memory_worker_count_usage": _object("counted more"),
    "memory_worker_doctor": _object(
        "now role sees_all distributed server replay_lag_seconds settings installed vector indexes broken_indexes added"
        " missing vectors heartbeat_at expired_at wait_seconds dead profile tables published columns_added"
        " columns_missing unidentified wal_level open_checkpoint_tables autovacuum",
        parts={"installed": "memory_schema"},
    ),
    "memory_worker_finish": _object("outcome"),
    "memory_worker_heartbeat": _ARRAY,
    "memory_worker_idle": _ARRAY,
    "memory_worker_keep_draft": _object("kept"),
    "memory_worker_insights": _object("k least error from to cells"),
    "memory_worker_queue": _object(
        "depth due leases waiting dead unreadable unreadable_messages paused lag_seconds next_seconds vector_bytes"
        " has_more"
    ),
    "memory_worker_rederive": _object("marked after"),
    "memory_worker_release": _object("released"),
    "memory_worker_revive": _object("revived"),
    "memory_worker_rollouts": _ARRAY,
    "memory_worker_set_rollout": _object("agent_id version stage share rest set_by set_at"),
    "memory_worker_topics": _object("conversations after owners"),
    "memory_worker_usage": _object("conversations after"),
    "memory_worker_users": _object("users after"),
}
"""Each function `public.memory_*`, and the shape of its document."""


_OTHER_SHAPE: Final = "The response is not an answer of"


def validate(function: str, document: Any) -> Any:
    """Return a document, if it has the function's shape.

    Args:
        function: The SQL function's name. A function that is not in the table may return anything.
        document: The document that arrived.

    Raises:
        UnavailableError: It does not have the function's shape.
    """
    shape = SHAPES.get(function)
    if shape is None or shape.fits(document):
        return document
    raise no_answer(f"{_OTHER_SHAPE} {function}.")


def has_other_shape(error: Exception) -> bool:
    """Return whether a call failed because its document has another shape, as that of an older schema may have.

    Args:
        error: Why it failed.
    """
    return isinstance(error, UnavailableError) and error.message.startswith(_OTHER_SHAPE)


def parse(text: bytes) -> Any:
    """Parse the document in a body.

    Raises:
        UnavailableError: The body has none.
    """
    try:
        return documents.loads(text)
    except (json.JSONDecodeError, UnicodeDecodeError):
        kind = "nothing" if not text.strip() else "no JSON"
    except (RecursionError, ValueError):
        raise unreadable() from None
    raise no_answer(f"The response is {kind} instead of an answer.")


def no_answer(message: str) -> UnavailableError:
    """Return the error for a response that is not an answer; its text is never shown."""
    return UnavailableError(
        message,
        hint="Look whether a proxy or a login page answers in the database's place, and run `supabase-memory doctor`; "
        "the call is safe to repeat.",
    )


def unreadable() -> UnavailableError:
    """Return the error for a document that Python cannot read: nested too deeply, or with too many digits in a number.

    One user's row may cause this, so it does not mean that the database is unavailable.
    """
    return UnavailableError(
        "The answer is nested too deeply, or has too long a number, to be read.",
        hint="Look for such a message in the conversation, and for a proxy that answers in the database's place.",
        is_away=False,
    )
