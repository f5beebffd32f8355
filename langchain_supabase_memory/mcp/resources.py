"""Resources that a client can attach to a chat: the list of conversations, a board, a summary, a range of messages."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final, get_args

from mcp.server.mcpserver.resources import ResourceSecurity

from langchain_supabase_memory.agents.tools import history
from langchain_supabase_memory.agents.tools.board_recall import list_board
from langchain_supabase_memory.agents.tools.messages import read_originals
from langchain_supabase_memory.agents.tools.output_limit import Passage, note
from langchain_supabase_memory.errors import InvalidInputError
from langchain_supabase_memory.mcp import conversations
from langchain_supabase_memory.mcp.request_memory import current_request
from langchain_supabase_memory.mcp.run_tools import conversation, describe_conversation, tool_call
from langchain_supabase_memory.operations.boards.kinds import ContextType

if TYPE_CHECKING:
    from mcp.server.mcpserver import MCPServer

SCHEME: Final = "memory"
_OF_ONE: Final = f"{SCHEME}://conversations/{{conversation_id}}"
_PAGE: Final = 20

# Ids may be any text, since they are never used as a path of a file.
_IDS: Final = ResourceSecurity(reject_path_traversal=False, reject_absolute_paths=False)


def add_to(server: MCPServer[Any]) -> None:
    """Add the resources to a server."""
    server.resource(
        f"{SCHEME}://conversations",
        name="conversations",
        title="Conversations",
        description="The newest conversations.",
    )(list_conversations)
    given: Any = {"mime_type": "text/plain", "security": _IDS}
    server.resource(f"{_OF_ONE}/board", name="board", title="Board", description="Facts and open points.", **given)(
        board
    )
    server.resource(f"{_OF_ONE}/summary", name="summary", title="Summary", description="The newest summary.", **given)(
        summary
    )
    server.resource(
        f"{_OF_ONE}/messages/{{first}}-{{last}}",
        name="messages",
        title="Messages",
        description="Original messages by number.",
        **given,
    )(messages)


async def list_conversations() -> str:
    """The newest conversations."""
    served = current_request()
    text, _ = await served.memory._services.arun(conversations.list_page(tool_call(served), _PAGE, None))
    return text


async def board(conversation_id: str) -> str:
    """The board of a conversation."""
    served = current_request()
    handle = await conversation(conversation_id)
    found = await handle.board.aread()
    zone = tool_call(served).zone
    words = "\n".join(filter(None, [found.edited_summary, found.summary]))
    shown = [Passage("summary", words)] if words else []
    for kind in get_args(ContextType):
        shown += list_board(found, kind, handle._key, zone)
    if not shown:
        return note("There is nothing on the board of this conversation.")
    return history.fit(shown, served.options.characters)[0]


async def summary(conversation_id: str) -> str:
    """The newest summary of a conversation."""
    return (await describe_conversation(conversation_id, history.get_summary))[0]


async def messages(conversation_id: str, first: str, last: str) -> str:
    """Return a range of messages.

    Raises:
        InvalidInputError: The bounds are not numbers.
    """
    if not (first.isascii() and first.isdecimal() and last.isascii() and last.isdecimal() and len(first + last) < 19):
        raise InvalidInputError("These are not message numbers.", hint="Pass messages/0-9, for example.")
    return (await describe_conversation(conversation_id, partial(read_originals, first=int(first), last=int(last))))[0]
