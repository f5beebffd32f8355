"""The public modules."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import Any, Final

PACKAGE: Final = "langchain_supabase_memory"

MODULES: Final[tuple[ModuleType, ...]] = tuple(
    import_module(f"{PACKAGE}{name}")
    for name in (
        "", ".long_term", ".models", ".redaction", ".telemetry", ".testing", ".tools", ".transfer", ".transports",
        ".types", ".worker",
    )
)  # fmt: skip


def public_names() -> dict[str, Any]:
    """Return each public name with its value."""
    return {name: getattr(module, name) for module in MODULES for name in module.__all__}
