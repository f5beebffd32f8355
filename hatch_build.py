"""The metadata that follows from where the project lives: its URLs, and the long description.

An index shows the README alone, so that a relative link leads nowhere there and a picture stays empty. While
`repository` is empty in pyproject.toml, a link becomes the name of its file, and a picture is left out. Once it is
filled, both get an address at the tag of the release.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

_FENCED = re.compile(r"(^```.*?^```$)", re.DOTALL | re.MULTILINE)
_PICTURE = re.compile(r"!\[([^\]]*)\]\((?!https?:)([^)]+)\)")
_PICTURE_ALONE = re.compile(r"!\[[^\]]*\]\((?!https?:)[^)]+\)\n\n?")
_LINK = re.compile(r"\[([^\]]+)\]\((?!https?:)([^)#]*)((?:#[^)]*)?)\)")


def long_description(readme: str, repository: str = "", version: str = "") -> str:
    """The README with links that lead somewhere, wherever it is shown.

    Args:
        readme: It, as Markdown.
        repository: The address of the repository; empty if it has none.
        version: The release, whose tag the links name.
    """
    parts = _FENCED.split(readme)
    if repository:
        parts[::2] = [_addressed(prose, repository, version) for prose in parts[::2]]
    else:
        parts[::2] = [_LINK.sub(_named, _PICTURE_ALONE.sub("", prose)) for prose in parts[::2]]
    return "".join(parts)


def _addressed(prose: str, repository: str, version: str) -> str:
    prose = _PICTURE.sub(rf"![\1]({repository}/raw/v{version}/\2)", prose)
    return _LINK.sub(rf"[\1]({repository}/blob/v{version}/\2\3)", prose)


def _named(link: re.Match[str]) -> str:
    text, path, _ = link.groups()
    return f"{text} (`{path}`)" if path else text


def urls(repository: str, documentation: str) -> dict[str, str]:
    """The project's URLs, as an index shows them.

    Args:
        repository: The address of the repository on GitHub; empty if it has none.
        documentation: The address of the site; empty if it has none.
    """
    found = {"Documentation": documentation} if documentation else {}
    if repository:
        found |= {
            "Repository": repository,
            "Issues": f"{repository}/issues",
            "Changelog": f"{repository}/blob/main/CHANGELOG.md",
            "Report a weakness": f"{repository}/security/advisories/new",
        }
    return found


class Metadata(MetadataHookInterface):
    """What hatchling calls for the metadata."""

    PLUGIN_NAME = "custom"

    def update(self, metadata: dict[str, Any]) -> None:
        """Set the long description and the URLs."""
        repository, documentation = (str(self.config[name]).rstrip("/") for name in ("repository", "documentation"))
        readme = Path(self.root, "README.md").read_text(encoding="utf-8")
        text = long_description(readme, repository, str(metadata["version"]))
        metadata["readme"] = {"content-type": "text/markdown", "text": text}
        metadata["urls"] = urls(repository, documentation)
