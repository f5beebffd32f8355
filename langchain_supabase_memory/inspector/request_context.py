"""What a request is about: whose memory, which conversation, and links to what is beside it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from langchain_supabase_memory.errors import InvalidInputError, NotFoundError
from langchain_supabase_memory.memory.memory import SupabaseMemory
from langchain_supabase_memory.values import is_id

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from starlette.requests import Request

    from langchain_supabase_memory.inspector.auth import SessionStore
    from langchain_supabase_memory.inspector.live_updates import ChangeNotifier
    from langchain_supabase_memory.memory.conversation import Conversation
    from langchain_supabase_memory.values import ConversationInfo


@dataclass(frozen=True)
class InspectorState:
    """What one inspector is about.

    Attributes:
        memory: The memory, or what gives it for a request.
        write: Whether people may change something.
        actor: Who is noted with a change.
        sessions: Who has been let in.
        notifier: What tells that something may have changed.
    """

    memory: SupabaseMemory | Callable[[Request], SupabaseMemory]
    write: bool
    actor: str
    sessions: SessionStore
    notifier: ChangeNotifier


class RequestContext:
    """One request.

    Args:
        request: It.
    """

    def __init__(self, request: Request) -> None:
        self.request = request
        self.inspected: InspectorState = request.app.state.inspected
        self.asked = request.query_params

    @cached_property
    def memory(self) -> SupabaseMemory:
        """The memory, as a person changes it."""
        memory = self.inspected.memory
        return memory if isinstance(memory, SupabaseMemory) else memory(self.request)

    @cached_property
    def reader(self) -> SupabaseMemory:
        """The same, which makes nothing while somebody looks: what a pack misses is left to a worker."""
        return read_only_copy(self.memory)

    @property
    def write(self) -> bool:
        """Whether people may change something."""
        return self.inspected.write

    @property
    def acts_as_user(self) -> bool:
        """Whether row level security judges, so that what needs a server's rights is left out."""
        return self.memory._services.transport.acts_as_user

    @property
    def sees_all_users(self) -> bool:
        """Whether it may see everybody's conversations."""
        return self.memory.user_id is None and not self.acts_as_user

    @property
    def user_id(self) -> str | None:
        """Whose conversations are meant; `None`: everybody's, or those of who is signed in."""
        return (self.asked.get("user") or None) if self.sees_all_users else self.memory.user_id

    @property
    def form_token(self) -> str:
        """What a form carries."""
        return self.inspected.sessions.form_token(self.request.scope["state"]["session"])

    def conversation(self, *, reading: bool = True) -> Conversation:
        """The conversation that the address names.

        Raises:
            NotFoundError: It names none.
        """
        thread, agent, user = self.asked.get("thread"), self.asked.get("agent") or None, self.user_id
        if (
            thread is None
            or not is_id(thread)
            or not (agent is None or is_id(agent))
            or not (user is None or is_id(user))
        ):
            raise not_found()
        try:
            return (self.reader if reading else self.memory)._for(user).conversation(thread, agent_id=agent)
        except InvalidInputError:  # nobody is named as the owner
            raise not_found() from None

    async def listed_conversation(self) -> ConversationInfo:
        """The conversation as it is listed.

        Raises:
            NotFoundError: There is no such conversation, or it is somebody else's.
        """
        info = await self.conversation().ainfo()
        if info is None:
            raise not_found()
        return info

    def link(self, path: str, **query: Any) -> str:
        """An address of this inspector; what is `None` or empty is left out."""
        text = _query(query)
        return f"{self.root}{path}{'?' if text else ''}{text}"

    def conversation_link(self, path: str, user_id: str | None, agent_id: str, thread_id: str, **query: Any) -> str:
        """An address below a conversation."""
        return self._path_below(self._conversation_query(user_id, agent_id, thread_id), path, query)

    def page_link(self, path: str, **query: Any) -> str:
        """An address below the conversation that this one names."""
        return self._path_below(self._conversation_segments, path, query)

    @cached_property
    def root(self) -> str:
        """Where the application is mounted."""
        return str(self.request.scope.get("root_path", ""))

    @cached_property
    def _conversation_segments(self) -> str:
        """What names this conversation in an address; a page has hundreds of them."""
        key = self.conversation()._key
        return self._conversation_query(key.user_id, key.agent_id, key.thread_id)

    def _conversation_query(self, user_id: str | None, agent_id: str, thread_id: str) -> str:
        user = user_id if self.sees_all_users else None
        return _query({"user": user, "agent": agent_id, "thread": thread_id})

    def _path_below(self, segment: str, path: str, arguments: Mapping[str, Any]) -> str:
        query = _query(arguments)
        return f"{self.root}/conversation{path}?{segment}{'&' if query else ''}{query}"

    def number(self, name: str, *, minimum: int = 0, maximum: int = 2**31 - 1) -> int | None:
        """A whole number of the address, within bounds; `None` if there is none."""
        text = self.asked.get(name, "").strip()
        if not (text.isascii() and text.isdigit() and len(text) < 12):
            return None
        return max(minimum, min(maximum, int(text)))


def _query(query: Mapping[str, Any]) -> str:
    """The query of an address, without what is `None` or empty."""
    return urlencode({name: value for name, value in query.items() if value not in (None, "")})


def is_uuid(text: str) -> bool:
    """Whether a text of an address or a form can be a uuid."""
    return len(text) == 36 and all(each in "0123456789abcdef-" for each in text)


def not_found() -> NotFoundError:
    """What is said of a conversation that does not exist, and of one that is somebody else's."""
    return NotFoundError("There is no such conversation here.", hint="Begin at the list: it may have been forgotten.")


def read_only_copy(memory: SupabaseMemory, *, by_words: bool = False) -> SupabaseMemory:
    """A memory over the same connections that summarizes and indexes nothing by itself.

    Args:
        memory: The memory.
        by_words: Whether it searches without the embedder.
    """
    return memory._over(memory._services.read_only(by_words=by_words))
