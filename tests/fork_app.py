"""A WSGI application that uses its memory at load time, before its server forks. `FORK_DOOR` and `FORK_ADDRESS` give
the memory's address; a request names the user whose messages to read."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING
from urllib.parse import parse_qs

from tests.fork_process import made, words

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

MEMORY = made(os.environ["FORK_DOOR"], os.environ["FORK_ADDRESS"])
for user in os.environ["FORK_USERS"].split():
    MEMORY.for_user(user).conversation("t").add_turn(*words(user))


def application(environ: dict[str, str], start: Callable[[str, list[tuple[str, str]]], object]) -> Iterable[bytes]:
    asked = parse_qs(environ["QUERY_STRING"])["user"][0]
    rows = MEMORY.for_user(asked).conversation("t").read(columns=["text"])
    start("200 OK", [("Content-Type", "application/json")])
    return [json.dumps({"process": os.getpid(), "texts": [row.text for row in rows]}).encode()]
