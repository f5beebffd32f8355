"""Pydantic types for fields that cannot be serialized as they are: a message of any class, and a function.

FastAPI and pydantic read the annotations of a dataclass at run time. These two types import nothing until then, so that
importing a value stays fast.
"""

from __future__ import annotations

from datetime import tzinfo
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage

    AnyMessage: TypeAlias = BaseMessage
else:

    class AnyMessage:
        """A LangChain message; its JSON keeps the fields of its own class, such as tool calls."""

        @classmethod
        def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any:
            from langchain_core.messages import AnyMessage as EachClass

            return handler.generate_schema(EachClass)


class Named:
    """Used in `Annotated` for a function, a model or a time zone; its JSON is the name."""

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any:
        """Return the pydantic schema: any value, as text."""
        from pydantic import PlainSerializer

        return handler.generate_schema(Annotated[Any, PlainSerializer(_name, str | None, when_used="json")])


def _name(value: object) -> str | None:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, tzinfo):
        return str(value)
    return str(getattr(value, "__qualname__", type(value).__name__))
