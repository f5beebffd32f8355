"""Flows of spaces: memory that several people share, with roles. What is stored there is stored by the other flows."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from langchain_supabase_memory.checks import choice, positive_duration, require_type, wrong_type
from langchain_supabase_memory.effects import Flow, call
from langchain_supabase_memory.errors import InvalidInputError
from langchain_supabase_memory.operations.arguments import retention_argument
from langchain_supabase_memory.operations.rows import value_of
from langchain_supabase_memory.settings import Retention
from langchain_supabase_memory.values import SPACE_ROLES, Receipt, SpaceRole, as_id

if TYPE_CHECKING:
    from collections.abc import Mapping

INVITATION_EXPIRY: Final = timedelta(days=7)
"""How long an invitation can be used by default."""


@dataclass(frozen=True)
class Member:
    """A member of a space.

    Attributes:
        user_id: The user.
        role: What they may do.
        granted_by: Who gave them that role.
        since: When.
        name: What prompts call them: what `set_name` set, else `member` and a number.
    """

    user_id: str
    role: SpaceRole
    granted_by: str
    since: datetime
    name: str = field(default="", repr=False)


@dataclass(frozen=True)
class Invitation:
    """An invitation that was just made.

    Attributes:
        role: What it makes of who uses it.
        expires_at: Until when it can be used.
        uses: How many people it lets in.
        token: What `spaces.join` takes; it is shown once and never stored.
    """

    role: SpaceRole
    expires_at: datetime
    uses: int
    token: str = field(repr=False)


@dataclass(frozen=True)
class OpenInvitation:
    """An invitation that can still be used, as managers see it: without its token.

    Attributes:
        role: What it makes of who uses it.
        expires_at: Until when it can be used.
        uses: How many people it still lets in.
        created_by: Who invites.
    """

    role: SpaceRole
    expires_at: datetime
    uses: int
    created_by: str


@dataclass(frozen=True)
class SpaceInfo:
    """What a space is, as a member sees it.

    Attributes:
        space_id: Names the space in calls: `space:` and a UUID.
        name: What it is called, for display alone: names are not unique.
        about: What it is for.
        role: What the member who asks may do there; `None` where a server asks by itself.
        created_by: Who created it; `None` in a list.
        created_at: When; `None` in a list.
        members: Who is in it, managers first; empty in a list.
        invitations: The open invitations; empty in a list, and for who is no manager.
        since: Since when the member who asks has that role; only in a list.
        keep: What is kept of its messages; `None` in a list, and where everything is kept.
    """

    space_id: str
    name: str
    about: str = field(default="", repr=False)
    role: SpaceRole | None = None
    created_by: str | None = None
    created_at: datetime | None = None
    members: tuple[Member, ...] = ()
    invitations: tuple[OpenInvitation, ...] = ()
    since: datetime | None = None
    keep: Retention | None = None


def create(owner: str | None, name: str, *, about: str = "", keep: Retention | None = None) -> Flow[SpaceInfo]:
    """Create a space. Who creates it manages it.

    Args:
        owner: Who creates it; `None` means the access token's subject.
        name: What it is called, 1 to 200 characters; for display alone.
        about: What it is for, at most 8,000 bytes.
        keep: What is kept of its messages, in place of what any call says; everything by default.

    Returns:
        The new space: `memory.space(made.space_id)` is its handle.

    Raises:
        InvalidInputError: The name or the text is too long, or the name is empty.
        TooLargeError: The user has created, or is in, as many spaces as the limits allow.
        MigrationConflictError: Spaces are not switched on in this database.
    """
    _check_text("name", name)
    _check_text("about", about, optional=True)
    arguments = {"p_name": name, "p_about": about, "p_retention": _keep_argument(keep)}
    answer = yield from call("memory_create_space", {**arguments, "p_user_id": owner})
    return SpaceInfo(answer["space_id"], answer["name"], about, "manager")


def update(
    space: str,
    member: str | None,
    *,
    name: str | None = None,
    about: str | None = None,
    keep: Retention | None = None,
) -> Flow[None]:
    """Change what the space is called, what it is for, and what is kept there, as one of its managers.

    Args:
        space: The space.
        member: The manager; `None` means the access token's subject, or a server by itself.
        name: What it is called from now on, 1 to 200 characters; as before by default.
        about: What it is for, at most 8,000 bytes; as before by default.
        keep: What is kept of its messages; as before by default, and everything with `Retention()`.

    Raises:
        InvalidInputError: The name or the text is too long, or the name is empty.
        PermissionDeniedError: Only a manager may.
    """
    if name is not None:
        _check_text("name", name)
    _check_text("about", about or "", optional=True)
    arguments = {"p_name": name, "p_about": about, "p_retention": _keep_argument(keep)}
    yield from call("memory_update_space", {"p_space": space, **arguments, "p_user_id": member})


def spaces(owner: str | None) -> Flow[list[SpaceInfo]]:
    """List the spaces that the user is in, by their names.

    Args:
        owner: The user; `None` means the access token's subject.
    """
    rows = yield from call("memory_spaces", {"p_user_id": owner})
    return [value_of(SpaceInfo, row) for row in rows]


def join(owner: str | None, token: str) -> Flow[SpaceInfo]:
    """Join a space by an invitation.

    Who is in it already keeps the higher of the two roles. Who has left, or was removed, needs an invitation newer
    than that.

    Args:
        owner: Who joins; `None` means the access token's subject.
        token: What `space.invite` gave.

    Raises:
        NotFoundError: There is no such invitation, or it has expired or is used up.
        TooLargeError: The space has as many members, or the user is in as many spaces, as the limits allow.
    """
    _check_text("token", token)
    answer = yield from call("memory_join", {"p_token": token, "p_user_id": owner})
    return SpaceInfo(answer["space_id"], answer["name"], role=answer["role"])


def info(space: str, member: str | None) -> Flow[SpaceInfo]:
    """Return what the space is, and who is in it.

    Args:
        space: The space.
        member: Who asks; `None` means the access token's subject, or a server by itself.

    Raises:
        NotFoundError: There is no such space, or who asks is not in it.
    """
    row = yield from call("memory_space", {"p_space": space, "p_user_id": member})
    members = tuple(value_of(Member, each) for each in row["members"])
    invitations = tuple(value_of(OpenInvitation, each) for each in row["invitations"] or ())
    return value_of(SpaceInfo, row, members=members, invitations=invitations, keep=_keep(row["retention"]))


def invite(
    space: str, member: str | None, role: SpaceRole = "reader", *, uses: int = 1, expires: timedelta = INVITATION_EXPIRY
) -> Flow[Invitation]:
    """Invite people into the space, as one of its managers. Whoever has the token joins by `memory.spaces.join`.

    Args:
        space: The space.
        member: The manager; `None` means the access token's subject, or a server by itself.
        role: What it makes of who uses it: `reader` or `contributor`. Managers are made by `set_member`.
        uses: How many people it lets in, 1 to 1,000.
        expires: How long it can be used, at most a year.

    Returns:
        The invitation with its token, which is shown this once.

    Raises:
        ConfigurationError: There is no such role, or the time is no timedelta.
        InvalidInputError: The uses or the time is out of range.
        PermissionDeniedError: Only a manager may.
        TooLargeError: There are as many open invitations as the limits allow.
    """
    choice("role", role, SPACE_ROLES[:-1])
    positive_duration("expires", expires, optional=False)
    arguments = {"p_role": role, "p_uses": uses, "p_expires_seconds": expires.total_seconds()}
    answer = yield from call("memory_invite", {"p_space": space, **arguments, "p_user_id": member})
    return Invitation(role, datetime.fromisoformat(answer["expires_at"]), uses, answer["token"])


def withdraw_invitations(space: str, member: str | None) -> Flow[None]:
    """Take all open invitations back, as one of the managers.

    Args:
        space: The space.
        member: The manager; `None` means the access token's subject, or a server by itself.

    Raises:
        PermissionDeniedError: Only a manager may.
    """
    yield from call("memory_invite", {"p_space": space, "p_role": None, "p_user_id": member})


def set_member(space: str, member: str | None, member_id: str, role: SpaceRole | None) -> Flow[None]:
    """Set what a member may do, as one of the managers. It holds from the next statement on.

    Args:
        space: The space.
        member: The manager; `None` means the access token's subject, or a server by itself, which may also add members.
        member_id: The user whose role is set.
        role: What they may do from now on; `None` removes them. What they wrote stays, and is theirs to forget.

    Raises:
        ConfigurationError: There is no such role.
        InvalidInputError: The space would have no manager.
        NotFoundError: There is no such member.
        PermissionDeniedError: Only a manager may.
    """
    choice("role", role, SPACE_ROLES, optional=True)
    arguments = {"p_member": as_id("member_id", member_id), "p_role": role}
    yield from call("memory_set_member", {"p_space": space, **arguments, "p_user_id": member})


def set_name(space: str, member: str | None, name: str, *, member_id: str | None = None) -> Flow[str]:
    """Set what prompts call a member, as that member or as one of the managers; it holds for all that they wrote.

    Args:
        space: The space.
        member: Who sets it; `None` means the access token's subject, or a server by itself.
        name: The name, 1 to 40 letters, digits, spaces and signs of names.
        member_id: The member; who sets it by default.

    Returns:
        What they are called now: with a number where somebody else is called that already.

    Raises:
        InvalidInputError: That is no name, or it is that of a role, such as `assistant`.
        NotFoundError: There is no such member.
        PermissionDeniedError: Only the member and a manager may.
    """
    _check_text("name", name)
    known = None if member_id is None else as_id("member_id", member_id)
    arguments = {"p_space": space, "p_name": name, "p_member": known, "p_user_id": member}
    answer = yield from call("memory_name_member", arguments)
    return str(answer["name"])


def leave(space: str, member: str | None) -> Flow[None]:
    """Leave the space. What the member wrote stays, and they may still forget it.

    Args:
        space: The space.
        member: Who leaves; `None` means the access token's subject.

    Raises:
        InvalidInputError: The last manager cannot leave: make somebody else one, or forget the space.
        NotFoundError: There is no such space, or who leaves is not in it.
    """
    yield from call("memory_set_member", {"p_space": space, "p_member": member, "p_user_id": member})


def forget(space: str, member: str | None, *, dry_run: bool = False) -> Flow[Receipt]:
    """Erase the space, as one of its managers: everything that it owns, its members and its invitations.

    Args:
        space: The space.
        member: The manager; `None` means the access token's subject, or a server by itself.
        dry_run: Only report what would go.

    Returns:
        What was removed. What its members hold for themselves stays.

    Raises:
        PermissionDeniedError: Only a manager may.
    """
    went = yield from call("memory_forget_space", {"p_space": space, "p_dry_run": dry_run, "p_user_id": member})
    kinds = ("conversations", "messages", "segments", "chunks", "items", "members", "contributions")
    return Receipt(**{kind: went[kind] for kind in kinds}, dry_run=dry_run)


def _keep_argument(keep: Retention | None) -> dict[str, float | None] | None:
    require_type("keep", keep, Retention, "keep=Retention(max_age=timedelta(days=30))", optional=True)
    return retention_argument(keep)


def _keep(retention: Mapping[str, Any] | None) -> Retention | None:
    if retention is None:
        return None
    ages = {name: retention.get(name) for name in ("age", "summary_age")}
    age, summary_age = (None if each is None else timedelta(seconds=each) for each in ages.values())
    return Retention(retention.get("turns"), age, retention.get("messages"), summary_age)


def _check_text(name: str, text: object, *, optional: bool = False) -> None:
    if not isinstance(text, str):
        raise wrong_type(name, "a text", text, f'Pass {name}="...".', InvalidInputError)
    if not (optional or text.strip()):
        raise InvalidInputError(f"{name} must not be empty.", hint=f'Pass {name}="...".')
