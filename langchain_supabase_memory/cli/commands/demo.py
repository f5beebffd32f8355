"""`supabase-memory demo`: the options. The demo itself is in `cli.demo`."""

from __future__ import annotations

from pathlib import Path

import click

from langchain_supabase_memory.cli import models


@click.command()
@click.option(
    "--transcript",
    type=click.Path(path_type=Path, dir_okay=False),
    help='Your own conversation: JSON lines of {"role", "content", "created_at"}.',
)
@click.option("--ask", multiple=True, help="A question about it; may be repeated.")
@click.option(
    "--path",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path(".demo/postgres"),
    show_default=True,
    help="Folder of the demo's database.",
)
@click.option(
    "--model",
    envvar="OPENAI_MODEL",
    default=models.MODEL,
    show_default=True,
    help="OpenAI model of the agent, with OPENAI_API_KEY.",
)
@click.option("--inspect", is_flag=True, help="Open the inspector at the end; Ctrl-C ends it.")
def demo(transcript: Path | None, ask: tuple[str, ...], path: Path, model: str, inspect: bool) -> None:
    """Watch an agent remember a long conversation.

    Without OPENAI_API_KEY, a stand-in for the model quotes what it sees.
    """
    from rich.console import Console

    from langchain_supabase_memory.cli.demo.show import open_page, show

    if inspect:  # a missing extra fails before the demo, not after it
        import langchain_supabase_memory.inspector  # noqa: F401

    chat, summarizer, embeddings = models.agent_models(model)
    questions = list(ask) or None
    folder, console = path.absolute(), Console(highlight=False)
    show(console, folder, chat, summarizer, path=transcript, questions=questions, embeddings=embeddings)
    if inspect:
        open_page(console, folder, summarizer, embeddings)
