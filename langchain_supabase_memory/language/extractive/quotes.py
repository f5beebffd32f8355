"""Format a quote as one line of a summary, and parse it: `[12] User (Maya): "the kiln stopped" […]`.

The text inside the quotation marks is verbatim. A line is parsed back exactly as it was written, so quotes pass
unchanged from summary to summary; a quote never contains a line break.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from langchain_supabase_memory.language.messages import content

HEADER: Final = "Quotes from the conversation, selected without a language model:"
"""The heading of such a summary."""

SHORT_HEADER: Final = "Quotes:"
"""The heading if there is no room for the longer one."""

HEADERS: Final = frozenset({HEADER, SHORT_HEADER})

SUMMARY: Final = "Summary"
"""The label for quotes of a summary that another summarizer wrote."""

CUT: Final = "[…]"
"""Follows or precedes the quotation marks where the message was cut."""

_LABELS: Final = {"user": "User", "assistant": "Assistant", "system": "System", "tool": "Tool"}
_LINE: Final = re.compile(r'(?:\[(\d{1,18})\] )?(\w+(?: \([^()"]*\))?): (\[…\] )?"(.*)"( \[…\])?')


@dataclass(frozen=True, slots=True)
class Quote:
    """A quote from a message.

    Attributes:
        number: The message's sequence; `None` for a summary that another summarizer wrote.
        label: The speaker: "User (Maya)".
        text: The exact text.
        opens: Whether the quote includes the start of its sentence.
        closes: Whether it includes the end.
    """

    number: int | None
    label: str
    text: str
    opens: bool = True
    closes: bool = True

    def __str__(self) -> str:
        place = "" if self.number is None else f"[{self.number}] "
        before, after = "" if self.opens else f"{CUT} ", "" if self.closes else f" {CUT}"
        return f'{place}{self.label}: {before}"{self.text}"{after}'


def label(role: str, speaker: str | None) -> str:
    """Return the speaker's label, in a form that no name can break out of.

    Args:
        role: `user`, `assistant`, `system` or `tool`.
        speaker: The name in the message.
    """
    return content.speaker(_LABELS.get(role, "Other"), speaker)


def parse(line: str) -> Quote | None:
    """Parse a line of a summary as a quote; `None` if it is not one."""
    found = _LINE.fullmatch(line)
    if found is None:
        return None
    number, who, before, text, after = found.groups()
    if number is None and who != SUMMARY:
        return None
    return Quote(None if number is None else int(number), who, text, before is None, after is None)


def carries_a_summary(text: str) -> bool:
    """Return whether a summary of quotes contains text of a summary that another summarizer wrote."""
    found = (parse(line) for line in text.splitlines())
    return any(quote is not None and quote.number is None for quote in found)


def is_bare(text: str) -> bool:
    """Return whether a summary of quotes contains at most its heading."""
    left = text.removesuffix(CUT).rstrip()
    return any(header.startswith(left) for header in HEADERS)
