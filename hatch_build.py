"""The long description of the package: the README as it reads where the files beside it are not.

An index shows the README alone, so that a relative link leads nowhere there and a picture stays empty. The project has
no address that they could lead to: a link becomes the name of its file, and a picture is left out.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

_FENCED = re.compile(r"(^```.*?^```$)", re.DOTALL | re.MULTILINE)
_PICTURE = re.compile(r"!\[[^\]]*\]\((?!https?:)[^)]+\)\n\n?")
_LINK = re.compile(r"\[([^\]]+)\]\((?!https?:)([^)#]*)(?:#[^)]*)?\)")


def long_description(readme: str) -> str:
    """The README without relative links and pictures.

    Args:
        readme: It, as Markdown.
    """
    parts = _FENCED.split(readme)
    parts[::2] = [_LINK.sub(_named, _PICTURE.sub("", prose)) for prose in parts[::2]]
    return "".join(parts)


def _named(link: re.Match[str]) -> str:
    text, path = link.groups()
    return f"{text} (`{path}`)" if path else text


class LongDescription(MetadataHookInterface):
    """What hatchling calls for the metadata."""

    PLUGIN_NAME = "custom"

    def update(self, metadata: dict[str, Any]) -> None:
        """Set the long description."""
        text = long_description(Path(self.root, "README.md").read_text(encoding="utf-8"))
        metadata["readme"] = {"content-type": "text/markdown", "text": text}
