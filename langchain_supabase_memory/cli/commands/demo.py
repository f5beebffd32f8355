"""`supabase-memory demo`: the options; the story is in `cli.demo`."""

from __future__ import annotations

from pathlib import Path

import click

from langchain_supabase_memory.cli import models


@click.command()
@click.option(
    "--transcript",
    type=click.Path(path_type=Path, dir_okay=False),
    help='A conversation of yours: JSON lines of {"role", "content", "created_at"}.',
)
@click.option("--ask", multiple=True, help="A question to ask about it; may be given several times.")
@click.option(
    "--path",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path(".demo/postgres"),
    show_default=True,
    help="The folder of the demo's database.",
)
@click.option(
    "--model", envvar="OPENAI_MODEL", default=models.MODEL, show_default=True, help="With OPENAI_API_KEY: the model."
)
@click.option("--inspect", is_flag=True, help="At the end, open a page on what it has made; Ctrl-C ends it.")
def demo(transcript: Path | None, ask: tuple[str, ...], path: Path, model: str, inspect: bool) -> None:
    """Watch an agent remember a long conversation; without OPENAI_API_KEY, with a stand-in that can only quote."""
    from rich.console import Console

    from langchain_supabase_memory.cli.demo.show import open_page, show

    if inspect:  # what is missing is said before the story, not after it
        import langchain_supabase_memory.inspector  # noqa: F401

    chat, summarizer, embeddings = models.of_an_agent(model)
    questions = list(ask) or None
    folder, console = path.absolute(), Console()
    show(console, folder, chat, summarizer, path=transcript, questions=questions, embeddings=embeddings)
    if inspect:
        open_page(console, folder, summarizer, embeddings)
