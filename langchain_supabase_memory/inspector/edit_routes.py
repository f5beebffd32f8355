"""People's changes: pin, edit, delete, regenerate, opt out, retry. They need `write` and a form of the session."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qs

from starlette.exceptions import HTTPException
from starlette.responses import RedirectResponse
from starlette.routing import Route

from langchain_supabase_memory.errors import InvalidInputError
from langchain_supabase_memory.inspector.gather import gather_all
from langchain_supabase_memory.inspector.request_context import RequestContext, is_uuid
from langchain_supabase_memory.inspector.screens.board import can_undo_delete, no_item
from langchain_supabase_memory.inspector.screens.causes import cause_of
from langchain_supabase_memory.inspector.undo import UndoableChange
from langchain_supabase_memory.operations.boards.kinds import BOARD_KINDS
from langchain_supabase_memory.values import SPACE

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Hashable, Mapping

    from starlette.requests import Request
    from starlette.responses import Response

    from langchain_supabase_memory.errors import NotFoundError
    from langchain_supabase_memory.memory.conversation import Conversation
    from langchain_supabase_memory.operations.boards.board import BoardItem
    from langchain_supabase_memory.operations.conversations import Column

MAX_FORM_BYTES: Final = 200_000
"""The maximum size of a form: a summary has up to 10,000 characters."""

MAX_RETRIES: Final = 100
"""How many conversations of one cause are tried again at once; another click tries the next."""

READ_ONLY: Final = "This inspector is read-only.\nStart it with --write, or write=True."
OF_SERVER: Final = "In a space only its managers change this, over a server's connection.\nAsk a manager of the space."
FOREIGN_FORM: Final = "This form does not belong to your session.\nReload the page and try again."


def change(path: str, do: Callable[[RequestContext, Mapping[str, str]], Awaitable[str | Response]]) -> Route:
    """Return the route of a change, behind its checks; it redirects to the page that shows the change, or shows it."""

    async def respond(request: Request) -> Response:
        context = RequestContext(request)
        if not context.state.write:
            raise HTTPException(403, READ_ONLY)
        form = await _form(request)
        if not context.state.sessions.is_valid_form(request.scope["state"]["session"], form.get("csrf_token", "")):
            raise HTTPException(403, FOREIGN_FORM)
        done = await do(context, form)
        return RedirectResponse(done, 303) if isinstance(done, str) else done

    return Route(path, respond, methods=["POST"])


def _route(path: str, do: Callable[[RequestContext, Mapping[str, str]], Awaitable[str]]) -> Route:
    """Return the route of a change to what is derived or kept: in a space that is up to its managers, by a server."""

    async def checked(context: RequestContext, form: Mapping[str, str]) -> str:
        await context.admit()
        if not context.write:
            raise HTTPException(403, OF_SERVER)
        return await do(context, form)

    return change(path, checked)


async def _form(request: Request) -> dict[str, str]:
    """Return a form's fields; the last value wins for a repeated name."""
    body = b""
    async for piece in request.stream():
        body += piece
        if len(body) > MAX_FORM_BYTES:
            raise HTTPException(413, "This form is too large.\nShorten the text.")
    try:
        return {name: values[-1] for name, values in parse_qs(body.decode(), keep_blank_values=True).items()}
    except ValueError:
        raise HTTPException(400, "This is not a valid form.\nUse the forms of the page.") from None


async def _pin(context: RequestContext, form: Mapping[str, str]) -> str:
    """Pin or unpin an item."""
    actor = await _actor(context)
    conversation = context.conversation(reading=False)
    name = "pin" if "pin" in form else "unpin"
    item, pinned = form_uuid(form, name, no_item), name == "pin"
    await conversation.board.apin(item, actor=actor, pinned=pinned)

    async def reverse(later: RequestContext) -> None:
        await later.conversation(reading=False).board.apin(item, actor=await _actor(later), pinned=not pinned)

    undo = await _undoable(context, "The item is pinned." if pinned else "The item is not pinned any more.", reverse)
    return f"{context.page_link('/board', undo=undo)}#item-{item}"


async def _edit(context: RequestContext, form: Mapping[str, str]) -> str:
    """Edit or delete an item."""
    actor = await _actor(context)
    conversation, item = context.conversation(reading=False), form_uuid(form, "item", no_item)
    before = await _board_item(conversation, item)
    if "delete" in form:
        await conversation.board.adelete(item, actor=actor)
        undo = await _undo_of_delete(context, before) if before is not None and can_undo_delete(before) else None
        return context.page_link("/board", undo=undo)
    changed: dict[str, Any] = {}
    if form.get("text", "").strip() and form["text"] != form.get("was", ""):
        changed["text"] = form["text"]
    if form.get("state") and form["state"] != form.get("was_state"):
        changed["state"] = form["state"]
    undo = None
    if changed:
        await conversation.board.aedit(item, actor=actor, **changed)
        edited = await _board_item(conversation, item)
        undo = None if before is None or edited is None else await _undo_of_edit(context, before, edited)
    return f"{context.page_link('/board', undo=undo)}#item-{item}"


async def _undo_of_delete(context: RequestContext, before: BoardItem) -> str:
    async def reverse(later: RequestContext) -> None:
        conversation, actor = later.conversation(reading=False), await _actor(later)
        await _require_sources(conversation, before)
        item = await conversation.board.aadd(
            before.kind, before.text, actor=actor, entity_type=before.type, state=before.state
        )
        if before.pinned:
            await conversation.board.apin(item, actor=actor)

    return await _undoable(context, "The item is deleted. Undo brings its words back, without its quote.", reverse)


async def _undo_of_edit(context: RequestContext, before: BoardItem, edited: BoardItem) -> str:
    changes = {
        name: getattr(before, name) for name in ("text", "state") if getattr(before, name) != getattr(edited, name)
    }

    async def reverse(later: RequestContext) -> None:
        conversation, actor = later.conversation(reading=False), await _actor(later)
        await _require_sources(conversation, before)
        now = await _board_item(conversation, before.id)
        if now is None or now.version != edited.version:
            raise changed_since()
        await conversation.board.aedit(before.id, actor=actor, **changes)

    return await _undoable(context, "The item is edited.", reverse) if changes else ""


async def _board_item(conversation: Conversation, item: str) -> BoardItem | None:
    board = await conversation.board.aread(history=True)
    return next((each for each in board.items if each.id == item), None)


async def _require_sources(conversation: Conversation, item: BoardItem) -> None:
    """Refuse to bring back words whose messages somebody has erased since.

    Raises:
        InvalidInputError: A message of the item is gone.
    """
    columns: tuple[Column, ...] = ("message_id",)
    pages = await gather_all(
        *(conversation.aread(from_sequence=place, to_sequence=place, columns=columns) for place in item.sequences)
    )
    if not all(pages):
        raise InvalidInputError(
            "This cannot be undone: a message that it came from is gone.", hint="Write the item anew if it should stay."
        )


def changed_since() -> InvalidInputError:
    """Return the error for a change that another one has followed."""
    return InvalidInputError("This cannot be undone: it was changed since.", hint="Change it by hand.")


async def _undoable(context: RequestContext, text: str, reverse: Callable[[RequestContext], Awaitable[None]]) -> str:
    """Offer to undo a change of a conversation, and return the token for the address of the next page."""
    change = UndoableChange(context.viewer, await _subject(context), text, context.page_link("/undo"), reverse)
    return context.state.undos.put(change)


async def _subject(context: RequestContext) -> Hashable:
    """Return the conversation as the database names it: an address and a signed-in memory do not name its owner.

    Raises:
        NotFoundError: There is no such conversation, or it belongs to another user.
    """
    info = await context.listed_conversation()
    return info.user_id, info.agent_id, info.thread_id


async def _undo(context: RequestContext, form: Mapping[str, str]) -> str:
    """Undo the change that a form names."""
    subject = await _subject(context)
    await context.state.undos.undo(context, form.get("undo", ""), subject)
    return context.page_link("/board")


async def _add(context: RequestContext, form: Mapping[str, str]) -> str:
    """Create an item."""
    actor = await _actor(context)
    kind = next((each for each in BOARD_KINDS if each == form.get("kind")), None)
    if kind is None:
        raise InvalidInputError("There is no such kind of item.", hint="Choose a kind from the list.")
    type_ = (form.get("type") or None) if BOARD_KINDS[kind].types else None
    conversation = context.conversation(reading=False)
    item = await conversation.board.aadd(kind, form.get("text", ""), actor=actor, entity_type=type_)
    return f"{context.page_link('/board')}#item-{item}"


async def _summary(context: RequestContext, form: Mapping[str, str]) -> str:
    """Write the board's summary, or revert it."""
    actor = await _actor(context)
    board = context.conversation(reading=False).board
    before = (await board.aread()).edited_summary or ""
    await board.aedit_summary(form.get("text", ""), actor=actor)
    written = (await board.aread()).edited_at

    async def reverse(later: RequestContext) -> None:
        board = later.conversation(reading=False).board
        if (await board.aread()).edited_at != written:
            raise changed_since()
        await board.aedit_summary(before, actor=await _actor(later))

    return context.page_link("/board", undo=await _undoable(context, "The summary is written.", reverse))


async def _regenerate(context: RequestContext, form: Mapping[str, str]) -> str:
    """Regenerate the board or the summaries from the messages."""
    actor = await _actor(context)
    conversation = context.conversation(reading=False)
    if form.get("what") == "summaries":
        await conversation.summaries.aregenerate(actor=actor)
        return context.page_link("")
    await conversation.board.aregenerate(actor=actor)
    return context.page_link("/board")


async def _segment(context: RequestContext, form: Mapping[str, str]) -> str:
    """Edit a segment of the rolling summary, or revert it."""
    actor = await _actor(context)
    conversation, number = context.conversation(reading=False), form.get("number", "")
    if not (number.isascii() and number.isdigit() and len(number) < 10):
        raise InvalidInputError("There is no such segment.", hint="Use the forms of the page.")
    if "delete" in form:
        await conversation.summaries.adelete(int(number), actor=actor)
    else:
        await conversation.summaries.aedit(int(number), form.get("text", ""), actor=actor)
    return context.page_link("/summaries")


async def _remember(context: RequestContext, form: Mapping[str, str]) -> str:
    """Opt a conversation out of memory, or back in."""
    actor = await _actor(context)
    conversation = context.conversation(reading=False)
    if form.get("do") == "opt_in":
        await conversation.aopt_in(actor=actor)
    else:
        check_confirmed(form)
        await conversation.aopt_out(actor=actor)
    return context.page_link("")


async def _summarize(context: RequestContext, form: Mapping[str, str]) -> str:
    """Request a worker to process due work now."""
    await context.listed_conversation()
    await context.conversation(reading=False).summaries.arequest()
    return context.page_link("")


async def _retry(context: RequestContext, form: Mapping[str, str]) -> str:
    """Retry work that was given up: for one conversation, those of one cause, or all, including those not shown."""
    if form.get("cause"):
        await _retry_cause(context, form["cause"])
    elif context.query.get("thread"):
        await context.listed_conversation()
        await context.conversation(reading=False).work.aretry()
    else:
        await context.owned(context.memory).work.aretry()
    return context.link("/queue", **context.owner_query)


async def _retry_cause(context: RequestContext, cause: str) -> None:
    mine = context.owned(context.memory)
    for status in await mine.work.astatus(state="dead", limit=MAX_RETRIES):
        if cause_of(status) == cause:
            key = status.key
            owner = mine
            if not context.has_one_owner and key.user_id is not None:
                is_space = key.user_id.startswith(SPACE)
                owner = mine.space(key.user_id).memory if is_space else mine.for_user(key.user_id)
            await owner.conversation(key.thread_id, agent_id=key.agent_id).work.aretry()


def form_uuid(form: Mapping[str, str], name: str, missing: Callable[[], NotFoundError]) -> str:
    """Return the id in a field of a form.

    Args:
        form: The form.
        name: The name of the field.
        missing: Makes the error for what does not exist.

    Raises:
        NotFoundError: It is not a valid id.
    """
    text = form.get(name, "")
    if not is_uuid(text):
        raise missing()
    return text


def check_confirmed(form: Mapping[str, str]) -> None:
    """Refuse a change that its form has to confirm, and does not."""
    if not form.get("sure"):
        raise InvalidInputError("This change was not confirmed.", hint="Use the forms of the page.")


async def _actor(context: RequestContext) -> str:
    """Return the name to record with a change of an existing conversation: the owner, if the memory acts as a user.

    Raises:
        NotFoundError: There is no such conversation, or it belongs to another user.
    """
    info = await context.listed_conversation()
    return info.user_id if context.acts_as_user else context.state.actor


ROUTES: Final = [
    _route("/conversation/board/pin", _pin),
    _route("/conversation/board/edit", _edit),
    _route("/conversation/board/add", _add),
    _route("/conversation/board/summary", _summary),
    _route("/conversation/undo", _undo),
    _route("/conversation/regenerate", _regenerate),
    _route("/conversation/segment", _segment),
    _route("/conversation/remember", _remember),
    _route("/conversation/summarize", _summarize),
    _route("/queue/retry", _retry),
]
