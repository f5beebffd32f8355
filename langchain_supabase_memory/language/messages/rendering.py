"""Render the text of a message with any kind of block, and the names of its other content.

One traversal covers every block: LangChain's standard ones, and the native ones of OpenAI, Anthropic and Google.
Everything that displays a message uses it: prompts of summaries and boards, chunks, tools, turns, packs as text.

| block | rendered | named |
| --- | --- | --- |
| text, refusal | the text; its citations with title, address and cited text | |
| a server tool call, or a call that is not in `tool_calls` | its name and arguments, as JSON | |
| a server tool result | all its titles, addresses, texts, output and errors | encrypted parts |
| a text file, a document | title, context, text | |
| image, sound, video, other file | its accompanying text | type, size, name or address |
| reasoning, signatures, reasoning within a model's text | | type, size |
| any other block | JSON, without bytes and encrypted content | bytes and encrypted content |

It never raises, whatever a block holds, and the time is linear in its size.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from langchain_core.messages import AIMessage, ChatMessage, ToolMessage

from langchain_supabase_memory.language.messages import reasoning, sanitizer
from langchain_supabase_memory.language.messages.encoded_data import (
    IDS,
    DataNames,
    about_size,
    bytes_in,
    data_url,
    is_base64,
    is_encrypted,
    leaves,
    one_line,
    readable_size,
    shorten_encrypted,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from langchain_core.messages import BaseMessage

IMAGE_BLOCKS: Final = frozenset({"image", "image_url", "input_image"})
MEDIA_BLOCKS: Final = IMAGE_BLOCKS | {
    "file", "input_file", "audio", "input_audio", "video", "text-plain", "media", "document"
}  # fmt: skip

_MEDIA: Final = {
    **{kind: kind for kind in MEDIA_BLOCKS},
    "image_url": "image",
    "input_image": "image",
    "image_file": "image",
    "computer_screenshot": "image",
    "input_file": "file",
    "file_data": "file",
    "container_upload": "file",
    "code_execution_output": "file",
    "bash_code_execution_output": "file",
    "input_audio": "audio",
    "audio_url": "audio",
    "input_video": "video",
    "video_url": "video",
    "text-plain": "file",
    "media": "file",
}
_TEXTS: Final = frozenset({"text", "output_text", "input_text"})
_REASONING: Final = frozenset({"reasoning", "thinking", "redacted_thinking", "reasoning_content"})
_MODELS: Final = frozenset({"assistant", "ai"})
_OWN_CALLS: Final = frozenset(
    {"tool_use", "function_call", "tool_call", "tool_call_chunk", "invalid_tool_call", "custom_tool_call"}
)
"""Blocks that repeat `tool_calls`, unless they are missing there."""

_SERVER_CALLS: Final = frozenset(
    {"server_tool_call_chunk", "server_tool_use", "mcp_tool_use", "executable_code", "mcp_list_tools",
     "mcp_approval_request"}
)  # fmt: skip
_RESULTS: Final = ("_result", "_results", "_output", "_error", "logs")
_ARGUMENTS: Final = ("args", "input", "arguments", "action")
_OUTCOMES: Final = frozenset({"results", "result", "outputs", "output", "error", "errors", "tools"})
_BARE: Final = frozenset({*_OUTCOMES, "text", "content", "title", "context", "transcript", "source", "value"}) - {
    "error", "errors"
}  # fmt: skip
"""Values under these keys need no label."""

_MUTE: Final = IDS | {
    "tool_use_id", "tool_call_id", "call_id", "item_id", "container_id", "caller", "cache_control", "status",
    "start_index", "end_index", "object",
}  # fmt: skip
"""Provider-internal fields of known blocks."""

_QUIET_STATES: Final = frozenset({"completed", "success", "in_progress"})
_FILE_NAMES: Final = frozenset({"filename", "file_name", "name", "display_name"})
_TITLES: Final = _FILE_NAMES | {"title", "document_title"}
_ADDRESSES: Final = frozenset(
    {"url", "uri", "source", "file_id", "file_url", "file_uri", "image_url", "audio_url", "video_url"}
)
_QUOTES: Final = frozenset({"cited_text", "quote", "text", "snippet"})
_MIME: Final = frozenset({"mime_type", "media_type", "mimeType"})
_DATA: Final = frozenset({"data", "base64", "file_data", "bytes", "b64_json", "image_data"})
_OF_MEDIA: Final = _MUTE | {"detail", "source_type", "citations"}
_ASIDE_HIDDEN: Final = {
    "reasoning": "reasoning",
    "reasoning_content": "reasoning",
    "thinking": "reasoning",
    "__gemini_function_call_thought_signatures__": "signature",
}
_SOURCES: Final = frozenset({"citations", "search_results"})
_GROUNDING: Final = frozenset({"grounding_metadata", "groundingMetadata"})
_ASIDE: Final = frozenset(
    {*_ASIDE_HIDDEN, *_SOURCES, *_GROUNDING, "refusal", "audio", "tool_outputs", "function_call", "tool_calls"}
)
"""Metadata that providers add to the content."""

_OF_RESPONSE: Final = _GROUNDING | {"citations"}
_GROUNDS: Final = frozenset({"grounding_chunks", "groundingChunks"})
_QUERIES: Final = frozenset({"web_search_queries", "webSearchQueries"})
_DEEPEST: Final = 50


@dataclass(frozen=True, slots=True)
class Rendered:
    """The rendered content of a message.

    Attributes:
        words: The text for a model or a person, without calls of the application's own tools.
        calls: Such calls if they are in a block and not in `tool_calls`.
        named: The content that is not rendered, by type and size, in one bracket; empty if there is none.
        unsaid: What a model is sent besides text, calls and media: reasoning, signatures, call ids.
        media: The number of images, sounds and files, without text files.
    """

    words: str = field(repr=False)
    calls: str = field(default="", repr=False)
    named: str = ""
    unsaid: str = field(default="", repr=False)
    media: int = 0


def plain(message: BaseMessage) -> str | None:
    """Return the text of a message that has only text and calls, as nearly all do; `None` for the others."""
    content = message.content
    if (
        isinstance(content, str)
        and not (
            _is_from_model(message)
            and any(mark in content for mark in reasoning.MARKS)
            and reasoning.has_reasoning_tags(content)
        )
        and _ASIDE.isdisjoint(message.additional_kwargs)
        and _OF_RESPONSE.isdisjoint(message.response_metadata)
        and (not isinstance(message, ToolMessage) or message.artifact is None)
    ):
        return content
    return None


def render(message: BaseMessage) -> Rendered:
    """Render a message. The time is linear in its size, and it never raises."""
    text = plain(message)
    if text is not None:
        return Rendered(text)
    content = message.content
    beside, metadata = message.additional_kwargs, message.response_metadata
    aside = {key: beside[key] for key in _ASIDE & beside.keys()}
    aside |= {key: metadata[key] for key in _OF_RESPONSE & metadata.keys()}
    artifact = message.artifact if isinstance(message, ToolMessage) else None
    try:
        return _walk(message, content, aside, artifact)
    except Exception:  # a foreign object may raise on access; its encoded form does not
        return _walk(message, *map(sanitizer.encode, (content, aside, artifact)))


def _walk(message: BaseMessage, content: Any, aside: Mapping[str, Any], artifact: Any) -> Rendered:
    walk = _RenderWalk(message)
    words = walk.blocks(content if isinstance(content, list) else [content])
    said = [words, *walk.metadata_notes(aside)]
    if artifact is not None and (size := about_size(artifact)):
        walk.names.add(f"artifact {type(artifact).__name__}", size)
    return Rendered(
        words="\n".join(filter(None, said)),
        calls="\n".join(filter(None, walk.calls)),
        named=str(walk.names),
        unsaid="".join(walk.unsaid),
        media=walk.media,
    )


def call_line(call: Mapping[str, Any]) -> str:
    """Return a tool call for a reader, such as `[calls find({"q": "kiln"})]`."""
    error = call.get("error")
    why = f", {one_line(error)}" if isinstance(error, str) and error else ""
    return f"[calls {short_name(call.get('name'))}({as_json(call.get('args'))}){why}]"


def is_own_call(block: Any) -> bool:
    """Return whether a block is a call of one of the application's own tools."""
    kind = block.get("type") if isinstance(block, dict) else None
    return isinstance(kind, str) and kind in _OWN_CALLS


def short_name(name: Any) -> str:
    """Return a name on one line, cut if it is long."""
    return " ".join(str(name).split())[:64]


def as_json(value: Any) -> str:
    """Return a value as JSON, or its type name if that fails; a text is assumed to be JSON already."""
    if isinstance(value, str):
        return value
    try:
        return json.dumps(value, ensure_ascii=False, default=str)
    except Exception:  # a foreign object may raise on access
        return type(value).__name__


def _is_from_model(message: BaseMessage) -> bool:
    """Return whether a model wrote a message."""
    return isinstance(message, AIMessage) or (isinstance(message, ChatMessage) and message.role in _MODELS)


class _RenderWalk:
    """A traversal of one message."""

    def __init__(self, message: BaseMessage) -> None:
        self.names = DataNames()
        self.unsaid: list[str] = []
        self.media = 0
        self.calls: list[str] = []
        self._is_models = _is_from_model(message)
        calls = [*message.tool_calls, *message.invalid_tool_calls] if isinstance(message, AIMessage) else []
        self._has_calls = bool(calls)
        self._called = {call["id"] for call in calls if call.get("id")}
        self._unnamed = {call.get("name") for call in calls if not call.get("id")}

    def blocks(self, content: Iterable[Any]) -> str:
        """Return the text of blocks. Adjacent texts are joined, since streaming may have split them anywhere."""
        lines: list[str] = []
        texts: list[str] = []
        cited: dict[str, None] = {}
        for block in content:
            found = self._plain(block)
            if found is not None:
                texts.append(found[0])
                cited |= dict.fromkeys(found[1])
            elif words := self.value(block, is_block=True):
                lines += [self._join_texts(texts), *cited, words]
                texts, cited = [], {}
        return "\n".join(filter(None, [*lines, self._join_texts(texts), *cited]))

    def _join_texts(self, texts: Iterable[str]) -> str:
        """Join texts, without the reasoning in a model's own text."""
        text = "".join(texts)
        if not self._is_models:
            return text
        said, thought = reasoning.split(text)
        self.hide("reasoning", thought)
        return said

    def metadata_notes(self, metadata: Mapping[str, Any]) -> list[str]:
        """Return the texts of the metadata that providers add to the content."""
        lines: list[str] = []
        for key, item in sorted(metadata.items(), key=lambda each: each[0]):
            if key in _ASIDE_HIDDEN:
                self.hide(_ASIDE_HIDDEN[key], item)
            elif key == "audio" and isinstance(item, dict):
                lines.append(self._media(key, item, 0))
            elif key in ("function_call", "tool_calls"):
                calls = item if isinstance(item, list) else [item]
                self.calls += [] if self._has_calls else [_raw_call(each) for each in calls if isinstance(each, dict)]
            elif key in _GROUNDING and isinstance(item, dict):
                lines += self._grounds(item)
            elif isinstance(item, list):
                lines.append("\n".join(map(self._source, item)) if key in _SOURCES else self.blocks(item))
            else:
                lines.append(self.value(item))
        return lines

    def value(self, value: Any, depth: int = 0, *, is_block: bool = False) -> str:
        """Return the text of any value, for a reader.

        Args:
            value: The value.
            depth: Its nesting depth.
            is_block: Whether it is a content block of a message: a block of an unknown kind is rendered as JSON.
        """
        if isinstance(value, str):
            return self._text(value)
        if depth > _DEEPEST:
            self.hide("nested values", value)
            return ""
        if isinstance(value, dict):
            if is_block and is_own_call(value):
                self.calls.append(self._own_call(value, depth))
                return ""
            known = self._known_block(value, depth)
            if known is not None:
                return known
            return self._json(value) if is_block else "\n".join(self._lines(value, (), depth, is_known=False))
        if isinstance(value, (list, tuple)) and not all(map(_is_scalar, value)):
            return "\n".join(filter(None, (self.value(each, depth + 1) for each in value)))
        if isinstance(value, (list, tuple)) and len(value) < 2:
            return "".join(self.value(each, depth + 1) for each in value)
        return "" if value is None else self._json(value)

    def hide(self, name: str, value: Any) -> None:
        """Name a value by its size; it is counted, but not rendered."""
        for key, leaf in leaves(value):
            text = leaf if isinstance(leaf, str) else leaf.decode("latin-1")
            self.unsaid.append(text)
            if text:
                self.names.add(
                    shorten_encrypted(key) if is_encrypted(key, leaf) else name, len(text.encode(errors="replace"))
                )

    def _plain(self, block: Any) -> tuple[str, list[str]] | None:
        """Return the text of a text block with its citations; `None` for every other block."""
        if isinstance(block, str):
            return block, []
        if not isinstance(block, dict) or not isinstance(block.get("text"), str):
            return None
        kind = block.get("type")
        if kind is not None and not (isinstance(kind, str) and kind in _TEXTS):
            return None
        cited = []
        for key in ("annotations", "citations"):
            if isinstance(block.get(key), (list, tuple)):
                cited += [made for each in block[key] if (made := self._source(each))]
            else:
                cited += self._lines({key: block.get(key)}, (), 0)
        return block["text"], [*cited, *self._lines(block, ("text", "annotations", "citations"), 0)]

    def _known_block(self, block: Mapping[str, Any], depth: int) -> str | None:
        """Return the text of a block of a known kind; `None` for every other."""
        if (plain := self._plain(block)) is not None:
            return "\n".join(filter(None, [plain[0], *plain[1]]))
        kind = block.get("type")
        if not isinstance(kind, str):
            return None
        if kind in _REASONING:
            self.hide("reasoning", block)
            return ""
        if kind in _MEDIA:
            return self._media(_MEDIA[kind], block, depth)
        if is_own_call(block):
            return self._own_call(block, depth)
        if kind in _SERVER_CALLS or kind.endswith("_call"):
            return self._server_call(kind, block, depth)
        if kind.endswith("citation"):
            return self._source(block)
        if kind == "non_standard" and isinstance(block.get("value"), dict):
            lines = [self.value(block["value"], depth + 1, is_block=True), *self._lines(block, ("value",), depth)]
            return "\n".join(filter(None, lines))
        if kind != "refusal" and not kind.endswith(_RESULTS):
            return None
        said = "\n".join(self._lines(block, (), depth))
        return f"[{short_name(kind)}] {said}" if said and depth == 0 and kind != "refusal" else said

    def _lines(
        self, block: Mapping[Any, Any], without: Collection[str], depth: int, *, is_known: bool = True
    ) -> list[str]:
        """Return the lines of a mapping, with its keys as labels where they add information.

        Args:
            block: The mapping.
            without: The keys to omit.
            depth: Its nesting depth.
            is_known: Whether it is a block of a known kind, whose ids are the provider's own.
        """
        lines = []
        for key, item in block.items():
            if key in without:
                continue
            if is_known and key in _MUTE and not (key == "status" and _is_alarming(item)):
                if key not in IDS:
                    self.unsaid += [leaf for _, leaf in leaves(item) if isinstance(leaf, str)]
            elif is_encrypted(key, item):
                self.hide(shorten_encrypted(key), {key: item})
            elif words := self.value(item, depth + 1):
                lines.append(words if is_known and key in _BARE else f"{_key(key)}: {words}")
            elif not is_known and not item:
                lines.append(f"{_key(key)}: {self._json(item)}")  # a key may carry meaning, too
        return lines

    def _source(self, annotation: Any) -> str:
        """Return a citation on one line: title, address, cited text, and other fields."""
        if not isinstance(annotation, dict):
            words = self.value(annotation, 1)
            return f"[cites {words}]" if words else ""
        found: dict[str, list[str]] = {"title": [], "address": [], "quote": [], "other": []}
        for key, leaf in leaves(annotation):
            if is_encrypted(key, leaf) or not isinstance(leaf, str):
                self.hide(shorten_encrypted(key) if isinstance(leaf, str) else "bytes", {key: leaf})
            elif key in _MUTE:
                self.unsaid.append(leaf)
            elif leaf:
                kind = "title" if key in _TITLES else "address" if key in _ADDRESSES else "other"
                found["quote" if key in _QUOTES else kind].append(
                    self._text(leaf) if kind != "other" or key in _QUOTES else f"{key} {self._text(leaf)}"
                )
        addresses = [f"({each})" for each in found["address"]]
        quotes = [f"“{each}”" for each in found["quote"]]
        said = " ".join([*found["title"], *addresses, *quotes, *found["other"]])
        return f"[cites {said}]" if said else ""

    def _grounds(self, metadata: Mapping[str, Any]) -> list[str]:
        """Return Google's search queries and results; the supported passages are already part of the answer."""
        lines = []
        for key, item in metadata.items():
            if key in _GROUNDS and isinstance(item, list):
                lines += [self._source(each) for each in item]
            elif key in _QUERIES and item:
                lines.append(f"[calls google_search({as_json(self._clean(item, 0))})]")
        return lines

    def _media(self, base: str, block: Mapping[str, Any], depth: int) -> str:
        """Return the text that accompanies an image, a sound or a file; the file itself is named."""
        source, left = _text_source(block.get("source"))
        texts: list[str] = []
        addresses: list[str] = []
        names: list[str] = []
        mime, size, is_text = "", 0, False
        for key, leaf in leaves(block if source is None else {**block, "source": left}):
            url = data_url(leaf) if isinstance(leaf, str) else None
            if not isinstance(leaf, str) or url is not None or key in _DATA:
                mime, size = mime or url or "", size + bytes_in(leaf)
            elif key in _MIME:
                mime = leaf
            elif key == "format":
                mime = mime or f"{base}/{leaf}"
            elif key in _ADDRESSES:
                addresses.append(one_line(leaf))
            elif key in _FILE_NAMES:
                names.append(one_line(leaf))
            elif is_encrypted(key, leaf):
                self.hide(shorten_encrypted(key), {key: leaf})
            elif leaf and key not in _OF_MEDIA:
                is_text = is_text or key == "text"
                texts.append(leaf if key in _BARE else f"{key}: {leaf}")
        if source is not None:
            is_text = True
            texts.append(self.value(source, depth + 1))
        if not is_text:
            if block.get("source_type") == "id" and isinstance(block.get("id"), str):
                addresses.append(one_line(block["id"]))
            self.media += 1
            what = [one_line(mime) or base, readable_size(size) if size else "", *addresses]
            self.names.media.append(", ".join(filter(None, what)))
        return "\n".join(filter(None, [*(f"[{base} {name}]" for name in names), *texts]))

    def _own_call(self, block: Mapping[str, Any], depth: int) -> str:
        """Return a call in a block; empty if it is also in `tool_calls`."""
        ids = {each for each in (block.get("call_id"), block.get("id")) if isinstance(each, str)}
        name = block.get("name")
        if self._called & ids or (not ids and isinstance(name, str) and name in self._unnamed):
            for key, leaf in leaves(block):
                if is_encrypted(key, leaf):
                    self.hide(shorten_encrypted(key), {key: leaf})
            return ""
        key = next((key for key in _ARGUMENTS if key in block), "args")
        line = call_line({"name": name, "args": self._clean(block.get(key), depth), "error": block.get("error")})
        return "\n".join([line, *self._lines(block, ("name", key, "error"), depth)])

    def _server_call(self, kind: str, block: Mapping[str, Any], depth: int) -> str:
        """Return a call of a provider's tool, with its result if it is in the same block."""
        name = block.get("name")
        name = name if isinstance(name, str) else kind.removesuffix("_call")
        if kind == "image_generation_call" and isinstance(block.get("result"), str):
            self._media("image", {"base64": block["result"]}, depth)
            block = {key: item for key, item in block.items() if key != "result"}
        key = next((key for key in _ARGUMENTS if key in block), None)
        if key is None:
            own = [each for each in block if each not in _MUTE and each not in _OUTCOMES and each != "name"]
            arguments: Any = {each: block[each] for each in own}
        else:
            own, arguments = [key], block[key]
        line = call_line({"name": name, "args": self._clean(arguments, depth)})
        return "\n".join([line, *self._lines(block, ("name", *own), depth)])

    def _text(self, text: str) -> str:
        """Return a text within a block, unless it is bytes."""
        mime = data_url(text)
        if mime is None and not is_base64(text):
            return text
        self.unsaid.append(text)
        return f"[{mime or 'base64'}, {readable_size(bytes_in(text))}]"

    def _json(self, value: Any) -> str:
        return as_json(self._clean(value, 0))

    def _clean(self, value: Any, depth: int) -> Any:
        """Return a value without bytes and encrypted content, and only as deep as JSON can be written."""
        if isinstance(value, str):
            return self._text(value)
        if isinstance(value, (bytes, bytearray)):
            return f"[bytes, {readable_size(len(value))}]"
        if not isinstance(value, (dict, list, tuple)):
            return value
        if depth > _DEEPEST:
            self.hide("nested values", value)
            return "…"
        if not isinstance(value, dict):
            return [self._clean(each, depth + 1) for each in value]
        made = {}
        for key, item in value.items():
            if is_encrypted(key, item):
                self.hide(shorten_encrypted(key), {key: item})
            else:
                made[_key(key)] = self._clean(item, depth + 1)
        return made


def _text_source(source: Any) -> tuple[Any, Any]:
    """Split a document's source into its text or blocks and the rest; nothing and all for other sources."""
    if isinstance(source, dict):
        for kind, key in (("text", "data"), ("content", "content")):
            if source.get("type") == kind and source.get(key):
                return source[key], {each: item for each, item in source.items() if each not in (key, *_MIME)}
    return None, source


def _raw_call(call: Mapping[str, Any]) -> str:
    """Return a call in the form of OpenAI's legacy interfaces."""
    inner = call.get("function")
    held = inner if isinstance(inner, dict) else call
    return call_line({"name": held.get("name"), "args": held.get("arguments")})


def _key(key: Any) -> str:
    return key if isinstance(key, str) else as_json(key)


def _is_alarming(status: Any) -> bool:
    return isinstance(status, str) and status not in _QUIET_STATES


def _is_scalar(value: Any) -> bool:
    return value is None or isinstance(value, (str, bool, int, float))
