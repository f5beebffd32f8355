"""Tell from a user's own words how a conversation goes: corrections, thanks, complaints and the like.

These are no sentiment: each says that something happened, and is shown with the words that tell it. `find` looks for
phrases in the places of a clause where they mean that, and `repeats` compares a question with earlier ones. The words
are data, in the `signals.toml` of each language.
"""

from __future__ import annotations

from typing import Final

from langchain_supabase_memory.language.signals.find import SignalSpan, find_signals, first_quote, mask_foreign
from langchain_supabase_memory.language.signals.lexicon import signal_words
from langchain_supabase_memory.language.signals.repeats import EARLIER, AskedText

KEPT: Final = (signal_words,)
"""What is read from files once; see `effects.offload`."""

__all__ = ["EARLIER", "KEPT", "AskedText", "SignalSpan", "find_signals", "first_quote", "mask_foreign"]
