"""The inspector: a page for people, on which they see what an agent knew, and why.

- `application`: the ASGI application, to be mounted or served; `serving`: it on an address of this machine.
- `guard`: who may see a page, and who may change something; `context`: what a request is about.
- `screens`: a module for each page; `edits`: what people do; `live`: what tells a page that something has changed.
- `rendering`: templates, and how things are written; `drawing`: bars and the plot, as numbers.
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
