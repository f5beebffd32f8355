"""The screens of the inspector, in one table: the application's routes and the navigation of its pages.

The tests of what every page must do go through it as well, so that a screen is covered once it has its row.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from langchain_supabase_memory.inspector.screens import (
    board,
    conversations,
    doctor,
    insights,
    message_range,
    past_prompt,
    profile,
    prompt,
    prompts,
    queue,
    recall,
    savings,
    search,
    space,
    spaces,
    summaries,
    timeline,
    topics,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from starlette.requests import Request
    from starlette.responses import Response


@dataclass(frozen=True)
class Screen:
    """A page of the inspector, or a part that opens in place.

    Attributes:
        name: Its name; a page in the navigation passes it as `tab`, and so do the pages that it opens.
        path: Its path.
        respond: Renders it.
        label: Its entry in the navigation; empty if another page opens it.
        is_of_database: Whether it is about the database and no user, so that it needs a server's rights.
    """

    name: str
    path: str
    respond: Callable[[Request], Awaitable[Response]]
    label: str = ""
    is_of_database: bool = False

    @property
    def is_of_conversation(self) -> bool:
        """Whether it is about one conversation, which its address names."""
        return self.path.startswith("/conversation")


SCREENS: Final = (
    Screen("conversations", "/", conversations.screen, "Conversations"),
    Screen("timeline", "/conversation", timeline.screen, "Timeline"),
    Screen("message", "/conversation/message", timeline.message),
    Screen("messages", "/conversation/messages", message_range.screen),
    Screen("prompt", "/conversation/prompt", prompt.screen, "Next prompt"),
    Screen("prompts", "/conversation/prompts", prompts.screen, "Prompts"),
    Screen("turn", "/conversation/prompts/turn", past_prompt.screen),
    Screen("board", "/conversation/board", board.screen, "Board"),
    Screen("item", "/conversation/board/item", board.item),
    Screen("history", "/conversation/board/history", board.history),
    Screen("summaries", "/conversation/summaries", summaries.screen, "Summaries"),
    Screen("savings", "/conversation/savings", savings.screen, "Savings"),
    Screen("profile", "/profile", profile.screen, "Profile"),
    Screen("profile_item", "/profile/item", profile.item),
    Screen("profile_export", "/profile/export", profile.export),
    Screen("topics", "/topics", topics.screen, "Topics"),
    Screen("insights", "/insights", insights.screen, "Insights"),
    Screen("spaces", "/spaces", spaces.screen, "Spaces"),
    Screen("space", "/spaces/space", space.screen),
    Screen("erase", "/spaces/erase", space.erase),
    Screen("shared", "/spaces/shared", spaces.shared),
    Screen("source", "/spaces/source", spaces.source),
    Screen("recall", "/recall", recall.screen, "Recall"),
    Screen("search", "/search", search.screen),
    Screen("queue", "/queue", queue.screen, "Queue"),
    Screen("doctor", "/doctor", doctor.screen, "Doctor", is_of_database=True),
)
"""All screens, in the order of the navigation."""
