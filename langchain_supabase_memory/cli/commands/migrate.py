"""`supabase-memory migrate`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from langchain_supabase_memory.cli.formatting import spinner
from langchain_supabase_memory.cli.options import (
    citus_option,
    partitions_option,
    realtime_option,
    spaces_option,
    vector_index_option,
    with_direct_database_options,
)

if TYPE_CHECKING:
    from langchain_supabase_memory.cli.options import Address


@click.command()
@with_direct_database_options
@vector_index_option
@realtime_option
@spaces_option
@partitions_option
@citus_option
def migrate(
    address: Address,
    vector_index: int | None,
    realtime: bool | None,
    spaces: bool | None,
    partitions: int | None,
    citus: bool | None,
) -> None:
    """Set up a database, or upgrade it to this release. Safe to repeat."""
    from langchain_supabase_memory.adapters.schema.migrate import migrate as apply

    conn_string = address.conn_string(create=True)
    with spinner("Setting up the database …"):
        installed = apply(
            conn_string,
            vector_index=vector_index,
            realtime=realtime,
            spaces=spaces,
            partitions=partitions,
            citus=citus,
        )
    shared = " Spaces are on." if installed.spaces else ""
    where = f"with pgvector in {installed.vector_schema}"
    click.echo(f"The database is set up for release {installed.version}, {where}.{shared}")
