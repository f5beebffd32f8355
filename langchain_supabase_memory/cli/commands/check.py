"""`supabase-memory check`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from langchain_supabase_memory.cli.look import working
from langchain_supabase_memory.cli.options import addressed

if TYPE_CHECKING:
    from langchain_supabase_memory.cli.options import Address


@click.command()
@addressed
def check(address: Address) -> None:
    """Ask a database (or the Data API) whether it is set up for this release."""
    with address.opened(needs_server=False) as memory, working("Asking the database …"):
        installed = memory.check()
    click.echo(f"Ready: release {installed.version}, with pgvector in {installed.vector_schema}.")
