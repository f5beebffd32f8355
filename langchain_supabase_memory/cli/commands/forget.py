"""`supabase-memory forget`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from langchain_supabase_memory.cli import asking
from langchain_supabase_memory.cli.look import shown_id
from langchain_supabase_memory.cli.options import addressed, refuse
from langchain_supabase_memory.values import Receipt

if TYPE_CHECKING:
    from langchain_supabase_memory.cli.options import Address
    from langchain_supabase_memory.memory.memory import SupabaseMemory


@click.command()
@addressed
@click.option("--user", "user_id", required=True, help="Whose.")
@click.option("--agent", "agent_id", help="Only the conversations with this agent.")
@click.option("--thread", "thread_id", help="Only this conversation.")
@click.option("--dry-run", is_flag=True, help="Only say what would go.")
@click.option("--yes", is_flag=True, help="Do not ask.")
def forget(
    address: Address, user_id: str, agent_id: str | None, thread_id: str | None, dry_run: bool, yes: bool
) -> None:
    """Delete a user's conversation, all of them with an agent, or everything that is stored of the user, for good.

    Everything that was made from a conversation goes with it. Before anything goes it says how much that is, and asks;
    before a whole user goes, the user's id has to be typed. A script has to pass --yes.
    """
    if dry_run:
        refuse(["yes"], "--dry-run deletes nothing.")
    else:
        asking.can_ask(yes)
    whose = asking.whose(user_id, agent_id, thread_id)
    with address.opened() as memory:
        target = _Target(memory, user_id, agent_id, thread_id)
        if not yes:
            found = asking.counted(target.forget(dry_run=True), are_whole=True)
            if target.is_user and not found and memory.privacy.changes(user_id=user_id, limit=1):
                found = "What the user controls"
            if dry_run or not found:
                click.echo(f"{f'{found} would go' if found else 'Nothing is stored'}, {whose}.")
                return
            question = f"Delete {found}, {whose}, for good?"
            if target.is_user:
                asking.ask_for(f"{question} Type the user's id, {shown_id(user_id)}, to do so:", user_id)
            else:
                asking.ask(question)
        try:
            gone = target.forget()
        except KeyboardInterrupt:
            done = asking.counted(target.gone, are_whole=True) or "Nothing"
            click.echo(
                f"{done} deleted for certain. What was under way when it stopped went whole, or not at all; --dry-run "
                "says what is left.",
                err=True,
            )
            raise
        click.echo(f"{asking.counted(gone, are_whole=True) or 'Nothing'} deleted, {whose}.")


class _Target:
    """What is to be forgotten."""

    def __init__(self, memory: SupabaseMemory, user_id: str, agent_id: str | None, thread_id: str | None) -> None:
        self._memory = memory
        self._user_id = user_id
        self._agent_id = agent_id
        self._thread_id = thread_id
        self.gone = Receipt()

    @property
    def is_user(self) -> bool:
        """Whether it is all of a user."""
        return self._agent_id is None and self._thread_id is None

    def forget(self, *, dry_run: bool = False) -> Receipt:
        """Forget it, in one transaction; of a thread that several agents have, in one for each."""
        memory, user_id, thread_id = self._memory, self._user_id, self._thread_id
        if thread_id is None:
            return memory.forget_user(user_id=user_id, agent_id=self._agent_id, dry_run=dry_run)
        if self._agent_id is not None:
            agents = [self._agent_id]
        else:
            memory.conversation(thread_id, user_id=user_id)  # looks at the ids
            agents = [row.key.agent_id for row in memory.work.status(user_id=user_id, thread_id=thread_id)]
        self.gone = Receipt()
        for agent_id in agents:
            receipt = memory.conversation(thread_id, user_id=user_id, agent_id=agent_id).forget(dry_run=dry_run)
            self.gone = _sum(self.gone, receipt)
        return self.gone


def _sum(one: Receipt, other: Receipt) -> Receipt:
    return Receipt(
        one.conversations + other.conversations,
        one.messages + other.messages,
        one.segments + other.segments,
        chunks=one.chunks + other.chunks,
    )
