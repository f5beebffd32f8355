"""The SQL types of the functions' scalar arguments, by name: a wrong value is refused before anything is sent.

A server answers a number in the place of a text, and one too large, as if the function were missing. A driver cannot
send an object, a NUL or half a surrogate pair at all. Neither says which argument is wrong.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from langchain_supabase_memory.checks import wrong_type
from langchain_supabase_memory.errors import InvalidInputError

if TYPE_CHECKING:
    from collections.abc import Mapping

_NAMES: Final[Mapping[str, str]] = {
    "text": """
        about action after_conversation after_user agent_id answer author author_id author_kind by chunk_id contains
        content context_notes conversation_id digest error id into item_id kind lacking language member message_id
        model name order prefix purpose query quote rest role space stage state summary target text thread_id title
        token topic topic_id type user_id worker
    """,
    "boolean": """
        allowed begin case clipped display drop dry_run everything hidden history include_edited index moved private
        replace served superseded
    """,
    "integer": """
        around days dimensions k keep_messages last level limit max_attempts number part priority quotes segment signals
        skip slots uses
    """,
    "bigint": """
        after_stretch board characters from_sequence keep_characters keep_when_poor least next_sequence place recent
        revision through to_sequence tokens turn version
    """,
    "double precision": """
        every_seconds expires_seconds importance lease_seconds max_age min_quality min_similarity quality retry_seconds
        seconds settle_seconds share threshold
    """,
}

TYPES: Final[Mapping[str, str]] = {f"p_{name}": kind for kind, names in _NAMES.items() for name in names.split()}
"""The SQL type of each argument that has one Python type in all functions; the widest where there are several.

An id (`uuid`) is sent as a text.
"""

_EXPECTED: Final[Mapping[str, tuple[type, str, str]]] = {
    "text": (str, "a text", "str(...)"),
    "boolean": (bool, "True or False", "True"),
    "integer": (int, "a whole number", "20"),
    "bigint": (int, "a whole number", "20"),
    "double precision": (float, "a number", "0.5"),
}
"""The Python type that is sent for a SQL type, how it is named in an error, and an example."""

_LARGEST: Final = 2**63 - 1
_LARGEST_INTEGER: Final = 2**31 - 1

_UNSENDABLE: Final = re.compile("[\x00\ud800-\udfff]")


def checked(arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the arguments as they can be sent: a UUID as its text.

    Args:
        arguments: The named arguments of a SQL function.

    Raises:
        InvalidInputError: One has another type than the function takes, or a value that it cannot hold. The error
            names it as callers do, without `p_`.
    """
    converted: dict[str, Any] = {}
    for name, value in arguments.items():
        if value is None:
            continue
        kind = TYPES.get(name)
        public = name.removeprefix("p_")
        if kind is not None:
            expected, wanted, example = _EXPECTED[kind]
            if isinstance(value, UUID) and expected is str:
                value = converted[name] = str(value)
            elif type(value) is not expected and not _fits(value, expected):
                raise wrong_type(public, wanted, value, f"Pass {public}={example}, for example.", InvalidInputError)
        if type(value) is str:
            if _UNSENDABLE.search(value):
                raise InvalidInputError(
                    f"{public} has a NUL or half a surrogate pair.", hint=f"Remove it from {public}."
                )
        elif type(value) is int:
            largest = _LARGEST_INTEGER if kind == "integer" else _LARGEST
            if not -largest <= value <= largest:
                raise InvalidInputError(
                    f"{public} must be a whole number from {-largest:,} to {largest:,}.",
                    hint=f"Pass {public}=20, for example.",
                )
    return {**arguments, **converted} if converted else arguments


def _fits(value: object, expected: type) -> bool:
    if isinstance(value, bool):
        return expected is bool
    return isinstance(value, (int, float) if expected is float else expected)
