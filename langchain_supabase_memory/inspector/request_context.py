"""The context of a request: its memory, its conversation, and links to related pages."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote_plus

from starlette.exceptions import HTTPException

from langchain_supabase_memory.errors import InvalidInputError, NotFoundError
from langchain_supabase_memory.memory.memory import SupabaseMemory
from langchain_supabase_memory.values import SPACE, is_id

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from starlette.requests import Request
    from starlette.responses import Response

    from langchain_supabase_memory.inspector.auth import SessionStore
    from langchain_supabase_memory.inspector.live_updates import ChangeNotifier
    from langchain_supabase_memory.inspector.screen_list import Screen
    from langchain_supabase_memory.inspector.undo import UndoableChange, UndoStore
    from langchain_supabase_memory.memory.conversation import Conversation
    from langchain_supabase_memory.memory.space import Space
    from langchain_supabase_memory.operations.spaces import SpaceInfo
    from langchain_supabase_memory.values import ConversationInfo, ConversationKey


ONLY_MANAGERS: Final = "Only a manager of the space may do this.\nA manager of the space can change your role."


@dataclass(frozen=True)
class InspectorState:
    """The state of one inspector.

    Attributes:
        memory: The memory, or a function that returns it for a request.
        write: Whether people may change something.
        actor: The name recorded with a change.
        screens: The pages, for the navigation.
        sessions: Stores who is admitted.
        notifier: Notifies pages of changes.
        undos: Stores what can be undone.
    """

    memory: SupabaseMemory | Callable[[Request], SupabaseMemory]
    write: bool
    actor: str
    screens: Sequence[Screen]
    sessions: SessionStore
    notifier: ChangeNotifier
    undos: UndoStore

    @cached_property
    def conversation_tabs(self) -> frozenset[str]:
        """The names of the pages below a conversation."""
        return frozenset(screen.name for screen in self.screens if screen.is_of_conversation)


class RequestContext:
    """The context of one request."""

    def __init__(self, request: Request) -> None:
        self.request = request
        self.state: InspectorState = request.app.state.inspector
        self.query = request.query_params

    @cached_property
    def memory(self) -> SupabaseMemory:
        """The memory, for changes."""
        memory = self.state.memory
        return memory if isinstance(memory, SupabaseMemory) else memory(self.request)

    @cached_property
    def reader(self) -> SupabaseMemory:
        """The memory for reading, which creates nothing: missing summaries and vectors are left to a worker."""
        return read_only_copy(self.memory)

    @property
    def write(self) -> bool:
        """Whether people may change something; in a space only its managers, over a server's connection."""
        return self.state.write and (self.space is None or (not self.acts_as_user and self.is_manager))

    @cached_property
    def screens(self) -> Sequence[Screen]:
        """The pages, for the navigation; without those that need a server's rights if it has none."""
        return [each for each in self.state.screens if not (each.is_of_database and self.acts_as_user)]

    @cached_property
    def navigation(self) -> list[tuple[str, str, str]]:
        """The name, the label and the address of each page that is not about one conversation."""
        member = self.member_query
        return [
            (each.name, each.label, self.link(each.path, **({} if each.is_of_database else member)))
            for each in self.screens
            if each.label and not each.is_of_conversation
        ]

    @cached_property
    def acts_as_user(self) -> bool:
        """Whether row level security applies, so that anything that needs a server's rights is left out."""
        return self.memory._services.transport.acts_as_user

    @cached_property
    def sees_all_users(self) -> bool:
        """Whether it may see every user's conversations."""
        return self.memory.user_id is None and not self.acts_as_user

    @property
    def user_id(self) -> str | None:
        """The owner of the conversations, or the member in a space; `None` for all users, or the signed-in user."""
        if not self.sees_all_users:
            return self.memory.user_id
        user = self.query.get("user") or None
        return None if user is not None and user.startswith(SPACE) else user

    @property
    def space_id(self) -> str | None:
        """The space that the address names; it owns the conversations then. Its id may also stand for a user."""
        user = self.query.get("user", "")
        return self.query.get("space") or (user if self.sees_all_users and user.startswith(SPACE) else None)

    @property
    def space(self) -> SpaceInfo | None:
        """The space that the address names, once `admit` has asked whether it may be seen."""
        return getattr(self.request.state, "space", None)

    @property
    def is_manager(self) -> bool:
        """Whether a manager of the space asks, or a server by itself."""
        return self.space is not None and self.space.role in ("manager", None)

    @property
    def has_user(self) -> bool:
        """Whether the address names a user, or one is signed in: else a server looks at everybody's data."""
        return not self.sees_all_users or self.user_id is not None

    @property
    def has_one_owner(self) -> bool:
        """Whether the pages are about one user or one space, and not about all."""
        return self.has_user or self.space_id is not None

    @property
    def is_part(self) -> bool:
        """Whether a page asks for a part of itself, to insert it in place."""
        return self.request.headers.get("hx-request") == "true"

    def require_manager(self) -> None:
        """Refuse who does not manage the space, in words that the database's refusal does not have.

        Raises:
            HTTPException: They do not.
        """
        if not self.is_manager:
            raise HTTPException(403, ONLY_MANAGERS)

    async def admit(self) -> None:
        """Ask who is in the space that the address names: a server would read whatever it names.

        Raises:
            NotFoundError: There is no such space, or who asks is not in it.
        """
        if self.space_id is not None:
            self.request.state.space = await self.named_space(reading=True).ainfo()

    def named_space(self, *, reading: bool = False) -> Space:
        """Return the space that the address names, in which the user acts; without one, a server by itself.

        Raises:
            NotFoundError: The address does not name a valid space.
        """
        if self.space_id is None or not is_id(self.space_id):
            raise no_space()
        try:
            return (self.reader if reading else self.memory)._for(self.user_id).space(self.space_id)
        except InvalidInputError:
            raise no_space() from None

    def for_user(self, page: str) -> SupabaseMemory:
        """Return the memory of the user, for changes.

        Args:
            page: The page on which a server's user is entered.

        Raises:
            InvalidInputError: A server looks at everybody's data, and the address names no user.
        """
        if not self.has_user:
            raise InvalidInputError("No user is named.", hint=f"Enter a user on the page of {page} first.")
        return self.memory._for(self.user_id)

    def owned(self, memory: SupabaseMemory) -> SupabaseMemory:
        """Return a memory for the owner that the address names: a user, or a space."""
        mine = memory._for(self.user_id)
        return mine if self.space_id is None else mine.space(self.space_id).memory

    @property
    def session(self) -> str:
        """The session of the browser."""
        return str(self.request.scope["state"]["session"])

    @property
    def viewer(self) -> tuple[str, str | None]:
        """The session, and who is signed in: where an application signs people in, one browser may serve several."""
        return self.session, self.memory._services.fixed_user_id

    @property
    def form_token(self) -> str:
        """The CSRF token of the session's forms."""
        return self.state.sessions.form_token(self.session)

    @property
    def undoable(self) -> UndoableChange | None:
        """The change that led to this page, while it can be undone."""
        return self.state.undos.find(self.viewer, self.query.get("undo", ""))

    def conversation(self, *, reading: bool = True) -> Conversation:
        """Return the conversation that the address names.

        Raises:
            NotFoundError: The address does not name a valid conversation.
        """
        thread, agent, user = self.query.get("thread"), self.query.get("agent") or None, self.user_id
        memory = self.reader if reading else self.memory
        if (
            thread is None
            or not is_id(thread)
            or not (agent is None or is_id(agent))
            or not (user is None or is_id(user))
        ):
            raise not_found()
        try:
            return self.owned(memory).conversation(thread, agent_id=agent)
        except InvalidInputError:  # the owner is unknown
            raise not_found() from None

    async def listed_conversation(self) -> ConversationInfo:
        """Return the conversation as listed.

        Raises:
            NotFoundError: There is no such conversation, or it belongs to another user.
        """
        try:
            return await self.conversation().ainfo()
        except NotFoundError:
            raise not_found() from None

    def link(self, path: str, **query: Any) -> str:
        """Return an address of this inspector; arguments that are `None` or empty are left out."""
        text = _query(query)
        return f"{self.root}{path}{'?' if text else ''}{text}"

    def conversation_link(self, path: str, user_id: str | None, agent_id: str, thread_id: str, **query: Any) -> str:
        """Return an address below a conversation."""
        return self._path_below(self._conversation_query(user_id, agent_id, thread_id), path, query)

    def retry_link(self, key: ConversationKey) -> str:
        """Return the address that retries the work of one conversation."""
        return f"{self.root}/queue/retry?{self._conversation_query(key.user_id, key.agent_id, key.thread_id)}"

    def page_link(self, path: str, **query: Any) -> str:
        """Return an address below the current conversation."""
        return self._path_below(self._conversation_segments, path, query)

    @property
    def owner_query(self) -> dict[str, str]:
        """The arguments of an address that name whose data its page shows, for the pages that it links to."""
        named = {"user": self.user_id if self.sees_all_users else None, "space": self.space_id}
        return {name: value for name, value in named.items() if value is not None}

    @property
    def member_query(self) -> dict[str, str]:
        """Those that name the user alone, for the pages about all spaces of a user."""
        return {name: value for name, value in self.owner_query.items() if name == "user"}

    def space_link(self, path: str, space_id: str, **query: Any) -> str:
        """Return an address of a page of one space, for the same user."""
        return self.link(path, **self.member_query, space=space_id, **query)

    @cached_property
    def root(self) -> str:
        """The path at which the application is mounted."""
        return str(self.request.scope.get("root_path", ""))

    @cached_property
    def _conversation_segments(self) -> str:
        """The query that identifies this conversation; cached, because a page has hundreds of links."""
        key = self.conversation()._key
        return self._conversation_query(key.user_id, key.agent_id, key.thread_id)

    def _conversation_query(self, user_id: str | None, agent_id: str, thread_id: str) -> str:
        owner: dict[str, Any] = {"user": user_id if self.sees_all_users else None}
        if self.space_id is not None or (user_id is not None and user_id.startswith(SPACE)):
            owner = {**self.owner_query, "space": self.space_id or user_id}
        return _query({**owner, "agent": agent_id, "thread": thread_id})

    def _path_below(self, segment: str, path: str, arguments: Mapping[str, Any]) -> str:
        query = _query(arguments)
        return f"{self.root}/conversation{path}?{segment}{'&' if query else ''}{query}"

    def number(self, name: str, *, minimum: int = 0, maximum: int = 2**31 - 1) -> int | None:
        """Return a whole number from the address, clamped to the bounds; `None` if there is none."""
        text = self.query.get(name, "").strip()
        if not (text.isascii() and text.isdigit() and len(text) < 12):
            return None
        return max(minimum, min(maximum, int(text)))


def admitted(respond: Callable[[Request], Awaitable[Response]]) -> Callable[[Request], Awaitable[Response]]:
    """Return a page that asks first whether the space that its address names may be seen."""

    async def checked(request: Request) -> Response:
        await RequestContext(request).admit()
        return await respond(request)

    return checked


def _query(query: Mapping[str, Any]) -> str:
    """Return a query string, without arguments that are `None` or empty."""
    # A page has hundreds of links: `urlencode` takes three times as long for the same.
    return "&".join(
        [
            f"{name}={value if type(value) is int else quote_plus(str(value))}"
            for name, value in query.items()
            if value not in (None, "")
        ]
    )


def is_uuid(text: str) -> bool:
    """Return whether a text from an address or a form looks like a uuid."""
    return len(text) == 36 and all(each in "0123456789abcdef-" for each in text)


async def find_info(conversation: Conversation) -> ConversationInfo | None:
    """Return a conversation as listed; `None` if it was deleted meanwhile."""
    try:
        return await conversation.ainfo()
    except NotFoundError:
        return None


def not_found() -> NotFoundError:
    """Return the error for a conversation that does not exist, and for another user's."""
    return NotFoundError(
        "There is no such conversation here.", hint="Start at the list of conversations: it may have been deleted."
    )


def no_space() -> NotFoundError:
    """Return the error for a space that does not exist, and for one that the user is not in."""
    return NotFoundError("There is no such space, or you are not in it.", hint="Start at the list of spaces.")


def read_only_copy(memory: SupabaseMemory, *, keywords_only: bool = False) -> SupabaseMemory:
    """Return a memory over the same connections that neither summarizes nor indexes automatically.

    Args:
        memory: The memory.
        keywords_only: Whether it searches without the embedder.
    """
    return memory._over(memory._services.read_only(keywords_only=keywords_only))
