"""Put the project's addresses and its version where they are stated, or refuse a release: `make release-check`.

python tools/release.py           writes what follows from pyproject.toml into SECURITY.md and zensical.toml
python tools/release.py --check   says all that a release still lacks, and fails if there is anything; the workflow
                                  adds --tagged, for there the tag has been made
python tools/release.py --stale   says what is not as the first command writes it, and fails if there is anything

A maintainer fills in the addresses in one place: `[tool.hatch.metadata.hooks.custom]` in pyproject.toml.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
UNKNOWN = "https://github.com/OWNER/langchain-supabase-memory"
"""What stands where the repository's address belongs, while it is empty."""

_REPORTING = re.compile(r"https?://\S+?/security/advisories/new")
_SITE = re.compile(r"^copyright = .*$(?:\n(?:site_url|repo_url) = .*$)*", re.MULTILINE)


@dataclass(frozen=True)
class Release:
    """What pyproject.toml says of the next release.

    Attributes:
        version: Its number.
        repository: The address of the repository; empty while nobody filled it in.
        documentation: The address of the site; the same.
    """

    version: str
    repository: str
    documentation: str

    @classmethod
    def read(cls, pyproject: str) -> Release:
        """Read it.

        Args:
            pyproject: The text of pyproject.toml.
        """
        parsed = tomllib.loads(pyproject)
        addresses = parsed["tool"]["hatch"]["metadata"]["hooks"]["custom"]
        return cls(parsed["project"]["version"], addresses["repository"], addresses["documentation"])

    def security(self, text: str) -> str:
        """Return SECURITY.md with the address for private reports.

        Args:
            text: The file as it is.
        """
        return _REPORTING.sub(f"{self.repository or UNKNOWN}/security/advisories/new", text)

    def site(self, text: str) -> str:
        """Return zensical.toml with the version and the addresses.

        Args:
            text: The file as it is.
        """
        lines = [f'copyright = "langchain-supabase-memory {self.version}, MIT license"']
        lines += [f'site_url = "{self.documentation}"'] if self.documentation else []
        lines += [f'repo_url = "{self.repository}"'] if self.repository else []
        return _SITE.sub("\n".join(lines), text, count=1)

    def lacks(self, changelog: str, tags: list[str], *, is_tagged: bool = False) -> list[str]:
        """Return what a release still lacks, a sentence each.

        Args:
            changelog: The text of CHANGELOG.md.
            tags: The tags of the repository.
            is_tagged: Whether the tag of this release is there, as it is where the workflow runs.
        """
        found = []
        for name, address in (("repository", self.repository), ("documentation", self.documentation)):
            if not re.fullmatch(r"https://[\w.-]+\.\w+(/[\w./-]*)?", address):
                found.append(f"`{name}` in pyproject.toml, [tool.hatch.metadata.hooks.custom], is no address.")
        if not re.search(rf"^## \[{re.escape(self.version)}\] - \d{{4}}-\d\d-\d\d$", changelog, re.MULTILINE):
            found.append(f"CHANGELOG.md has no heading `## [{self.version}] - YYYY-MM-DD`.")
        if f"v{self.version}" in tags and not is_tagged:
            found.append(f"The tag v{self.version} exists: raise the version in pyproject.toml.")
        if f"v{self.version}" not in tags and is_tagged:
            found.append(f"The tag is not v{self.version}, the version in pyproject.toml.")
        return found


def stale(release: Release) -> list[str]:
    """Return the files that are not as `main` writes them."""
    written = {"SECURITY.md": release.security, "zensical.toml": release.site}
    texts = {name: (ROOT / name).read_text(encoding="utf-8") for name in written}
    return [name for name, write in written.items() if write(texts[name]) != texts[name]]


def main(arguments: list[str]) -> int:
    """Write the files, or say what is missing."""
    release = Release.read((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    if not arguments:
        for name, write in (("SECURITY.md", release.security), ("zensical.toml", release.site)):
            path = ROOT / name
            path.write_text(write(path.read_text(encoding="utf-8")), encoding="utf-8")
        return 0
    found = [f"{name} is not as `python tools/release.py` writes it." for name in stale(release)]
    if "--check" in arguments:
        tags = subprocess.run(["git", "tag"], cwd=ROOT, capture_output=True, text=True, check=False).stdout.split()
        changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
        found += release.lacks(changelog, tags, is_tagged="--tagged" in arguments)
    sys.stderr.write("".join(f"{each}\n" for each in found))
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
