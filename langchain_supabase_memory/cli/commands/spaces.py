"""`supabase-memory spaces`."""

from __future__ import annotations

from dataclasses import asdict
from datetime import timedelta
from typing import TYPE_CHECKING

import click

from langchain_supabase_memory.cli import confirmation, formatting
from langchain_supabase_memory.cli.formatting import format_id
from langchain_supabase_memory.cli.options import json_option, reject_options, user_option, with_database_options
from langchain_supabase_memory.language.messages.invisible import spell_out
from langchain_supabase_memory.values import SPACE_ROLES

if TYPE_CHECKING:
    from langchain_supabase_memory.cli.options import Address
    from langchain_supabase_memory.values import SpaceRole

_NOBODY = "none"
"""The role that removes a member."""

_user = user_option("The user who does it")


@click.group()
def spaces() -> None:
    """Create spaces that people share, invite into them, and set roles.

    `supabase-memory migrate --spaces` switches spaces on. Other commands take the id of a space as --user.
    """


@spaces.command("list")
@with_database_options
@user_option("The member")
@json_option
def list_spaces(address: Address, user_id: str, as_json: bool) -> None:
    """List the spaces that a user is in."""
    with address.open() as memory:
        found = memory.for_user(user_id).spaces.list()
    if as_json:
        keys = ("space_id", "name", "about", "role")
        formatting.echo_json({"spaces": [{key: getattr(each, key) for key in keys} for each in found]})
        return
    for each in found:
        click.echo(f"{each.space_id}\t{each.role}\t{spell_out(each.name)}")
    if not found:
        click.echo(f"The user {format_id(user_id)} is in no space.", err=True)


@spaces.command()
@with_database_options
@click.argument("space")
@json_option
def show(address: Address, space: str, as_json: bool) -> None:
    """Print what a space is, who is in it, and its open invitations."""
    with address.open() as memory:
        found = memory.space(space).info()
    if as_json:
        formatting.echo_json(asdict(found))
        return
    click.echo(f"{spell_out(found.name)}, created by {format_id(str(found.created_by))}")
    for member in found.members:
        who = f"{format_id(member.user_id)}\t{spell_out(member.name)}"
        click.echo(f"{member.role}\t{who}\tby {format_id(member.granted_by)}")
    for open_one in found.invitations:
        click.echo(f"invitation\t{open_one.role}\tfor {open_one.uses}, until {open_one.expires_at:%Y-%m-%d %H:%M %Z}")


@spaces.command()
@with_database_options
@click.argument("name")
@_user
@click.option("--about", default="", help="What it is for.")
def create(address: Address, name: str, user_id: str, about: str) -> None:
    """Create a space, which the user manages, and print its id."""
    with address.open() as memory:
        click.echo(memory.for_user(user_id).spaces.create(name, about=about).space_id)


@spaces.command()
@with_database_options
@click.argument("space")
@click.option(
    "--role", type=click.Choice(SPACE_ROLES[:-1]), default="reader", show_default=True, help="What it grants."
)
@click.option("--uses", type=click.IntRange(1, 1000), default=1, show_default=True, help="How many people it lets in.")
@click.option(
    "--hours", type=click.FloatRange(0, 8760, min_open=True), default=168, show_default=True, help="How long."
)
def invite(address: Address, space: str, role: SpaceRole, uses: int, hours: float) -> None:
    """Make an invitation, and print its token, which is shown this once."""
    with address.open() as memory:
        click.echo(memory.space(space).invite(role, uses=uses, expires=timedelta(hours=hours)).token)


@spaces.command()
@with_database_options
@click.argument("token")
@_user
def join(address: Address, token: str, user_id: str) -> None:
    """Join a space by the token of an invitation."""
    with address.open() as memory:
        joined = memory.for_user(user_id).spaces.join(token)
    click.echo(f"{format_id(user_id)} is a {joined.role} of {spell_out(joined.name)}, {joined.space_id}.")


@spaces.command("set-role")
@with_database_options
@click.argument("space")
@click.argument("user")
@click.argument("role", type=click.Choice([*SPACE_ROLES, _NOBODY]))
def set_role(address: Address, space: str, user: str, role: str) -> None:
    """Add a member, set what they may do, or remove them with the role none."""
    with address.open() as memory:
        memory.space(space).set_member(user, None if role == _NOBODY else role)  # type: ignore[arg-type]
    click.echo(f"{format_id(user)} is {'no member' if role == _NOBODY else f'a {role}'} of the space now.")


@spaces.command("set-name")
@with_database_options
@click.argument("space")
@click.argument("user")
@click.argument("name")
def set_name(address: Address, space: str, user: str, name: str) -> None:
    """Set what prompts call a member, and print it: with a number where somebody is called that already."""
    with address.open() as memory:
        click.echo(spell_out(memory.space(space).set_name(name, member_id=user)))


@spaces.command("forget")
@with_database_options
@click.argument("space")
@click.option("--dry-run", is_flag=True, help="Only print what would be deleted.")
@click.option("--yes", is_flag=True, help="Delete without asking.")
def forget_space(address: Address, space: str, dry_run: bool, yes: bool) -> None:
    """Erase a space: everything that it owns, its members and its invitations."""
    if dry_run:
        reject_options(["yes"], "--dry-run deletes nothing.")
    else:
        confirmation.require_tty(yes)
    with address.open() as memory:
        handle = memory.space(space)
        counts = confirmation.receipt_text(handle.forget(dry_run=True), with_conversations=True)
        if dry_run:
            click.echo(f"{counts} would be deleted.")
            return
        if not yes:
            name = handle.info().name
            confirmation.confirm_by_name(f"Delete {counts} for good? Type the space's name to do so:", name)
        receipt = handle.forget()
    click.echo(f"{confirmation.receipt_text(receipt, with_conversations=True)} deleted.")
