"""The Python types of the SQL functions' scalar arguments, by name: a wrong one is refused before anything is sent.

A server answers a number in the place of a text as if the function were missing, and a driver cannot send an object at
all; neither says which argument is wrong.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from langchain_supabase_memory.checks import wrong_type
from langchain_supabase_memory.errors import InvalidInputError

if TYPE_CHECKING:
    from collections.abc import Mapping

_TEXTS: Final = """
    about action after_conversation after_user agent_id answer author author_id author_kind by chunk_id contains content
    context_notes conversation_id digest error id into item_id kind lacking language member message_id model name order
    prefix purpose query quote rest role space stage state summary target text thread_id title token topic topic_id type
    user_id worker
"""
_TRUTHS: Final = """
    allowed begin case clipped display drop dry_run everything hidden history include_edited index moved private replace
    served superseded
"""
_WHOLE_NUMBERS: Final = """
    after_stretch around board characters days dimensions from_sequence k keep_characters keep_messages keep_when_poor
    last least level limit max_attempts next_sequence number part place priority quotes recent revision segment signals
    skip slots through to_sequence tokens turn uses version
"""
_NUMBERS: Final = """
    every_seconds expires_seconds importance lease_seconds max_age min_quality min_similarity quality retry_seconds
    seconds settle_seconds share threshold
"""

TYPES: Final[Mapping[str, type]] = {
    f"p_{name}": expected
    for names, expected in ((_TEXTS, str), (_TRUTHS, bool), (_WHOLE_NUMBERS, int), (_NUMBERS, float))
    for name in names.split()
}
"""The Python type of each argument that has one SQL type in all functions; of an id (`uuid`) it is `str`."""

_EXPECTED: Final[Mapping[type, tuple[str, str]]] = {
    str: ("a text", "str(...)"),
    bool: ("True or False", "True"),
    int: ("a whole number", "20"),
    float: ("a number", "0.5"),
}
"""How a type is named in an error, and an example."""


def checked(arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the arguments as they can be sent: a UUID as its text.

    Args:
        arguments: The named arguments of a SQL function.

    Raises:
        InvalidInputError: One has another type than the function takes. The error names it as callers do, without `p_`.
    """
    converted: dict[str, Any] = {}
    for name, value in arguments.items():
        expected = TYPES.get(name)
        if expected is None or value is None or type(value) is expected:
            continue
        if expected is str and isinstance(value, UUID):
            converted[name] = str(value)
        elif not _fits(value, expected):
            wanted, example = _EXPECTED[expected]
            public = name.removeprefix("p_")
            raise wrong_type(public, wanted, value, f"Pass {public}={example}, for example.", InvalidInputError)
    return {**arguments, **converted} if converted else arguments


def _fits(value: object, expected: type) -> bool:
    if isinstance(value, bool):
        return expected is bool
    return isinstance(value, (int, float) if expected is float else expected)
