"""`supabase-memory forget`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from langchain_supabase_memory.cli import confirmation
from langchain_supabase_memory.cli.formatting import format_id
from langchain_supabase_memory.cli.options import reject_options, with_database_options
from langchain_supabase_memory.values import Receipt

if TYPE_CHECKING:
    from langchain_supabase_memory.cli.options import Address
    from langchain_supabase_memory.memory.memory import SupabaseMemory


@click.command()
@with_database_options
@click.option("--user", "user_id", required=True, help="Owner of the data; the environment does not name one.")
@click.option("--agent", "agent_id", help="Only conversations with this agent.")
@click.option("--thread", "thread_id", help="Only this thread.")
@click.option("--dry-run", is_flag=True, help="Only print what would be deleted.")
@click.option("--yes", is_flag=True, help="Delete without asking.")
def forget(
    address: Address, user_id: str, agent_id: str | None, thread_id: str | None, dry_run: bool, yes: bool
) -> None:
    """Delete conversations, or everything that is stored of a user.

    The deletion is final and includes summaries, boards and chunks. The command counts what would be deleted and asks
    first; for a whole user, you type the user's id. A script has to pass --yes.
    """
    if dry_run:
        reject_options(["yes"], "--dry-run deletes nothing.")
    else:
        confirmation.require_tty(yes)
    scope = confirmation.scope_text(user_id, agent_id, thread_id)
    with address.open() as memory:
        target = _Target(memory, user_id, agent_id, thread_id)
        if not yes:
            counts = confirmation.receipt_text(target.forget(dry_run=True), with_conversations=True)
            if target.is_user and not counts and memory.for_user(user_id).privacy.changes(limit=1):
                counts = "What the user controls"
            if dry_run or not counts:
                click.echo(f"{counts} would be deleted, {scope}." if counts else f"Nothing is stored {scope}.")
                return
            question = f"Delete {counts}, {scope}, for good?"
            if target.is_user:
                confirmation.confirm_by_name(f"{question} Type the user's id, {format_id(user_id)}, to do so:", user_id)
            else:
                confirmation.confirm(question)
        try:
            deleted = target.forget()
        except KeyboardInterrupt:
            counts = confirmation.receipt_text(target.deleted, with_conversations=True) or "Nothing"
            click.echo(
                f"{counts} deleted for certain. What was under way when it stopped went whole, or not at all; "
                "--dry-run says what is left.",
                err=True,
            )
            raise
        click.echo(f"{confirmation.receipt_text(deleted, with_conversations=True) or 'Nothing'} deleted, {scope}.")


class _Target:
    """The data to delete."""

    def __init__(self, memory: SupabaseMemory, user_id: str, agent_id: str | None, thread_id: str | None) -> None:
        self._memory = memory
        self._user_id = user_id
        self._agent_id = agent_id
        self._thread_id = thread_id
        self.deleted = Receipt()

    @property
    def is_user(self) -> bool:
        """Whether the target is all of a user's data."""
        return self._agent_id is None and self._thread_id is None

    def forget(self, *, dry_run: bool = False) -> Receipt:
        """Delete the data in one transaction; a thread of several agents takes one transaction per agent."""
        memory, user_id, thread_id = self._memory, self._user_id, self._thread_id
        if thread_id is None:
            return memory.for_user(user_id).forget_user(agent_id=self._agent_id, dry_run=dry_run)
        if self._agent_id is not None:
            agents = [self._agent_id]
        else:
            memory.for_user(user_id).conversation(thread_id)  # checks the ids
            agents = [row.key.agent_id for row in memory.for_user(user_id).work.status(thread_id=thread_id)]
        self.deleted = Receipt()
        for agent_id in agents:
            receipt = memory.for_user(user_id).conversation(thread_id, agent_id=agent_id).forget(dry_run=dry_run)
            self.deleted = _sum(self.deleted, receipt)
        return self.deleted


def _sum(first: Receipt, second: Receipt) -> Receipt:
    return Receipt(
        first.conversations + second.conversations,
        first.messages + second.messages,
        first.segments + second.segments,
        chunks=first.chunks + second.chunks,
        contributions=first.contributions + second.contributions,
        profile=first.profile + second.profile,
    )
