"""Tell a provider's prompt cache where the beginning of a prompt ends, and which conversation it belongs to.

Anthropic's models write a cache where a block has `cache_control`: at most four of a request, none below a minimum. The
models of OpenAI and Mistral take a `prompt_cache_key`, by which requests with one beginning reach one server.
"""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING, Any, Final, Literal
from urllib.parse import urlsplit

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage

from langchain_supabase_memory.adapters.runnable_types import class_names, unwrapped
from langchain_supabase_memory.language.messages import content

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from langchain_supabase_memory.values import ConversationKey

_MAX_BREAKPOINTS: Final = 4
"""The most blocks with `cache_control` that Anthropic accepts in one request."""

_MINIMUMS: Final = (
    (re.compile(r"haiku-4-5|opus-4-[567]"), 4_096),
    (re.compile(r"3-(?:5-)?haiku"), 2_048),
    (re.compile(r"(?:opus|fable|mythos)-5"), 512),
)
"""The fewest tokens that Anthropic caches, by model (its page on prompt caching, October 2026)."""

_MINIMUM: Final = 1_024
"""The fewest tokens that its other models cache."""

_CHARACTERS_OF_TOKEN: Final = 4

_HOSTS: Final = {"ChatOpenAI": "api.openai.com", "ChatMistralAI": "api.mistral.ai"}
"""The classes whose models take a `prompt_cache_key`, and the host where that is certain."""

CacheKind = Literal["breakpoint", "key"]


def cache_kind(model: object, enabled: bool | None) -> CacheKind | None:
    """Return how a model's prompt cache is told; `None` if it is not.

    Args:
        model: The model of a request.
        enabled: Whether the application wants it; `None`: where the model's class is known to take it.
    """
    classes = class_names(model)
    if enabled is False:
        return None
    if "ChatAnthropic" in classes:
        return "breakpoint"
    if enabled:
        takes_key = any(class_names(each) & {"BaseChatOpenAI", *_HOSTS} for each in unwrapped(model))
        return "key" if takes_key else "breakpoint"
    known = next((host for name, host in _HOSTS.items() if name in classes), None)
    return "key" if known is not None and _host(model) == known else None


def cache_key(key: ConversationKey) -> str:
    """Return the `prompt_cache_key` of a conversation: always the same, and none of its ids can be read from it."""
    ids = "\0".join((str(key.user_id), key.agent_id, key.thread_id))
    return f"memory-{hashlib.sha256(ids.encode()).hexdigest()[:32]}"


def with_breakpoint(
    messages: Sequence[BaseMessage],
    end: int,
    system: SystemMessage | None = None,
    others: Sequence[Mapping[str, Any]] = (),
    model: object = None,
) -> list[BaseMessage]:
    """Return a prompt with `cache_control` on the last text of its beginning, if the request has room for it.

    Args:
        messages: The messages of the request.
        end: How many of them are its beginning.
        system: The system message that stands before them.
        others: The `cache_control` values of tools and settings.
        model: The model, whose name says from how many tokens on it caches; `None` if it is not known.

    Returns:
        The messages; one is a copy.
    """
    before = [] if system is None else [system]
    marked = [*others, *_marks([*before, *messages])]
    place = next((at for at in range(end - 1, -1, -1) if _can_be_marked(messages[at])), None)
    characters = sum(map(content.characters, [*before, *messages[:end]]))
    is_short = characters < _CHARACTERS_OF_TOKEN * _minimum(model)
    if place is None or is_short or len(marked) >= _MAX_BREAKPOINTS:
        return list(messages)
    # A cache of an hour has to stand before those of five minutes: this one lasts as long as the others of its request.
    ttl = next(({"ttl": each["ttl"]} for each in marked if "ttl" in each), {})
    control = {"type": "ephemeral", **ttl}
    return [*messages[:place], _with_control(messages[place], control), *messages[place + 1 :]]


def cache_controls(values: Iterable[Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the `cache_control` of content blocks, of tools (or of their extras) and of a model's settings."""
    for value in values:
        extras = getattr(value, "extras", None)
        for each in (value, extras):
            control = each.get("cache_control") if isinstance(each, dict) else None
            if isinstance(control, dict):
                yield control


def _marks(messages: Iterable[BaseMessage]) -> Iterator[Mapping[str, Any]]:
    for message in messages:
        if isinstance(message.content, list):
            yield from cache_controls(message.content)


def _can_be_marked(message: BaseMessage) -> bool:
    """Return whether a message ends with a text: results of tools and calls have no place for a mark of their own."""
    if not isinstance(message, (HumanMessage, AIMessage)) or content.tool_calls(message):
        return False
    body = message.content
    last: Any = {"type": "text", "text": body} if isinstance(body, str) else body[-1] if body else None
    last = {"type": "text", "text": last} if isinstance(last, str) else last
    return isinstance(last, dict) and last.get("type") == "text" and bool(str(last.get("text", "")).strip())


def _with_control(message: BaseMessage, control: Mapping[str, str]) -> BaseMessage:
    body = message.content
    blocks: list[Any] = [body] if isinstance(body, str) else [*body]
    last = {"type": "text", "text": blocks[-1]} if isinstance(blocks[-1], str) else blocks[-1]
    return message.model_copy(update={"content": [*blocks[:-1], {**last, "cache_control": dict(control)}]})


def _minimum(model: object) -> int:
    name = str(getattr(model, "model", ""))
    return next((least for pattern, least in _MINIMUMS if pattern.search(name)), _MINIMUM)


def _host(model: object) -> str | None:
    """Return the host that a model's requests go to; `None` if it is not known."""
    client = getattr(model, "root_client", None)
    address = getattr(client, "base_url", None) or getattr(model, "endpoint", None)
    return None if address is None else urlsplit(str(address)).hostname
