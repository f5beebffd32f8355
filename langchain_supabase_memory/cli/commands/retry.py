"""`supabase-memory retry`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from langchain_supabase_memory.cli.formatting import spinner
from langchain_supabase_memory.cli.options import with_database_options
from langchain_supabase_memory.humanize import pluralize

if TYPE_CHECKING:
    from langchain_supabase_memory.cli.options import Address


@click.command()
@with_database_options
@click.option("--user", "user_id", help="Only this user's conversations.")
@click.option("--thread", "thread_id", help="Only this thread.")
def retry(address: Address, user_id: str | None, thread_id: str | None) -> None:
    """Retry the work that workers have given up."""
    with address.open() as memory, spinner("Querying the database …"):
        count = memory._for(user_id).work.retry(thread_id=thread_id)
    click.echo(f"{pluralize(count, 'conversation')} due again.")
