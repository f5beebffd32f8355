"""`supabase-memory sql`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from langchain_supabase_memory.adapters.schema import files, script
from langchain_supabase_memory.cli.options import partitions_option, realtime_option, spaces_option, vector_index_option


@click.command()
@click.option(
    "--output",
    type=click.Path(path_type=Path, file_okay=False),
    help="Write migration files into this folder, such as supabase/migrations for `supabase db push`.",
)
@click.option(
    "--vector-schema",
    default=script.VECTOR_SCHEMA,
    show_default=True,
    help="Schema of pgvector. `migrate` finds it by itself.",
)
@vector_index_option
@realtime_option
@spaces_option
@partitions_option
def sql(
    output: Path | None,
    vector_schema: str,
    vector_index: int | None,
    realtime: bool | None,
    spaces: bool | None,
    partitions: int | None,
) -> None:
    """Print the SQL that sets up a database, or write migration files.

    Paste the SQL into Supabase's SQL editor.
    """
    options: dict[str, Any] = {
        "vector_index": vector_index,
        "realtime": realtime,
        "spaces": spaces,
        "partitions": partitions,
    }
    if output is None:
        click.echo(script.text(vector_schema, **options))
        return
    paths = files.write(output, vector_schema, **options)
    for path in paths:
        click.echo(path)
    click.echo(f"{len(paths)} files written; apply them with: supabase db push" if paths else "Nothing new to write.")
