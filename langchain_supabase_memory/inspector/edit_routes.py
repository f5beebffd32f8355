"""What people do: pin, edit, delete, regenerate, opt out, retry. Only with `write`, and from a form of this session."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qs

from starlette.exceptions import HTTPException
from starlette.responses import RedirectResponse
from starlette.routing import Route

from langchain_supabase_memory.errors import InvalidInputError
from langchain_supabase_memory.inspector.request_context import RequestContext, is_uuid
from langchain_supabase_memory.inspector.screens.board import no_item
from langchain_supabase_memory.operations.boards.kinds import BOARD_KINDS

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from starlette.requests import Request
    from starlette.responses import Response

LARGEST: Final = 200_000
"""The most bytes of a form: a summary has up to 10,000 characters."""

READ_ONLY: Final = "This inspector shows, and changes nothing.\nStart it with --write, or write=True."
FOREIGN: Final = "This form is not of your session.\nLoad the page anew, and do it again."


def _route(path: str, do: Callable[[RequestContext, Mapping[str, str]], Awaitable[str]]) -> Route:
    """A change, behind what has to be said first; it answers with the page that shows it."""

    async def answer(request: Request) -> Response:
        context = RequestContext(request)
        if not context.write:
            raise HTTPException(403, READ_ONLY)
        form = await _form(request)
        if not context.inspected.sessions.is_valid_form(request.scope["state"]["session"], form.get("mark", "")):
            raise HTTPException(403, FOREIGN)
        return RedirectResponse(await do(context, form), 303)

    return Route(path, answer, methods=["POST"])


async def _form(request: Request) -> dict[str, str]:
    """What a form says; of several values of one name the last."""
    body = b""
    async for piece in request.stream():
        body += piece
        if len(body) > LARGEST:
            raise HTTPException(413, "This is more than a form may hold.\nWrite less.")
    try:
        return {name: values[-1] for name, values in parse_qs(body.decode(), keep_blank_values=True).items()}
    except ValueError:
        raise HTTPException(400, "This is no form.\nUse those of the page.") from None


async def _board(context: RequestContext, form: Mapping[str, str]) -> str:
    """Pin an item, or let go of it."""
    by = await _actor(context)
    conversation = context.conversation(reading=False)
    name = "pin" if "pin" in form else "unpin"
    item = _item_of(form, name)
    await conversation.board.apin(item, actor=by, pinned=name == "pin")
    return _anchor(context.page_link("/board"), item)


async def _item(context: RequestContext, form: Mapping[str, str]) -> str:
    """Edit an item, or delete it."""
    by = await _actor(context)
    conversation, item = context.conversation(reading=False), _item_of(form, "item")
    if "delete" in form:
        await conversation.board.adelete(item, actor=by)
        return context.page_link("/board")
    changed: dict[str, Any] = {}
    if form.get("text", "").strip() and form["text"] != form.get("was", ""):
        changed["text"] = form["text"]
    if form.get("state") and form["state"] != form.get("was_state"):
        changed["state"] = form["state"]
    if changed:
        await conversation.board.aedit(item, actor=by, **changed)
    return _anchor(context.page_link("/board"), item)


async def _add(context: RequestContext, form: Mapping[str, str]) -> str:
    """Write an item."""
    by = await _actor(context)
    kind = next((each for each in BOARD_KINDS if each == form.get("kind")), None)
    if kind is None:
        raise InvalidInputError("There is no such kind of item.", hint="Choose one of the list.")
    type_ = (form.get("type") or None) if BOARD_KINDS[kind].types else None
    conversation = context.conversation(reading=False)
    item = await conversation.board.aadd(kind, form.get("text", ""), actor=by, entity_type=type_)
    return _anchor(context.page_link("/board"), item)


async def _summary(context: RequestContext, form: Mapping[str, str]) -> str:
    """Write the board's summary, or take back what was written."""
    by = await _actor(context)
    await context.conversation(reading=False).board.aedit_summary(form.get("text", ""), actor=by)
    return context.page_link("/board")


async def _regenerate(context: RequestContext, form: Mapping[str, str]) -> str:
    """Write the board, or the summaries, anew from the messages."""
    by = await _actor(context)
    conversation = context.conversation(reading=False)
    if form.get("what") == "summaries":
        await conversation.summaries.aregenerate(actor=by)
        return context.page_link("")
    await conversation.board.aregenerate(actor=by)
    return context.page_link("/board")


async def _segment(context: RequestContext, form: Mapping[str, str]) -> str:
    """Edit a segment of the rolling summary, or take it back."""
    by = await _actor(context)
    conversation, number = context.conversation(reading=False), form.get("number", "")
    if not (number.isascii() and number.isdigit() and len(number) < 10):
        raise InvalidInputError("There is no such segment.", hint="Use the forms of the page.")
    if "delete" in form:
        await conversation.summaries.adelete(int(number), actor=by)
    else:
        await conversation.summaries.aedit(int(number), form.get("text", ""), actor=by)
    return context.page_link("/summaries")


async def _remember(context: RequestContext, form: Mapping[str, str]) -> str:
    """Do not remember a conversation, or remember it again."""
    by = await _actor(context)
    conversation = context.conversation(reading=False)
    if form.get("do") == "opt_in":
        await conversation.aopt_in(actor=by)
    elif form.get("sure"):
        await conversation.aopt_out(actor=by)
    else:
        raise InvalidInputError("Nobody was asked whether that is meant.", hint="Use the forms of the page.")
    return context.page_link("")


async def _summarize(context: RequestContext, form: Mapping[str, str]) -> str:
    """Ask a worker to do what there is to do now."""
    await context.listed_conversation()
    await context.conversation(reading=False).summaries.arequest()
    return context.page_link("")


async def _retry(context: RequestContext, form: Mapping[str, str]) -> str:
    """Try again what was given up: of one conversation, or of all, those that are not shown as well."""
    if context.asked.get("thread"):
        await context.listed_conversation()
        await context.conversation(reading=False).work.aretry()
    else:
        await context.memory._for(context.user_id).work.aretry()
    return context.link("/queue", user=context.user_id if context.sees_all_users else None)


def _item_of(form: Mapping[str, str], name: str) -> str:
    """The item that a form names.

    Raises:
        NotFoundError: It can be none.
    """
    item = form.get(name, "")
    if not is_uuid(item):
        raise no_item()
    return item


async def _actor(context: RequestContext) -> str:
    """Who is noted with a change of a conversation that is there: who acts as a user, whose it is then.

    Raises:
        NotFoundError: There is no such conversation, or it is somebody else's.
    """
    info = await context.listed_conversation()
    return info.user_id if context.acts_as_user else context.inspected.actor


def _anchor(address: str, item: str) -> str:
    return f"{address}#item-{item}" if item.replace("-", "").isalnum() else address


ROUTES: Final = [
    _route("/conversation/board/pin", _board),
    _route("/conversation/board/edit", _item),
    _route("/conversation/board/add", _add),
    _route("/conversation/board/summary", _summary),
    _route("/conversation/regenerate", _regenerate),
    _route("/conversation/segment", _segment),
    _route("/conversation/remember", _remember),
    _route("/conversation/summarize", _summarize),
    _route("/queue/retry", _retry),
]
