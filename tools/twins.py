"""An extension of the site's API reference: an async twin has no entry of its own, the sync verb's names it.

Zensical loads it by `zensical.toml`. A twin is a method or function `a<name>` beside a `<name>` of the same class or
module.
"""

from __future__ import annotations

from typing import Any

import griffe


class Twins(griffe.Extension):
    """Drop the async twins, and say their names in their sync verbs."""

    def on_class_members(self, *, cls: griffe.Class, **_: Any) -> None:
        """Drop the twins among a class's methods.

        Args:
            cls: The class, with its members.
        """
        _drop(cls)

    def on_module_members(self, *, mod: griffe.Module, **_: Any) -> None:
        """Drop the twins among a module's functions.

        Args:
            mod: The module, with its members.
        """
        _drop(mod)


def _drop(owner: griffe.Class | griffe.Module) -> None:
    for name, verb in [*owner.members.items()]:
        twin = owner.members.get(f"a{name}")
        if isinstance(verb, griffe.Function) and isinstance(twin, griffe.Function) and "async" in twin.labels:
            note = f"Async twin: `await a{name}(...)`, with the same arguments."
            if verb.docstring is not None:
                summary, _, rest = verb.docstring.value.partition("\n\n")
                verb.docstring.value = "\n\n".join(filter(None, [summary, note, rest]))
            owner.del_member(f"a{name}")
