"""People's changes to spaces: create, join, invite, set roles, withdraw, leave, erase. The database checks roles."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from starlette.exceptions import HTTPException

from langchain_supabase_memory.errors import InvalidInputError, PermissionDeniedError
from langchain_supabase_memory.inspector.edit_routes import change, check_confirmed, form_uuid
from langchain_supabase_memory.inspector.rendering import render_page
from langchain_supabase_memory.inspector.request_context import ONLY_MANAGERS, RequestContext
from langchain_supabase_memory.inspector.screens.board import no_item
from langchain_supabase_memory.settings import Retention
from langchain_supabase_memory.values import SPACE_ROLES

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from starlette.responses import Response
    from starlette.routing import Route

    from langchain_supabase_memory.values import SpaceRole

_KEPT: Final = {"turns": "max_turns", "messages": "max_messages"}
_KEPT_DAYS: Final = {"days": "max_age", "summary_days": "max_summary_age"}
"""The fields of a form that say what is kept, by the setting that each is."""

_MAX_NUMBER: Final = 99_999
"""The largest number in a form, such as days."""


ONLY_MEMBER: Final = "Only the member or a manager of the space sets a member's name.\nAsk one of them."
ONLY_AUTHOR: Final = "Only who contributed an item, or a manager of the space, withdraws it.\nAsk one of them."


def _of_managers(path: str, do: Callable[[RequestContext, Mapping[str, str]], Awaitable[str | Response]]) -> Route:
    """Return the route of a change that only managers make; the database checks it again."""

    async def checked(context: RequestContext, form: Mapping[str, str]) -> str | Response:
        context.named_space()
        await context.admit()
        context.require_manager()
        try:
            return await do(context, form)
        except PermissionDeniedError:  # the role was taken away meanwhile
            raise HTTPException(403, ONLY_MANAGERS) from None

    return change(path, checked)


async def _create(context: RequestContext, form: Mapping[str, str]) -> str:
    """Create a space, which the user manages."""
    made = await context.for_user("spaces").spaces.acreate(form.get("name", ""), about=form.get("about", ""))
    return _page(context, made.space_id)


async def _join(context: RequestContext, form: Mapping[str, str]) -> str:
    """Join a space by the token of an invitation."""
    joined = await context.for_user("spaces").spaces.ajoin(form.get("token", "").strip())
    return _page(context, joined.space_id)


async def _update(context: RequestContext, form: Mapping[str, str]) -> str:
    """Change the name of a space, what it is about, and what is kept there."""
    changed = {name for name in form if f"was_{name}" in form and form[name] != form[f"was_{name}"]}
    kept: dict[str, Any] = {_KEPT[name]: _number(form, name) for name in _KEPT if name in changed}
    kept |= {_KEPT_DAYS[name]: _days(form, name) for name in _KEPT_DAYS if name in changed}
    texts = {name: form[name].replace("\r\n", "\n") for name in ("name", "about") if name in changed}
    before = context.space and context.space.keep
    keep = replace(before or Retention(max_summary_age=None), **kept) if kept else None
    if texts or keep is not None:
        await context.named_space().aupdate(name=texts.get("name"), about=texts.get("about"), keep=keep)
    return _page(context)


async def _invite(context: RequestContext, form: Mapping[str, str]) -> Response:
    """Make an invitation, and show its token this once: it is in no address."""
    uses, days, role = _number(form, "uses"), _days(form, "days"), _role(form, SPACE_ROLES[:-1])
    if uses is None or days is None:
        raise InvalidInputError("An invitation has uses and an end.", hint="Enter how many people it lets in.")
    made = await context.named_space().ainvite(role, uses=uses, expires=days)
    return render_page(context, "invitation.html", tab="spaces", invitation=made)


async def _close(context: RequestContext, form: Mapping[str, str]) -> str:
    """Take all open invitations back."""
    check_confirmed(form)
    await context.named_space().awithdraw_invitations()
    return f"{_page(context)}#invitations"


async def _member(context: RequestContext, form: Mapping[str, str]) -> str:
    """Set what a member may do, or remove them."""
    check_confirmed(form)
    member = form.get("member", "")
    await context.named_space().aset_member(member, None if "remove" in form else _role(form))
    return f"{_page(context)}#members"


async def _name(context: RequestContext, form: Mapping[str, str]) -> str:
    """Set what prompts call a member, as that member or as a manager."""
    space = context.named_space()
    await context.admit()
    try:
        await space.aset_name(form.get("name", ""), member_id=form.get("member", ""))
    except PermissionDeniedError:
        raise HTTPException(403, ONLY_MEMBER) from None
    return f"{_page(context)}#members"


async def _withdraw(context: RequestContext, form: Mapping[str, str]) -> str:
    """Take an item back that was contributed."""
    check_confirmed(form)
    item = form_uuid(form, "item", no_item)
    try:
        await context.named_space().awithdraw(item)
    except PermissionDeniedError:
        raise HTTPException(403, ONLY_AUTHOR) from None
    if form.get("back") == "shared":
        return context.link("/spaces/shared", **context.member_query)
    return f"{_page(context)}#contributed"


async def _leave(context: RequestContext, form: Mapping[str, str]) -> str:
    """Leave the space."""
    check_confirmed(form)
    context.for_user("spaces")
    await context.named_space().aleave()
    return context.link("/spaces", **context.member_query)


async def _forget(context: RequestContext, form: Mapping[str, str]) -> str:
    """Erase the space."""
    check_confirmed(form)
    await context.named_space().aforget()
    return context.link("/spaces", **context.member_query)


def _page(context: RequestContext, space_id: str | None = None) -> str:
    return context.space_link("/spaces/space", space_id or context.space_id or "")


def _role(form: Mapping[str, str], roles: Sequence[SpaceRole] = SPACE_ROLES) -> SpaceRole:
    role = next((each for each in roles if each == form.get("role")), None)
    if role is None:
        raise InvalidInputError("There is no such role here.", hint=f"Choose {' or '.join(roles)}.")
    return role


def _number(form: Mapping[str, str], name: str) -> int | None:
    """Return a whole number of a form; `None` if its field is empty."""
    text = form.get(name, "").strip()
    if text and not (text.isascii() and text.isdigit() and len(text) < 6 and int(text)):
        hint = f"Enter a number from 1 to {_MAX_NUMBER:,}, without a point."
        raise InvalidInputError("That is not such a number.", hint=hint)
    return int(text) if text else None


def _days(form: Mapping[str, str], name: str) -> timedelta | None:
    days = _number(form, name)
    return None if days is None else timedelta(days=days)


ROUTES: Final = [
    change("/spaces/create", _create),
    change("/spaces/join", _join),
    _of_managers("/spaces/update", _update),
    _of_managers("/spaces/invite", _invite),
    _of_managers("/spaces/close", _close),
    _of_managers("/spaces/member", _member),
    change("/spaces/name", _name),
    change("/spaces/withdraw", _withdraw),
    change("/spaces/leave", _leave),
    _of_managers("/spaces/forget", _forget),
]
