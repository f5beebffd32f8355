"""The check of profiles: what is held, what waits for people, and whether what holds was computed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from langchain_supabase_memory.memory.doctor.finding import Finding, green, red

if TYPE_CHECKING:
    from collections.abc import Mapping


def profile(sample: Mapping[str, Any]) -> Finding:
    """Check that profiles are settled, and count what they hold.

    Args:
        sample: A sample of at most a hundred items: how many are held, proposed, suggested and not settled.
    """
    name, items = "profile", sample["items"]
    if not items:
        return green(name, "No profile has an item.")
    if sample["unsettled"]:
        words = f"Of {items} sampled items {sample['unsettled']} have other evidence than they were settled by."
        action = "Run `select memory_private.settle_profile(user_id, chain) from memory.profile_items` for their users."
        return red(name, words, action)
    waiting = f"{sample['proposed']} wait for a person, {sample['suggested']} of them suggested by a model or an import"
    return green(name, f"Of {items} sampled items {sample['held']} hold and {waiting}.")
