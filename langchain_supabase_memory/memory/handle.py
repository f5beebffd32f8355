"""Base classes of handles, with hints for attributes that do not exist."""

from __future__ import annotations

from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, ClassVar, Final

from langchain_supabase_memory.deadline import in_thread
from langchain_supabase_memory.unpicklable import Unpicklable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from langchain_supabase_memory.memory.memory import SupabaseMemory
    from langchain_supabase_memory.memory.services import Services
    from langchain_supabase_memory.values import ConversationKey


CONVERSATION_SYNONYMS: Final = {
    **dict.fromkeys(("messages", "history", "get", "get_messages", "list"), ".read(last=20)"),
    **dict.fromkeys(("add", "add_message", "add_messages", "save", "store", "write"), ".append(messages)"),
    **dict.fromkeys(("search", "query", "retrieve"), ".recall(query) or .find(text)"),
    **dict.fromkeys(("load", "pack", "prompt", "get_context"), ".context(query) for the next prompt"),
    **dict.fromkeys(("delete", "clear", "remove", "erase"), ".forget()"),
    **dict.fromkeys(("summarize", "summary"), ".summaries.make() or .summaries.list()"),
    **dict.fromkeys(("status", "state"), ".work.status()"),
    "key": ".thread_id, .user_id and .agent_id",
}
"""Common guesses at a conversation's methods, and the right names."""

MEMORY_SYNONYMS: Final = {
    **dict.fromkeys(("search", "query", "retrieve"), ".recall(query) or .find(text)"),
    **dict.fromkeys(("thread", "session", "get_conversation"), ".conversation(thread_id)"),
    **dict.fromkeys(("list", "threads", "sessions", "list_conversations"), ".conversations()"),
    **dict.fromkeys(("user", "as_user", "with_user"), ".for_user(user_id) or .for_token(token)"),
    **dict.fromkeys(("delete", "clear", "delete_user", "erase"), ".for_user(user_id).forget_user()"),
    **dict.fromkeys(("migrate", "setup", "create_tables"), "the command supabase-memory migrate"),
    **dict.fromkeys(("settings", "config"), "SupabaseMemory.from_url(..., config=MemoryConfig(...)) to set them"),
}
"""Common guesses at a memory's methods, and the right names."""


_loaded: Final[set[str]] = set()


async def load(module: str) -> None:
    """Import a module in a thread at its first call, so that the first call of a verb holds up no event loop.

    Args:
        module: Its full name.
    """
    # `sys.modules` also has what another thread is still importing, for which an import would wait.
    if module not in _loaded:
        await in_thread(partial(import_module, module))
        _loaded.add(module)


class Handle(Unpicklable):
    """A handle with operations; for an unknown attribute it suggests the right one."""

    _parts: ClassVar[tuple[str, ...]] = ()
    _synonyms: ClassVar[Mapping[str, str]] = {}

    if not TYPE_CHECKING:  # for a type checker it would have every attribute

        def __getattr__(self, name: str) -> object:
            """Suggest what to use instead of an attribute that does not exist."""
            hint = None if name.startswith("_") else self._hint(name)
            more = "" if hint is None else f" Use {hint}."
            message = f"{type(self).__name__!r} object has no attribute {name!r}.{more}"
            raise AttributeError(message, name=name, obj=self)

    def _hint(self, name: str) -> str | None:
        """Return what to use instead of an attribute, as code; `None` if nothing is similar."""
        if name in self._synonyms:
            return self._synonyms[name]
        part = next((each for each in self._parts if hasattr(type(getattr(self, each)), name)), None)
        return None if part is None else f".{part}.{name}()"


class MemoryHandle(Handle):
    """A handle of the memory: the memory itself, or a part of it.

    Args:
        services: The memory's services.
    """

    def __init__(self, services: Services) -> None:
        self._services = services


class SpaceHandle(MemoryHandle):
    """A handle of one space.

    Args:
        services: The services that act in the space.
        memory: The memory that acts there.
    """

    def __init__(self, services: Services, memory: SupabaseMemory) -> None:
        super().__init__(services)
        self.memory = memory

    @property
    def space_id(self) -> str:
        """The space's id."""
        return self._services.space_id

    def __repr__(self) -> str:
        """Its id."""
        return f"{type(self).__name__}({self.space_id!r})"


class ConversationPartHandle(Handle):
    """A handle of a part of one conversation: its ids and the memory's services.

    Args:
        services: The memory's services.
        key: The conversation.
    """

    def __init__(self, services: Services, key: ConversationKey) -> None:
        self._services = services
        self._key = key

    @property
    def thread_id(self) -> str:
        """The conversation's thread."""
        return self._key.thread_id

    @property
    def user_id(self) -> str | None:
        """The owner; `None` means the access token's user."""
        return self._key.user_id

    @property
    def agent_id(self) -> str:
        """The agent."""
        return self._key.agent_id

    def __repr__(self) -> str:
        """Its ids."""
        key = self._key
        return f"{type(self).__name__}({key.thread_id!r}, user_id={key.user_id!r}, agent_id={key.agent_id!r})"


class ConversationHandle(ConversationPartHandle):
    """A handle of one conversation, which suggests its parts' methods, too."""

    _parts = ("board", "summaries", "turns", "chunks", "superseded", "privacy", "work")
    _synonyms: ClassVar[Mapping[str, str]] = CONVERSATION_SYNONYMS
