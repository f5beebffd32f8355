"""The header of every page of one conversation: its title, its work status, and the navigation."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from langchain_supabase_memory.inspector.gather import gather_all
from langchain_supabase_memory.inspector.rendering import etag
from langchain_supabase_memory.inspector.request_context import not_found
from langchain_supabase_memory.operations.controls import UNDO

if TYPE_CHECKING:
    from langchain_supabase_memory.inspector.request_context import RequestContext
    from langchain_supabase_memory.operations.work import ConversationStatus
    from langchain_supabase_memory.values import ConversationInfo


@dataclass(frozen=True)
class ConversationHeader:
    """The header of a conversation.

    Attributes:
        info: The conversation, as listed.
        status: The status of its work.
        etag: The version of the data, so that a page is notified of a change.
    """

    info: ConversationInfo
    status: ConversationStatus
    etag: str

    @property
    def due(self) -> int:
        """The number of messages that no summary covers."""
        return max(0, self.status.next_sequence - 1 - self.status.summarized_through)

    @property
    def can_undo(self) -> bool:
        """Whether it was opted out less than a minute ago, so that opting in restores everything."""
        since = self.info.opted_out_at
        return since is not None and datetime.now(UTC) - since < UNDO


async def load_header(context: RequestContext) -> ConversationHeader:
    """Load the header of the conversation that an address names.

    Raises:
        NotFoundError: There is no such conversation, or it belongs to another user.
    """
    info, status = await gather_all(context.listed_conversation(), context.conversation().work.astatus())
    if status is None:
        raise not_found()
    work = (status.state, status.attempts, status.error, status.worker, sorted(status.paused))
    through = (status.next_sequence, status.summarized_through, status.indexed_through, status.board_version)
    newest = (status.tokens_saved, status.quality)  # of the newest segment, which a person may have edited
    return ConversationHeader(info, status, etag(work, through, newest, info.updated_at, info.title, info.opted_out_at))
