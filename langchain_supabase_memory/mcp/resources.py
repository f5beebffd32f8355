"""What a client can attach to a chat: the list of conversations, a board, a summary, a range of messages."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final, get_args

from mcp.server.mcpserver.resources import ResourceSecurity

from langchain_supabase_memory.agents.tools import history, messages
from langchain_supabase_memory.agents.tools.bounded import Passage, noted
from langchain_supabase_memory.agents.tools.derived import ContextType, on_board
from langchain_supabase_memory.errors import InvalidInputError
from langchain_supabase_memory.mcp import conversations
from langchain_supabase_memory.mcp.asking import asked, told_of
from langchain_supabase_memory.mcp.served import present

if TYPE_CHECKING:
    from mcp.server.mcpserver import MCPServer

SCHEME: Final = "memory"
_OF_ONE: Final = f"{SCHEME}://conversations/{{conversation_id}}"
_PAGE: Final = 20

# An id is any text; no file is ever opened by it.
_IDS: Final = ResourceSecurity(reject_path_traversal=False, reject_absolute_paths=False)


def add_to(server: MCPServer[Any]) -> None:
    """Give a server the resources.

    Args:
        server: The server.
    """
    server.resource(
        f"{SCHEME}://conversations", name="conversations", title="Conversations", description="The newest."
    )(listed)
    given: Any = {"mime_type": "text/plain", "security": _IDS}
    server.resource(f"{_OF_ONE}/board", name="board", title="Board", description="Facts and open points.", **given)(
        board
    )
    server.resource(f"{_OF_ONE}/summary", name="summary", title="Summary", description="The newest.", **given)(summary)
    server.resource(
        f"{_OF_ONE}/messages/{{first}}-{{last}}",
        name="messages",
        title="Messages",
        description="Originals by their numbers.",
        **given,
    )(originals)


async def listed() -> str:
    """The newest conversations."""
    served = present()
    text, _ = await served.memory.arun(conversations.listed(asked(served), _PAGE, None))
    return text


async def board(conversation_id: str) -> str:
    """The board of a conversation."""
    served = present()
    handle = served.memory.conversation(conversation_id)
    found = await handle.aboard()
    zone = asked(served).zone
    words = "\n".join(filter(None, [found.edited_summary, found.summary]))
    shown = [Passage("summary", words)] if words else []
    for kind in get_args(ContextType):
        shown += on_board(found, kind, handle.key, zone)
    if not shown:
        return noted("There is nothing on the board of this conversation.")
    return history.fit(shown, served.options.characters)[0]


async def summary(conversation_id: str) -> str:
    """The newest summary of a conversation."""
    return (await told_of(conversation_id, history.summarized))[0]


async def originals(conversation_id: str, first: str, last: str) -> str:
    """A range of messages.

    Raises:
        InvalidInputError: The bounds are no numbers.
    """
    if not (first.isascii() and first.isdecimal() and last.isascii() and last.isdecimal() and len(first + last) < 19):
        raise InvalidInputError("These are no numbers of messages.", hint="Pass messages/0-9, for example.")
    return (await told_of(conversation_id, partial(messages.originals, first=int(first), last=int(last))))[0]
