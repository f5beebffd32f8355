"""The agent's tool: what was said, found by its words (BM25 over one conversation's texts)."""

from __future__ import annotations

import math
import re
from collections import Counter
from typing import TYPE_CHECKING

from langchain_core.tools import BaseTool, tool

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_supabase_memory.memory import SupabaseMemory
    from langchain_supabase_memory.models import StoredMessage

_WORD = re.compile(r"\w+")


def words(text: str) -> list[str]:
    """The words of a text in lower case, cut to five letters, so that `glaze` finds `glazes`."""
    return [word[:5] for word in _WORD.findall(text.lower()) if len(word) > 1]


def rank(texts: Sequence[str], query: str) -> list[tuple[float, int]]:
    """Score each text against a query by Okapi BM25 (k1 = 1.2, b = 0.75).

    Returns:
        Score and place of every text that shares a word with the query, the best first.
    """
    bags = [Counter(words(text)) for text in texts]
    lengths = [bag.total() for bag in bags]
    mean = sum(lengths) / max(len(bags), 1) or 1.0
    found: list[tuple[float, int]] = []
    wanted = set(words(query))
    spread = {word: sum(word in bag for bag in bags) for word in wanted}
    weight = {word: math.log(1 + (len(bags) - n + 0.5) / (n + 0.5)) for word, n in spread.items()}
    for place, (bag, length) in enumerate(zip(bags, lengths, strict=True)):
        score = sum(
            weight[word] * bag[word] * 2.2 / (bag[word] + 1.2 * (0.25 + 0.75 * length / mean))
            for word in wanted
            if bag[word]
        )
        if score:
            found.append((score, place))
    return sorted(found, key=lambda each: (-each[0], each[1]))


def search_tool(memory: SupabaseMemory, thread_id: str) -> BaseTool:
    """A tool that looks through one conversation, whose owner and thread the model cannot change."""

    def shown(found: StoredMessage) -> str:
        return f"[{found.created_at:%Y-%m-%d}] {found.role}: {found.text}"

    @tool
    def search_conversation(query: str) -> str:
        """Find what was said earlier in this conversation, by words that may occur in it.

        Use it whenever the answer may lie further back than the messages you see.

        Args:
            query: A few words, or the question itself.
        """
        past = memory.read(thread_id=thread_id, columns=["text", "role", "created_at"])
        best = rank([str(message.text) for message in past], query)[:5]
        return "\n".join(shown(past[place]) for _, place in best) or "Nothing was found."

    return search_conversation
