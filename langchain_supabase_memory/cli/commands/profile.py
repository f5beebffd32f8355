"""`supabase-memory profile`."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final, get_args

import click

from langchain_supabase_memory.cli import confirmation, formatting
from langchain_supabase_memory.cli.formatting import format_id
from langchain_supabase_memory.cli.options import (
    json_option,
    reject_options,
    reject_options_before_command,
    user_option,
    with_database_options,
)
from langchain_supabase_memory.errors import NotFoundError
from langchain_supabase_memory.language.messages.invisible import spell_out
from langchain_supabase_memory.operations.profile import KIND_HEADINGS, ProfileKind, Purpose

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from langchain_supabase_memory.cli.options import Address
    from langchain_supabase_memory.memory.memory import SupabaseMemory
    from langchain_supabase_memory.operations.profile import ProfileEvidence, ProfileItem

_MAX_LIMIT: Final = 10_000
_DERIVED: Final[dict[Purpose, str]] = {
    "profile": "all that is remembered",
    "topics": "all topics and their names",
    "signals": "all signals",
    "tone": "the tone of all messages",
    "analytics": "all usage by day",
}
"""What there is of each purpose, and goes when it is refused."""

_TIMES: Final = ["%Y-%m-%d", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M:%S%z", "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M"]

_user = user_option("Whose profile it is")
_actor = click.option("--actor", help="Who does it, as the history names them; by default the user.")
_item = click.argument("item")


@click.group(invoke_without_command=True)
@with_database_options
@user_option("Whose profile it is", required=False)
@click.option(
    "--at",
    type=click.DateTime(_TIMES),
    metavar="TIME",
    help="What held at this time, such as 2026-11-02 or 2026-11-02T18:00:00+01:00; by default now.",
)
@click.option("--agent", "agent_id", help="Only what holds with this agent, and with all.")
@click.option(
    "--limit", type=click.IntRange(1, _MAX_LIMIT), default=200, show_default=True, help="Maximum number of items."
)
@json_option
@click.pass_context
def profile(
    context: click.Context,
    address: Address,
    user_id: str | None,
    at: datetime | None,
    agent_id: str | None,
    limit: int,
    as_json: bool,
) -> None:
    """Show what is remembered about a user, and change it.

    Without a command, it lists what is held and what is proposed, each with why and since when. A proposed item is used
    in no prompt until it is confirmed. Each line begins with the item's id, which the commands take; a part that is
    unique is enough.

    \b
    Examples:
      supabase-memory profile --user maya
      supabase-memory profile --user maya --at 2026-06-01 --json
      supabase-memory profile remember "Answer in Tagalog." --kind instruction --user maya
      supabase-memory profile correct 5f0c6a1e "I live in Cebu." --user maya
      supabase-memory profile consent profile off --user maya
    """  # noqa: D301  # click reads the control character
    if context.invoked_subcommand is not None:
        reject_options_before_command(context)
        return
    if user_id is None:
        raise click.MissingParameter(ctx=context, param_hint="'--user'", param_type="option")
    if at is not None and at.tzinfo is None:
        at = at.astimezone()  # the time zone of this machine
    with address.open() as memory:
        items = memory.for_user(user_id).profile.read(at=at, agent_id=agent_id, limit=limit)
    if as_json:
        formatting.echo_json({"items": [asdict(each) for each in items]})
        return
    _print_groups(items)
    if not items:
        click.echo(f"Nothing is remembered about the user {format_id(user_id)}.", err=True)
    if len(items) == limit:
        click.echo(f"There may be more than these {limit}: --limit shows them.", err=True)


@profile.command()
@with_database_options
@click.argument("text")
@_user
@click.option("--kind", type=click.Choice(get_args(ProfileKind)), default="fact", show_default=True, help="What it is.")
@click.option("--about", help="What it is about, such as home: another value of that takes over.")
@click.option("--agent", "agent_id", help="The agent with which it holds; by default all.")
@_actor
def remember(
    address: Address,
    text: str,
    user_id: str,
    kind: ProfileKind,
    about: str | None,
    agent_id: str | None,
    actor: str | None,
) -> None:
    """Remember something about a user, and print its id.

    \b
    Example:
      supabase-memory profile remember "I live in Manila." --about home --user maya
    """  # noqa: D301  # click reads the control character
    with address.open() as memory:
        handle = memory.for_user(user_id).profile
        click.echo(handle.remember(text, kind=kind, subject=about, agent_id=agent_id, actor=actor))


@profile.command()
@with_database_options
@click.argument("items", nargs=-1, required=True)
@_user
@_actor
def confirm(address: Address, items: Sequence[str], user_id: str, actor: str | None) -> None:
    """Confirm items: what was proposed holds from now on."""
    with address.open() as memory:
        owner = memory.for_user(user_id)
        for found in [_find(owner, each) for each in items]:
            owner.profile.confirm(found, actor=actor)
    click.echo("It holds now." if len(items) == 1 else f"{len(items)} items hold now.")


@profile.command()
@with_database_options
@_item
@click.argument("value")
@_user
@_actor
def correct(address: Address, item: str, value: str, user_id: str, actor: str | None) -> None:
    """Replace what an item says, and print the new id. The old value stays in the history.

    \b
    Example:
      supabase-memory profile correct 5f0c6a1e "I live in Cebu." --user maya
    """  # noqa: D301  # click reads the control character
    with address.open() as memory:
        owner = memory.for_user(user_id)
        click.echo(owner.profile.correct(_find(owner, item), value, actor=actor))


@profile.command()
@with_database_options
@_item
@_user
@_actor
@click.option("--yes", is_flag=True, help="Delete without asking.")
def delete(address: Address, item: str, user_id: str, actor: str | None, yes: bool) -> None:
    """Delete an item with its quotes. No conversation brings it back."""
    confirmation.require_tty(yes)
    with address.open() as memory:
        owner = memory.for_user(user_id)
        found = _find(owner, item)
        if not yes:
            confirmation.confirm(f"Delete for good: {spell_out(_words(found))}?")
        owner.profile.delete(found, actor=actor)
    click.echo("1 item of the profile deleted.")


@profile.command()
@with_database_options
@_item
@_user
@json_option
def history(address: Address, item: str, user_id: str, as_json: bool) -> None:
    """Show what was known of the same matter over time, with both dates and the quotes."""
    with address.open() as memory:
        owner = memory.for_user(user_id)
        found = owner.profile.history(_find(owner, item, ("held", "proposed", "superseded")))
    if as_json:
        formatting.echo_json({"items": [asdict(each) for each in found]})
        return
    for each in found:
        _print_item(each, _span(each))
        for said in each.evidence:
            formatting.echo_line(f"    {_place(said)}")


@profile.command()
@with_database_options
@click.argument("purpose", type=click.Choice(get_args(Purpose)))
@click.argument("allowed", type=click.Choice(["on", "off"]))
@_user
@_actor
@click.option("--yes", is_flag=True, help="With off: delete what there is without asking.")
def consent(address: Address, purpose: Purpose, allowed: str, user_id: str, actor: str | None, yes: bool) -> None:
    """Allow or refuse that something is derived about a user.

    What is refused is derived no more, and what there is goes: with `profile off`, everything that is remembered. So
    `off` asks first.

    \b
    Example:
      supabase-memory profile consent profile off --user maya
    """  # noqa: D301  # click reads the control character
    if allowed == "off":
        confirmation.require_tty(yes)
    else:
        reject_options(["yes"], "Nothing is deleted.")
    with address.open() as memory:
        if allowed == "off" and not yes:
            confirmation.confirm(
                f"Delete {_DERIVED[purpose]} of the user {format_id(user_id)}, and derive nothing more?"
            )
        memory.for_user(user_id).privacy.consent(purpose, allowed == "on", actor=actor or user_id)
    click.echo(f"{purpose} is {allowed} for the user {format_id(user_id)}.")


def _find(owner: SupabaseMemory, item: str, states: Sequence[Any] = ("held", "proposed")) -> ProfileItem:
    """Return the item whose id begins so.

    Raises:
        NotFoundError: There is none, or several.
    """
    found = [each for each in owner.profile.read(states=states, limit=None) if each.id.startswith(item.lower())]
    if len(found) != 1 or not item:
        several = "There is no such item." if not found else "Several items begin so."
        raise NotFoundError(several, hint="`supabase-memory profile` lists the ids.")
    return found[0]


def _print_groups(items: Sequence[ProfileItem]) -> None:
    in_use = [each for each in items if each.state != "proposed"]
    for heading, kinds in KIND_HEADINGS:
        _print_group(heading, [each for each in in_use if each.kind in kinds])
    proposed = [each for each in items if each.state == "proposed"]
    _print_group("Proposed: used in no prompt until you confirm it", proposed)


def _print_group(heading: str, items: Sequence[ProfileItem]) -> None:
    if items:
        click.echo(heading)
    for each in items:
        _print_item(each, _since(each))


def _print_item(item: ProfileItem, when: str) -> None:
    from langchain_supabase_memory.agents.tools.profile import describe_basis

    pin = ", pinned" if item.pinned else ""
    agent = "" if item.agent_id is None else f", with the agent {item.agent_id}"
    formatting.echo_line(f"  {item.id[:8]}  {_words(item)}")
    formatting.echo_line(f"            {describe_basis(item)}, {when}{agent}{pin}")


def _words(item: ProfileItem) -> str:
    from langchain_supabase_memory.agents.tools.profile import describe_item

    return " ".join(describe_item(item).split())


def _since(item: ProfileItem) -> str:
    return f"since {_day(item.held_at)}" if item.held_at else f"first on {_day(item.first_seen_at)}"


def _span(item: ProfileItem) -> str:
    if item.held_at is None:
        return f"{item.state}, first on {_day(item.first_seen_at)}"
    return f"{item.state}, from {_day(item.held_at)}{f' to {_day(item.ended_at)}' if item.ended_at else ''}"


def _place(evidence: ProfileEvidence) -> str:
    quote = " ".join(evidence.quote.split())
    return f'{_day(evidence.at)}, {evidence.thread_id}, message {evidence.sequence}: "{quote}"'


def _day(time: datetime) -> str:
    return f"{time.astimezone():%Y-%m-%d %H:%M}"
