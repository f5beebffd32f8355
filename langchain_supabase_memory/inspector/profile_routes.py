"""A person's changes to their profile: remember, correct, delete, pin, allow. The database decides what holds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from langchain_supabase_memory.errors import InvalidInputError
from langchain_supabase_memory.inspector.edit_routes import change, check_confirmed, form_uuid
from langchain_supabase_memory.inspector.screens.profile import (
    KINDS,
    PURPOSES,
    no_profile_item,
    page_query,
    profile_owner,
)
from langchain_supabase_memory.inspector.undo import UndoableChange

if TYPE_CHECKING:
    from collections.abc import Mapping

    from langchain_supabase_memory.inspector.request_context import RequestContext


async def _remember(context: RequestContext, form: Mapping[str, str]) -> str:
    """Remember something about the user."""
    kind = next((each for each in KINDS if each == form.get("kind")), None)
    if kind is None:
        raise InvalidInputError("There is no such kind of item.", hint="Choose a kind from the list.")
    subject = form.get("subject", "").strip() or None
    mine = profile_owner(context).profile
    item = await mine.aremember(form.get("text", ""), kind=kind, subject=subject, actor=_actor(context))
    return _page(context, item)


async def _correct(context: RequestContext, form: Mapping[str, str]) -> str:
    """Set the right value of an item."""
    item, value = form_uuid(form, "item", no_profile_item), form.get("value", "").replace("\r\n", "\n")
    if value.strip() != form.get("was", "").strip():
        item = await profile_owner(context).profile.acorrect(item, value, actor=_actor(context))
    return _page(context, item)


async def _mark(context: RequestContext, form: Mapping[str, str]) -> str:
    """Confirm, pin or unpin an item."""
    name = next((each for each in ("confirm", "pin", "unpin") if each in form), "item")
    item, mine = form_uuid(form, name, no_profile_item), profile_owner(context).profile
    if name == "confirm":
        item = await mine.aconfirm(item, actor=_actor(context))
    else:
        pinned = name == "pin"
        await mine.apin(item, pinned=pinned, actor=_actor(context))

        async def reverse(later: RequestContext) -> None:
            await profile_owner(later).profile.apin(item, pinned=not pinned, actor=_actor(later))

        text = "The item is pinned." if pinned else "The item is not pinned any more."
        action = context.link("/profile/undo", **page_query(context))
        undo = context.state.undos.put(UndoableChange(context.viewer, _subject(context), text, action, reverse))
        return _page(context, item, undo=undo)
    return _page(context, item)


async def _undo(context: RequestContext, form: Mapping[str, str]) -> str:
    """Undo the change that a form names."""
    await context.state.undos.undo(context, form.get("undo", ""), _subject(context))
    return _page(context)


def _subject(context: RequestContext) -> tuple[str, str | None]:
    return "profile", profile_owner(context).user_id


async def _delete(context: RequestContext, form: Mapping[str, str]) -> str:
    """Delete an item."""
    check_confirmed(form)
    await profile_owner(context).profile.adelete(form_uuid(form, "item", no_profile_item), actor=_actor(context))
    return _page(context)


async def _consent(context: RequestContext, form: Mapping[str, str]) -> str:
    """Allow or refuse a purpose; what is refused goes, so that is asked first."""
    purpose = next((each for each in PURPOSES if each == form.get("purpose")), None)
    if purpose is None:
        raise InvalidInputError("There is no such purpose.", hint="Use the forms of the page.")
    allowed = form.get("do") == "allow"
    if not allowed:
        check_confirmed(form)
    mine = profile_owner(context)
    actor = _actor(context) or mine._services.fixed_user_id or context.state.actor
    await mine.privacy.aconsent(purpose, allowed, actor=actor)
    return f"{context.link('/profile', **context.member_query)}#allowed"


def _actor(context: RequestContext) -> str | None:
    """Return the name to record with a change; `None` for the user, if the memory acts as one."""
    return None if context.acts_as_user else context.state.actor


def _page(context: RequestContext, item: str = "", undo: str = "") -> str:
    address = context.link("/profile", **page_query(context), undo=undo)
    return f"{address}#item-{item}" if item else address


ROUTES: Final = [
    change("/profile/remember", _remember),
    change("/profile/correct", _correct),
    change("/profile/mark", _mark),
    change("/profile/undo", _undo),
    change("/profile/delete", _delete),
    change("/profile/consent", _consent),
]
