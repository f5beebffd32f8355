"""Cases shared by the Python and SQL tests, for rules that both implement; each is a table in a JSON file."""

import json
from pathlib import Path
from typing import Any, Final

from langchain_core.messages import BaseMessage, messages_from_dict

COUNTED: Final = ("characters", "tokens", "images")
"""What the table of messages says of each beside its text."""


def cases(name: str) -> list[dict[str, Any]]:
    """The cases of a table.

    Args:
        name: Of the file, without its ending.
    """
    found: list[dict[str, Any]] = json.loads(Path(__file__).with_name(f"{name}.json").read_text())
    return found


def message_of(case: dict[str, Any]) -> BaseMessage:
    """The message of a case, as many times as long as the case says.

    Args:
        case: Of the table of messages.
    """
    (message,) = messages_from_dict([case["message"]])
    if "times" in case:
        message.content *= case["times"]
    return message
