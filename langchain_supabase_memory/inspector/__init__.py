"""The inspector: a web page that shows people what an agent knew, and why.

- `application`: the ASGI application, to be mounted or served; `server`: serves it on a local address.
- `auth`: who may see a page, and who may change something; `request_context`: the context of a request.
- `screens`: a module for each page; `screen_list`: all pages in one table, for routes and navigation.
- `edit_routes`, `space_routes`: people's changes; `live_updates`: notifies pages of changes.
- `rendering`: templates and formatting; `svg_charts`: bars and plots, as numbers.
- `static_files`: style, scripts and icon; `error_pages`: the pages of errors.
"""

from __future__ import annotations

from langchain_supabase_memory.errors import MissingDependencyError

try:
    from langchain_supabase_memory.inspector.application import application
except ImportError as error:
    if (error.name or "").split(".")[0] not in ("jinja2", "starlette", "uvicorn"):
        raise
    raise MissingDependencyError("The inspector", "inspector") from None

__all__ = ["application"]
