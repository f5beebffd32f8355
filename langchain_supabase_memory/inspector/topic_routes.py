"""A person's changes to topics: rename, merge, hide, forget."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from langchain_supabase_memory.errors import NotFoundError
from langchain_supabase_memory.inspector.edit_routes import change, check_confirmed, form_uuid

if TYPE_CHECKING:
    from collections.abc import Mapping

    from langchain_supabase_memory.inspector.request_context import RequestContext


async def _rename(context: RequestContext, form: Mapping[str, str]) -> str:
    """Give a topic a name, or none."""
    topic, name = _topic(form, "topic"), form.get("name", "").strip()
    await context.for_user("topics").topics.arename(topic, name or None, actor=_actor(context))
    return _page(context, topic)


async def _merge(context: RequestContext, form: Mapping[str, str]) -> str:
    """Make a topic a part of another."""
    mine = context.for_user("topics").topics
    return _page(context, await mine.amerge(_topic(form, "topic"), _topic(form, "into"), actor=_actor(context)))


async def _hide(context: RequestContext, form: Mapping[str, str]) -> str:
    """Hide a topic, or show it again."""
    hidden = form.get("do") != "show"
    await context.for_user("topics").topics.ahide(_topic(form, "topic"), hidden=hidden, actor=_actor(context))
    return _page(context)


async def _forget(context: RequestContext, form: Mapping[str, str]) -> str:
    """Remember nothing more of a topic."""
    check_confirmed(form)
    await context.for_user("topics").topics.aforget(_topic(form, "topic"), actor=_actor(context))
    return _page(context)


def _actor(context: RequestContext) -> str:
    own = context.for_user("topics")._services.fixed_user_id if context.acts_as_user else None
    return own or context.state.actor


def _topic(form: Mapping[str, str], name: str) -> str:
    return form_uuid(form, name, _no_topic)


def _no_topic() -> NotFoundError:
    return NotFoundError("There is no such topic here.", hint="Go back to the topics; they may have changed.")


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
