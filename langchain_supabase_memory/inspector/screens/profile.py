"""A user's profile: what is remembered of them and why, what they allow, and their copy of it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, get_args

from starlette.responses import StreamingResponse

from langchain_supabase_memory.errors import NotFoundError
from langchain_supabase_memory.inspector.gather import gather_all
from langchain_supabase_memory.inspector.rendering import etag, render_page, render_part
from langchain_supabase_memory.inspector.request_context import RequestContext, is_uuid
from langchain_supabase_memory.language.messages.invisible import spell_out
from langchain_supabase_memory.operations.profile import (
    KIND_HEADINGS,
    ProfileKind,
    Purpose,
    export_page,
    read_page,
    to_item,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence

    from starlette.requests import Request
    from starlette.responses import Response

    from langchain_supabase_memory.memory.memory import SupabaseMemory
    from langchain_supabase_memory.operations.controls import OptOut
    from langchain_supabase_memory.operations.profile import Consent, ProfileItem, ProfileState

KINDS: Final[tuple[ProfileKind, ...]] = get_args(ProfileKind)
"""The kinds of items, as a form offers them."""

PURPOSES: Final[tuple[Purpose, ...]] = get_args(Purpose)
"""What a user allows, in the order of the page."""

PAGES: Final[Mapping[ProfileState, tuple[str, int]]] = {
    "held": ("held", 40),
    "proposed": ("proposed", 20),
    "superseded": ("before", 20),
}
"""The lists of the page, by the state of their items: the argument of the address, and how many items it shows."""

MAX_TOPICS: Final = 100
"""The maximum number of opted-out topics shown."""


@dataclass(frozen=True)
class ItemPage:
    """A page of the items of one state.

    Attributes:
        rows: The items, in the order in which prompts have them.
        first: The address of the first page; empty on that page.
        following: The address of the next page; empty on the last one.
    """

    rows: Sequence[ProfileItem]
    first: str
    following: str

    @property
    def count(self) -> int | None:
        """How many items there are; `None` if they are on several pages."""
        return None if self.first or self.following else len(self.rows)

    @property
    def groups(self) -> list[tuple[str, list[ProfileItem]]]:
        """The items under their headings: pinned ones first, then by kind."""
        found = [("Pinned", [item for item in self.rows if item.pinned])]
        found += [
            (heading, [item for item in self.rows if item.kind in kinds and not item.pinned])
            for heading, kinds in KIND_HEADINGS
        ]
        return [(heading, items) for heading, items in found if items]


@dataclass(frozen=True)
class Person:
    """What is known of a user, and what they allow.

    Attributes:
        pages: The items, by their state.
        consents: What they said of each purpose; without those that they were never asked about.
        opt_outs: What they do not want remembered.
    """

    pages: Mapping[ProfileState, ItemPage]
    consents: Mapping[Purpose, Consent]
    opt_outs: Sequence[OptOut]

    @property
    def topics(self) -> list[OptOut]:
        """The opted-out topics."""
        return [each for each in self.opt_outs if each.topic is not None]

    def allows(self, purpose: Purpose) -> bool:
        """Return whether they do not refuse a purpose."""
        consent = self.consents.get(purpose)
        return consent is None or consent.allowed

    @property
    def etag(self) -> str:
        """The version of the data, so that the page is notified of a change."""
        items = [
            (item.id, item.state, item.value, item.pinned, item.basis, item.last_seen_at, item.ended_at)
            for page in self.pages.values()
            for item in page.rows
        ]
        return etag(items, self.consents, [(each.topic, each.at) for each in self.opt_outs])


@dataclass(frozen=True)
class Names:
    """How the page speaks of the user: as `you` if they look themself, else as `they`.

    Attributes:
        user_id: The user; `None` where a token does not show it.
        is_viewer: Whether they look themself.
    """

    user_id: str | None
    is_viewer: bool

    @property
    def who(self) -> str:
        """The user, as a subject."""
        return "you" if self.is_viewer else "they"

    @property
    def whom(self) -> str:
        """The user, as an object."""
        return "you" if self.is_viewer else "them"

    @property
    def possessive(self) -> str:
        """The user, as an owner."""
        return "your" if self.is_viewer else "their"

    def actor(self, item: ProfileItem) -> str | None:
        """Return who wrote or confirmed an item, if that was not the user."""
        by = item.confirmed_by
        return None if item.basis != "person" or by == self.user_id or (self.is_viewer and by is None) else by

    def reason(self, item: ProfileItem) -> str:
        """Return why an item holds, or why not, in plain words; the subject is left out if it is `actor`."""
        if item.basis == "person":
            did = "wrote it" if item.author_kind in ("person", "application") else "confirmed it"
            return did if self.actor(item) else f"{self.who} {did}"
        if item.basis == "inferred" and item.suggested_at is not None:
            return (
                f"{'imported from' if item.author_kind == 'import' else 'suggested by'} {spell_out(item.author[:60])}"
            )
        return {
            "corrected": f"{self.who} corrected it",
            "stated": f"{self.who} said that it lasts",
            "repeated": f"{self.who} said it in two conversations",
        }.get(item.basis, f"{self.who} said it once, and not that it lasts")


def profile_owner(context: RequestContext) -> SupabaseMemory:
    """Return the memory of the user whose profile it is, for changes."""
    return context.for_user("the profile")


def page_query(context: RequestContext) -> dict[str, str]:
    """Return the arguments of an address that name the user, and which page of each list is shown."""
    shown = {name: context.query[name] for name, _ in PAGES.values() if _cursor(context.query.get(name, ""))}
    return {**context.member_query, **shown}


async def load_profile(context: RequestContext) -> Person:
    """Load the pages of the profile that the address asks for."""
    mine = profile_owner(context)
    pages, consents, opt_outs = await gather_all(
        gather_all(*(_load_page(context, mine, state) for state in PAGES)),
        mine.privacy.aconsents(),
        mine.privacy.aopt_outs(),
    )
    return Person(dict(zip(PAGES, pages, strict=True)), {each.purpose: each for each in consents}, opt_outs)


async def screen(request: Request) -> Response:
    """Render the profile."""
    context = RequestContext(request)
    person = await load_profile(context) if context.has_user else None
    if person is None:
        await context.reader.for_user("inspector").privacy.aconsents()  # raises where the schema is another release's
    is_first = page_query(context) == context.member_query
    return render_page(
        context,
        "profile.html",
        tab="profile",
        etag="" if person is None else person.etag,
        about="profile" if person is not None and is_first else "",
        person=person,
        names=_names(context),
        here=page_query(context),
        kinds=KINDS,
        purposes=PURPOSES,
        max_topics=MAX_TOPICS,
        is_gathered=context.memory._services.config.profile,
    )


async def item(request: Request) -> Response:
    """Render one item with its quotes, its history and its forms; in place, or as a page."""
    context = RequestContext(request)
    item_id = context.query.get("item", "")
    if not is_uuid(item_id):
        raise no_profile_item()
    told = await profile_owner(context).profile.ahistory(item_id)
    found = next((each for each in told if each.id == item_id), None)
    if found is None:
        raise no_profile_item()
    values: dict[str, Any] = {"item": found, "told": told, "names": _names(context), "here": page_query(context)}
    if context.is_part:
        return render_part(context, "part_profile_item.html", **values)
    return render_page(context, "profile_item.html", tab="profile", **values)


async def export(request: Request) -> Response:
    """Send the profile as JSON lines, as an import reads them: a page a line, the first with what they allow."""
    context = RequestContext(request)
    mine = profile_owner(context)
    begun = await _export_page(mine, None)  # an error is answered as one

    async def lines() -> AsyncIterator[str]:
        document, after = begun
        yield json.dumps(document, ensure_ascii=False) + "\n"
        while after is not None:
            document, after = await _export_page(mine, after)
            yield json.dumps(document, ensure_ascii=False) + "\n"

    headers = {"content-disposition": 'attachment; filename="profile.jsonl"'}
    return StreamingResponse(lines(), headers=headers, media_type="application/jsonl")


def no_profile_item() -> NotFoundError:
    """Return the error for an item that does not exist, and for another user's."""
    return NotFoundError("There is no such item here.", hint="Go back to the profile; it may have changed.")


async def _load_page(context: RequestContext, mine: SupabaseMemory, state: ProfileState) -> ItemPage:
    name, size = PAGES[state]
    after = _cursor(context.query.get(name, ""))
    page = await mine._services.arun(read_page(mine._services.owner(), states=[state], limit=size, after=after))

    def address(cursor: str | None) -> str:
        return f"{context.link('/profile', **{**page_query(context), name: cursor})}#{state}"

    following = address(_cursor_text(page["after"])) if page["after"] is not None else ""
    return ItemPage([to_item(row) for row in page["items"]], address(None) if after else "", following)


async def _export_page(
    mine: SupabaseMemory, after: Mapping[str, Any] | None
) -> tuple[dict[str, Any], Mapping[str, Any] | None]:
    return await mine._services.arun(export_page(mine._services.owner(), after))


def _cursor_text(after: Mapping[str, Any]) -> str:
    """Return where a page goes on, as an argument of an address."""
    return "~".join(("1" if after["pinned"] else "0", after["kind"], after["last_seen_at"], after["id"]))


def _cursor(text: str) -> dict[str, Any] | None:
    """Return where a page goes on; `None`, so that it begins at the first item, if an address has nothing valid."""
    parts = text.split("~")
    if len(parts) != 4 or parts[0] not in ("0", "1") or parts[1] not in KINDS or not is_uuid(parts[3]):
        return None
    try:
        if datetime.fromisoformat(parts[2]).tzinfo is None:
            return None
    except ValueError:
        return None
    return {"pinned": parts[0] == "1", "kind": parts[1], "last_seen_at": parts[2], "id": parts[3]}


def _names(context: RequestContext) -> Names:
    user = context.memory._for(context.user_id)._services.fixed_user_id if context.has_user else None
    return Names(user, context.acts_as_user)
