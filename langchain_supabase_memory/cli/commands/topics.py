"""`supabase-memory topics`."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from langchain_supabase_memory.cli import confirmation, formatting
from langchain_supabase_memory.cli.formatting import format_id
from langchain_supabase_memory.cli.options import (
    json_option,
    reject_options_before_command,
    user_option,
    with_database_options,
)
from langchain_supabase_memory.errors import NotFoundError
from langchain_supabase_memory.humanize import pluralize
from langchain_supabase_memory.language.messages.invisible import spell_out

if TYPE_CHECKING:
    from datetime import datetime

    from langchain_supabase_memory.cli.options import Address
    from langchain_supabase_memory.memory.memory import SupabaseMemory
    from langchain_supabase_memory.operations.topics import Topic

_user = user_option("Whose topics they are")
_actor = click.option("--actor", help="Who does it; by default the user.")
_topic = click.argument("topic")


@click.group(invoke_without_command=True)
@with_database_options
@user_option("Whose topics they are", required=False)
@click.option("--since", type=click.DateTime(["%Y-%m-%d"]), help="Only what was talked about since this day.")
@click.option("--hidden", is_flag=True, help="Also topics that somebody hid.")
@click.option("--limit", type=click.IntRange(1, 500), default=200, show_default=True, help="Maximum number of topics.")
@json_option
@click.pass_context
def topics(
    context: click.Context,
    address: Address,
    user_id: str | None,
    since: datetime | None,
    hidden: bool,
    limit: int,
    as_json: bool,
) -> None:
    """Show what a user's conversations are about, and change it.

    Without a command, it lists the topics with the most episodes first. Each line begins with the topic's id, which the
    commands take; a part that is unique is enough.

    \b
    Examples:
      supabase-memory topics --user maya --since 2026-11-01
      supabase-memory topics rename 5f0c6a1e Pottery --user maya
      supabase-memory topics forget 5f0c6a1e --user maya
    """  # noqa: D301  # click reads the control character
    if context.invoked_subcommand is not None:
        reject_options_before_command(context)
        return
    if user_id is None:
        raise click.MissingParameter(ctx=context, param_hint="'--user'", param_type="option")
    day = None if since is None else since.astimezone()  # the time zone of this machine
    with address.open() as memory:
        found = memory.for_user(user_id).topics.read(since=day, hidden=hidden, limit=limit)
    if as_json:
        formatting.echo_json({"topics": [{**asdict(each), "label": each.label} for each in found]})
        return
    for each in found:
        days = (
            "" if each.first_at is None or each.last_at is None else f", {_day(each.first_at)} to {_day(each.last_at)}"
        )
        episodes = pluralize(each.episodes, "episode")
        formatting.echo_line(f"{each.id[:8]}  {each.label}{' (hidden)' if each.hidden else ''}")
        formatting.echo_line(f"          {episodes}{days}")
    if not found:
        click.echo(f"No topic is found for the user {format_id(user_id)}.", err=True)


@topics.command()
@with_database_options
@_topic
@click.argument("name", required=False)
@_user
@_actor
def rename(address: Address, topic: str, name: str | None, user_id: str, actor: str | None) -> None:
    """Give a topic a name; without one it is called by its words again."""
    with address.open() as memory:
        owner = memory.for_user(user_id)
        owner.topics.rename(_find(owner, topic), name, actor=actor or user_id)
    click.echo("It has another name now." if name else "It is called by its words now.")


@topics.command()
@with_database_options
@_topic
@click.argument("into")
@_user
@_actor
def merge(address: Address, topic: str, into: str, user_id: str, actor: str | None) -> None:
    """Make a topic a part of another."""
    with address.open() as memory:
        owner = memory.for_user(user_id)
        owner.topics.merge(_find(owner, topic), _find(owner, into), actor=actor or user_id)
    click.echo("1 topic merged.")


@topics.command()
@with_database_options
@_topic
@_user
@click.option("--show", is_flag=True, help="Show it again.")
@_actor
def hide(address: Address, topic: str, user_id: str, show: bool, actor: str | None) -> None:
    """Leave a topic out of lists. Nothing is deleted."""
    with address.open() as memory:
        owner = memory.for_user(user_id)
        owner.topics.hide(_find(owner, topic), hidden=not show, actor=actor or user_id)
    click.echo("It is shown now." if show else "It is hidden now.")


@topics.command()
@with_database_options
@_topic
@_user
@click.option("--word", "words", multiple=True, help="Opt out of this word of it; by default of the first three.")
@_actor
@click.option("--yes", is_flag=True, help="Forget without asking.")
def forget(address: Address, topic: str, user_id: str, words: tuple[str, ...], actor: str | None, yes: bool) -> None:
    """Remember nothing more of a topic: opt out of its words, and delete the chunks of its episodes."""
    confirmation.require_tty(yes)
    with address.open() as memory:
        owner = memory.for_user(user_id)
        found, chosen = _find(owner, topic), list(words) or None
        if not yes:
            would = owner.topics.forget(found, words=chosen, actor=actor or user_id, dry_run=True)
            confirmation.confirm(
                f"Remember nothing more of {spell_out(', '.join(would.words)) or 'it'}, in any conversation?"
            )
        gone = owner.topics.forget(found, words=chosen, actor=actor or user_id)
    opted_out, episodes = pluralize(len(gone.words), "word"), pluralize(gone.episodes, "episode")
    click.echo(f"{opted_out} opted out of; the topic had {episodes}.")


def _find(owner: SupabaseMemory, topic: str) -> Topic:
    """Return the topic whose id begins so.

    Raises:
        NotFoundError: There is none, or several.
    """
    listed = owner.topics.read(hidden=True, quotes=0, limit=500)
    found = [each for each in listed if each.id.startswith(topic.lower())]
    if len(found) != 1 or not topic:
        several = "There is no such topic." if not found else "Several topics begin so."
        raise NotFoundError(several, hint="`supabase-memory topics` lists the ids.")
    return found[0]


def _day(time: datetime) -> str:
    return f"{time.astimezone():%Y-%m-%d}"
