"""The style, the scripts and the icon: read at import, and served from memory."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from starlette.exceptions import HTTPException
from starlette.responses import Response

if TYPE_CHECKING:
    from starlette.requests import Request

_KINDS: Final = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}

FILES: Final = {path.name: path.read_bytes() for path in Path(__file__).with_name("static").iterdir()}
"""The contents of each file by its name."""


async def static_file(request: Request) -> Response:
    """Serve a static file."""
    name = request.path_params["name"]
    if name not in FILES:
        raise HTTPException(404)
    return Response(FILES[name], media_type=_KINDS[f".{name.rpartition('.')[2]}"])
