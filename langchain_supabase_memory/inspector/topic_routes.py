"""A person's changes to topics: rename, merge, hide, forget."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from langchain_supabase_memory.errors import InvalidInputError, NotFoundError
from langchain_supabase_memory.inspector.edit_routes import change
from langchain_supabase_memory.inspector.request_context import is_uuid
from langchain_supabase_memory.inspector.screens.topics import topics_owner

if TYPE_CHECKING:
    from collections.abc import Mapping

    from langchain_supabase_memory.inspector.request_context import RequestContext


async def _rename(context: RequestContext, form: Mapping[str, str]) -> str:
    """Give a topic a name, or none."""
    topic, name = _topic(form, "topic"), form.get("name", "").strip()
    await topics_owner(context).topics.arename(topic, name or None, actor=_actor(context))
    return _page(context, topic)


async def _merge(context: RequestContext, form: Mapping[str, str]) -> str:
    """Make a topic a part of another."""
    mine = topics_owner(context).topics
    return _page(context, await mine.amerge(_topic(form, "topic"), _topic(form, "into"), actor=_actor(context)))


async def _hide(context: RequestContext, form: Mapping[str, str]) -> str:
    """Hide a topic, or show it again."""
    hidden = form.get("do") != "show"
    await topics_owner(context).topics.ahide(_topic(form, "topic"), hidden=hidden, actor=_actor(context))
    return _page(context)


async def _forget(context: RequestContext, form: Mapping[str, str]) -> str:
    """Remember nothing more of a topic."""
    if not form.get("sure"):
        raise InvalidInputError("This change was not confirmed.", hint="Use the forms of the page.")
    await topics_owner(context).topics.aforget(_topic(form, "topic"), actor=_actor(context))
    return _page(context)


def _actor(context: RequestContext) -> str:
    own = topics_owner(context)._services.fixed_user_id if context.acts_as_user else None
    return own or context.state.actor


def _topic(form: Mapping[str, str], name: str) -> str:
    topic = form.get(name, "")
    if not is_uuid(topic):
        raise NotFoundError("There is no such topic here.", hint="Go back to the topics; they may have changed.")
    return topic


def _page(context: RequestContext, topic: str = "") -> str:
    hidden = "1" if context.query.get("hidden") == "1" else None
    address = context.link("/topics", **{**context.member_query, "hidden": hidden})
    return f"{address}#topic-{topic}" if topic else address


ROUTES: Final = [
    change("/topics/rename", _rename),
    change("/topics/merge", _merge),
    change("/topics/hide", _hide),
    change("/topics/forget", _forget),
]
