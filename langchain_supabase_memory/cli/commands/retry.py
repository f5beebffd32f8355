"""`supabase-memory retry`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from langchain_supabase_memory.cli.look import working
from langchain_supabase_memory.cli.options import addressed

if TYPE_CHECKING:
    from langchain_supabase_memory.cli.options import Address


@click.command()
@addressed
@click.option("--user", "user_id", help="Only this user's conversations.")
@click.option("--thread", "thread_id", help="Only this thread.")
def retry(address: Address, user_id: str | None, thread_id: str | None) -> None:
    """Try again what workers have given up."""
    with address.opened() as memory, working("Asking the database …"):
        again = memory.work.retry(user_id=user_id, thread_id=thread_id)
    click.echo(f"{again} conversations are due again.")
