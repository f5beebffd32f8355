"""Find what one message of a user says of themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from langchain_supabase_memory.language.extractive.profile.frames import read_clause
from langchain_supabase_memory.language.extractive.profile.mask import own_words
from langchain_supabase_memory.language.extractive.profile.statements import statements

if TYPE_CHECKING:
    from langchain_supabase_memory.language.extractive.profile.finding import ProfileFinding
    from langchain_supabase_memory.language.extractive.profile.statements import ParsedSentence

MAX_FINDINGS: Final = 20
"""The most findings of one message."""


def find_profile(text: str) -> list[ProfileFinding]:
    """Return what one message of a user says of themselves, or asks for, in order, at most 20. It never raises.

    Args:
        text: The message, as the user wrote it.

    Returns:
        The findings. Those with `is_durable` are stated to hold for good; the others are wishes of the moment.
    """
    found: list[ProfileFinding] = []
    masked = own_words(text)
    for sentence in statements(masked):
        condition: str | None = None
        for place, (first, end) in enumerate(sentence.clauses):
            if sentence.at(first, end, "marks.conditions") and len(sentence.clauses) > 1:
                condition = sentence.slice(first, end)
                continue
            finding = read_clause(sentence, place, condition or _trailing_condition(sentence, first, end))
            if finding is not None and finding not in found:
                found.append(finding)
        if len(found) >= MAX_FINDINGS:
            break
    return found[:MAX_FINDINGS]


def _trailing_condition(sentence: ParsedSentence, first: int, end: int) -> str | None:
    """Return the condition at the end of a clause: "use Celsius when we talk about the weather"."""
    for each in sentence.phrases:
        if "marks.conditions" in each.kinds and first < each.first and each.end <= end:
            return sentence.slice(each.first, end)
    return None
