"""One quote as one line of a summary, and back: `[12] User (Maya): "the kiln stopped" […]`.

What is inside the quotation marks stands so in the message. A line is read back exactly as it was written, so that
quotes pass from summary to summary unchanged; a quote never holds the end of a line.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from langchain_supabase_memory.language.messages import content

HEADER: Final = "Quotes from the conversation, selected without a language model:"
"""How such a summary begins."""

SHORT_HEADER: Final = "Quotes:"
"""How one begins that has no room for that."""

HEADERS: Final = frozenset({HEADER, SHORT_HEADER})

SUMMARY: Final = "Summary"
"""Who is said to speak where a summary that somebody else wrote is quoted."""

CUT: Final = "[…]"
"""Outside the quotation marks: the message goes on there, or began before."""

_LABELS: Final = {"user": "User", "assistant": "Assistant", "system": "System", "tool": "Tool"}
_LINE: Final = re.compile(r'(?:\[(\d{1,18})\] )?(\w+(?: \([^()"]*\))?): (\[…\] )?"(.*)"( \[…\])?')


@dataclass(frozen=True, slots=True)
class Quote:
    """Words that somebody said.

    Attributes:
        number: The message's sequence; `None` for a summary that somebody else wrote.
        label: Who said it: "User (Maya)".
        text: The words, exactly.
        opens: Whether nothing of the sentence is left out before them.
        closes: Whether nothing is left out behind them.
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
    """Who speaks, in a form that nobody's name can break out of.

    Args:
        role: `user`, `assistant`, `system` or `tool`.
        speaker: The name that the message carries.
    """
    return content.speaker(_LABELS.get(role, "Other"), speaker)


def parse(line: str) -> Quote | None:
    """A line of a summary as the quote it is, if it is one."""
    found = _LINE.fullmatch(line)
    if found is None:
        return None
    number, who, before, text, after = found.groups()
    if number is None and who != SUMMARY:
        return None
    return Quote(None if number is None else int(number), who, text, before is None, after is None)


def carries_a_summary(text: str) -> bool:
    """Whether a summary of quotes holds words of a summary that somebody else wrote."""
    found = (parse(line) for line in text.splitlines())
    return any(quote is not None and quote.number is None for quote in found)


def is_bare(text: str) -> bool:
    """Whether nothing but the heading is left of a summary of quotes, or less."""
    left = text.removesuffix(CUT).rstrip()
    return any(header.startswith(left) for header in HEADERS)
