"""`supabase-memory sql`."""

from __future__ import annotations

from pathlib import Path

import click

from langchain_supabase_memory.adapters.schema import files, script
from langchain_supabase_memory.cli.options import partitions_option, realtime_option, vector_index_option


@click.command()
@click.option(
    "--output",
    type=click.Path(path_type=Path, file_okay=False),
    help="Write migration files into this folder (supabase/migrations), for `supabase db push`.",
)
@click.option(
    "--vector-schema",
    default=script.VECTOR_SCHEMA,
    show_default=True,
    help="The schema that pgvector lies in. `migrate` finds it by itself.",
)
@vector_index_option
@realtime_option
@partitions_option
def sql(
    output: Path | None, vector_schema: str, vector_index: int | None, realtime: bool | None, partitions: int | None
) -> None:
    """Print everything the database needs, to be pasted into Supabase's SQL editor; or write migration files."""
    if output is None:
        click.echo(script.text(vector_schema, vector_index=vector_index, realtime=realtime, partitions=partitions))
        return
    written = files.write(output, vector_schema, vector_index=vector_index, realtime=realtime, partitions=partitions)
    for path in written:
        click.echo(path)
    click.echo(
        f"{len(written)} files written; apply them with: supabase db push" if written else "Nothing new to write."
    )
