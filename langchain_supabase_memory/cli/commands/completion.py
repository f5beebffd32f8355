"""`supabase-memory completion`."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print the completion script for bash, zsh or fish.

    \b
    bash   eval "$(supabase-memory completion bash)"          in ~/.bashrc
    zsh    eval "$(supabase-memory completion zsh)"           in ~/.zshrc, after compinit
    fish   supabase-memory completion fish | source           in ~/.config/fish/config.fish
    """  # noqa: D301 - click reads the backspace as a block that it must not wrap
    root = context.find_root()
    completion_class = get_completion_class(shell)
    assert completion_class is not None
    name = root.info_name or ""
    click.echo(completion_class(root.command, {}, name, f"_{name}_COMPLETE".replace("-", "_").upper()).source())
