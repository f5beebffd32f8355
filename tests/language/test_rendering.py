"""All text of every block kind appears wherever a message is displayed, and other content is named there."""

from __future__ import annotations

import html
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import count
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, BaseMessage, ChatMessage, HumanMessage, ToolMessage

from langchain_supabase_memory import SummaryPolicy
from langchain_supabase_memory.agents.tools.messages import _passage
from langchain_supabase_memory.language.chunks.units import StoredText, texts, units
from langchain_supabase_memory.language.messages import codec, content, encoded_data
from langchain_supabase_memory.language.messages.blocks import PromptEntry, blocks
from langchain_supabase_memory.language.messages.rendering import render
from langchain_supabase_memory.language.prompts import pieces
from langchain_supabase_memory.values import StoredMessage
from tests.conftest import Caller
from tests.each_case import each_case
from tests.fuzzing import examples
from tests.owners import conversation_of

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
DATA = "QUJD" * 100


@dataclass
class Plant:
    """What was planted in a block.

    Attributes:
        words: What has to be found wherever the message is shown.
        named: What has to be named instead, and must not be shown: the words, and by what they are named.
        aside: What has to be found in the bracket: addresses and types.
    """

    words: list[str] = field(default_factory=list)
    named: list[tuple[str, str]] = field(default_factory=list)
    aside: list[str] = field(default_factory=list)
    numbers: Iterator[int] = field(default_factory=lambda: count(10))

    def word(self, form: str = "{}") -> str:
        """A word that is to be found, in a text around it."""
        self.words.append(f"kiwi{next(self.numbers)}")
        return form.format(self.words[-1])

    def hidden(self, label: str) -> str:
        """A text that is to be named, and not shown."""
        self.named.append((f"plum{next(self.numbers)}" + "Zm9v" * 3, label))
        return self.named[-1][0]

    def data(self, label: str, form: str = "{}") -> str:
        """Bytes in base64 that are to be named, and not shown."""
        self.named.append((f"pear{next(self.numbers)}" + DATA, label))
        return form.format(self.named[-1][0])

    def named_as(self, form: str = "{}") -> str:
        """An address of a file, or what it is; it stands in the bracket."""
        self.aside.append(f"fig{next(self.numbers)}")
        return form.format(self.aside[-1])


Block = dict[str, Any]

URL = "https://example.com/{}"

BLOCKS: dict[str, Callable[[Plant], Block]] = {
    # --- LangChain's standard blocks
    "text": lambda p: {"type": "text", "text": p.word(), "id": "b1", "index": 0},
    "text with a citation": lambda p: {
        "type": "text", "text": p.word(), "annotations": [
            {"type": "citation", "id": "c1", "url": p.word(URL), "title": p.word(), "start_index": 0, "end_index": 3,
             "cited_text": p.word("he said {}"), "extras": {"publisher": p.word(), "encrypted_index": p.hidden("encrypted content")}}]},
    "text with another annotation": lambda p: {
        "type": "text", "text": p.word(), "annotations": [
            {"type": "non_standard_annotation", "value": {"label": p.word(), "deep": [{"note": p.word()}]}}]},
    "text with extras": lambda p: {
        "type": "text", "text": p.word(), "extras": {"signature": p.hidden("signature"), "note": p.word()}},
    "reasoning": lambda p: {"type": "reasoning", "reasoning": p.hidden("reasoning"), "extras": {"signature": p.hidden("signature")}},
    "image": lambda p: {"type": "image", "base64": p.data("image/png"), "mime_type": "image/png", "extras": {"alt": p.word()}},
    "image by url": lambda p: {"type": "image", "url": p.named_as(URL)},
    "image by id": lambda p: {"type": "image", "file_id": p.named_as()},
    "video": lambda p: {"type": "video", "base64": p.data("video/mp4"), "mime_type": "video/mp4"},
    "audio": lambda p: {"type": "audio", "base64": p.data("audio/wav"), "mime_type": "audio/wav", "transcript": p.word()},
    "file": lambda p: {
        "type": "file", "base64": p.data("application/pdf"), "mime_type": "application/pdf",
        "extras": {"filename": p.word("{}.pdf")}},
    "file of the first standard": lambda p: {
        "type": "file", "source_type": "base64", "data": p.data("application/pdf"), "mime_type": "application/pdf",
        "filename": p.word()},
    "file of the first standard by id": lambda p: {"type": "file", "source_type": "id", "id": p.named_as()},
    "text-plain": lambda p: {
        "type": "text-plain", "text": p.word(), "title": p.word(), "context": p.word(), "mime_type": "text/plain"},
    "server_tool_call": lambda p: {
        "type": "server_tool_call", "id": "s1", "name": p.word("search_{}"), "args": {p.word(): [p.word(), {"a": p.word()}]}},
    "server_tool_call_chunk": lambda p: {
        "type": "server_tool_call_chunk", "id": "s1", "name": p.word(), "args": p.word('{{"q": "{}"')},
    "server_tool_result": lambda p: {
        "type": "server_tool_result", "tool_call_id": "s1", "status": "success",
        "output": [{"title": p.word(), "url": p.word(URL), "id": p.word(), "deep": {"list": [1, {"x": p.word()}]}}],
        "extras": {"note": p.word(), "encrypted_content": p.hidden("encrypted content")}},
    "server_tool_result that failed": lambda p: {
        "type": "server_tool_result", "tool_call_id": "s1", "status": p.word(), "output": p.word()},
    "non_standard": lambda p: {"type": "non_standard", "value": {"anything": p.word(), "type": p.word(), "deep": [[p.word()]]}},
    "non_standard of a known kind": lambda p: {
        "type": "non_standard", "value": {"type": "thinking", "thinking": p.hidden("reasoning")}, "extras": {"x": p.word()}},
    "unknown": lambda p: {
        "type": p.word(), "id": p.word(), "payload": {p.word(): p.word(), "raw": p.data("base64"), "n": 7,
                                                      "encrypted_blob": p.hidden("encrypted content")},
        "url": p.data("image/png", "data:image/png;base64,{}"), "b": b"plumbytes"},
    "json": lambda p: {"type": "json", "json": {"id": p.word(), "type": p.word()}},
    # --- OpenAI, Chat Completions
    "openai image_url": lambda p: {"type": "image_url", "image_url": {"url": p.named_as(URL), "detail": "low"}},
    "openai image_url inline": lambda p: {
        "type": "image_url", "image_url": {"url": p.data("image/jpeg", "data:image/jpeg;base64,{}")}},
    "openai input_audio": lambda p: {"type": "input_audio", "input_audio": {"data": p.data("audio/mp3"), "format": "mp3"}},
    "openai file": lambda p: {
        "type": "file", "file": {"filename": p.word("{}.pdf"), "file_data": p.data("application/pdf", "data:application/pdf;base64,{}")}},
    "openai file by id": lambda p: {"type": "file", "file": {"file_id": p.named_as("file-{}")}},
    "openai refusal": lambda p: {"type": "refusal", "refusal": p.word("I cannot {}")},
    # --- OpenAI, Responses
    "openai output_text": lambda p: {
        "type": "output_text", "text": p.word(), "annotations": [
            {"type": "url_citation", "url": p.word(URL), "title": p.word(), "start_index": 1, "end_index": 2},
            {"type": "file_citation", "file_id": p.word(), "filename": p.word(), "index": 1},
            {"type": "container_file_citation", "container_id": "cntr", "file_id": p.word(), "filename": p.word()},
            {"type": "file_path", "file_id": p.word(), "index": 0}]},
    "openai reasoning": lambda p: {
        "type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": p.hidden("reasoning")}],
        "encrypted_content": p.hidden("encrypted content")},
    "openai file_search_call": lambda p: {
        "type": "file_search_call", "id": "fs", "status": "completed", "queries": [p.word(), p.word()],
        "results": [{"file_id": p.word(), "filename": p.word(), "score": 0.5, "text": p.word(), "attributes": {"k": p.word()}}]},
    "openai web_search_call": lambda p: {
        "type": "web_search_call", "id": "ws", "status": "completed",
        "action": {"type": "search", "query": p.word(), "sources": [{"type": "url", "url": p.word(URL)}]}},
    "openai computer_call": lambda p: {
        "type": "computer_call", "id": "cu", "call_id": "c", "action": {"type": "type", "text": p.word()},
        "pending_safety_checks": [{"id": "sc", "code": p.word(), "message": p.word()}]},
    "openai computer_call_output": lambda p: {
        "type": "computer_call_output", "call_id": "c", "output":
            {"type": "computer_screenshot", "image_url": p.data("image/png", "data:image/png;base64,{}")}},
    "openai code_interpreter_call": lambda p: {
        "type": "code_interpreter_call", "id": "ci", "code": p.word("print({})"), "container_id": "cntr", "outputs": [
            {"type": "logs", "logs": p.word()}, {"type": "image", "url": p.named_as(URL)}]},
    "openai image_generation_call": lambda p: {
        "type": "image_generation_call", "id": "ig", "result": p.data("image"), "revised_prompt": p.word()},
    "openai mcp_call": lambda p: {
        "type": "mcp_call", "id": "m", "name": p.word(), "server_label": p.word(), "arguments": p.word('{{"q":"{}"}}'),
        "output": p.word(), "error": p.word()},
    "openai mcp_list_tools": lambda p: {
        "type": "mcp_list_tools", "id": "m", "server_label": p.word(), "tools": [
            {"name": p.word(), "description": p.word(), "input_schema": {"type": "object", "properties": {p.word(): {}, "b": 1}}}]},
    "openai mcp_approval_request": lambda p: {
        "type": "mcp_approval_request", "id": "m", "name": p.word(), "server_label": p.word(), "arguments": p.word()},
    "openai local_shell_call": lambda p: {
        "type": "local_shell_call", "id": "l", "call_id": "c",
        "action": {"type": "exec", "command": ["ls", p.word()], "env": {"A": p.word()}, "working_directory": p.word()}},
    # --- Anthropic
    "anthropic text": lambda p: {
        "type": "text", "text": p.word(), "citations": [
            {"type": kind, "cited_text": p.word(), "document_title": p.word(), "document_index": 0, "start_char_index": 0,
             "end_char_index": 9, **more}
            for kind, more in (
                ("char_location", {}), ("page_location", {"start_page_number": 1}),
                ("content_block_location", {"start_block_index": 0}),
                ("search_result_location", {"title": p.word(), "source": p.word(URL)}),
                ("web_search_result_location", {"title": p.word(), "url": p.word(URL), "encrypted_index": p.hidden("encrypted content")}))]},
    "anthropic thinking": lambda p: {"type": "thinking", "thinking": p.hidden("reasoning"), "signature": p.hidden("signature")},
    "anthropic redacted_thinking": lambda p: {"type": "redacted_thinking", "data": p.hidden("reasoning")},
    "anthropic tool_result": lambda p: {
        "type": "tool_result", "tool_use_id": "t", "content": [
            {"type": "text", "text": p.word()},
            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": p.data("image/png")}}]},
    "anthropic server_tool_use": lambda p: {"type": "server_tool_use", "id": "s", "name": p.word(), "input": {"query": p.word()}},
    "anthropic web_search_tool_result": lambda p: {
        "type": "web_search_tool_result", "tool_use_id": "s", "content": [
            {"type": "web_search_result", "url": p.word(URL), "title": p.word(), "page_age": p.word(),
             "encrypted_content": p.hidden("encrypted content")}]},
    "anthropic web_search_tool_result_error": lambda p: {
        "type": "web_search_tool_result", "tool_use_id": "s", "content":
            {"type": "web_search_tool_result_error", "error_code": p.word()}},
    "anthropic web_fetch_tool_result": lambda p: {
        "type": "web_fetch_tool_result", "tool_use_id": "s", "content": {
            "type": "web_fetch_result", "url": p.word(URL), "retrieved_at": p.word(), "content": {
                "type": "document", "title": p.word(), "citations": {"enabled": True},
                "source": {"type": "text", "media_type": "text/plain", "data": p.word()}}}},
    "anthropic web_fetch_tool_result of a file": lambda p: {
        "type": "web_fetch_tool_result", "tool_use_id": "s", "content": {
            "type": "web_fetch_result", "url": p.word(URL), "content": {
                "type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": p.data("application/pdf")}}}},
    "anthropic code_execution_tool_result": lambda p: {
        "type": "code_execution_tool_result", "tool_use_id": "s", "content": {
            "type": "code_execution_result", "stdout": p.word(), "stderr": p.word(), "return_code": 77,
            "content": [{"type": "code_execution_output", "file_id": p.named_as()}]}},
    "anthropic bash_code_execution_tool_result": lambda p: {
        "type": "bash_code_execution_tool_result", "tool_use_id": "s", "content": {
            "type": "bash_code_execution_result", "stdout": p.word(), "stderr": p.word(),
            "content": [{"type": "bash_code_execution_output", "file_id": p.named_as()}]}},
    "anthropic text_editor_code_execution_tool_result": lambda p: {
        "type": "text_editor_code_execution_tool_result", "tool_use_id": "s", "content": {
            "type": "text_editor_code_execution_view_result", "file_type": p.word(), "content": p.word(), "lines": [p.word(), "b"]}},
    "anthropic mcp_tool_use": lambda p: {
        "type": "mcp_tool_use", "id": "m", "name": p.word(), "server_name": p.word(), "input": {"q": p.word()}},
    "anthropic mcp_tool_result": lambda p: {
        "type": "mcp_tool_result", "tool_use_id": "m", "is_error": False, "content": [{"type": "text", "text": p.word()}]},
    "anthropic document of text": lambda p: {
        "type": "document", "title": p.word(), "context": p.word(), "citations": {"enabled": True},
        "source": {"type": "text", "media_type": "text/plain", "data": p.word()}},
    "anthropic document of blocks": lambda p: {
        "type": "document", "title": p.word(), "source": {"type": "content", "content": [
            {"type": "text", "text": p.word()}, {"type": "image", "source": {"type": "url", "url": p.named_as(URL)}}]}},
    "anthropic document by url": lambda p: {"type": "document", "title": p.word(), "source": {"type": "url", "url": p.named_as(URL)}},
    "anthropic document by id": lambda p: {"type": "document", "context": p.word(), "source": {"type": "file", "file_id": p.named_as()}},
    "anthropic image": lambda p: {
        "type": "image", "source": {"type": "base64", "media_type": "image/webp", "data": p.data("image/webp")}},
    "anthropic search_result": lambda p: {
        "type": "search_result", "source": p.word(URL), "title": p.word(), "content": [
            {"type": "text", "text": p.word()}, {"type": "text", "text": p.word()}], "citations": {"enabled": True}},
    "anthropic container_upload": lambda p: {"type": "container_upload", "file_id": p.named_as()},
    # --- Google
    "google executable_code": lambda p: {"type": "executable_code", "executable_code": p.word("print({})"), "language": "PYTHON"},
    "google code_execution_result": lambda p: {"type": "code_execution_result", "code_execution_result": p.word(), "outcome": 1},
    "google media": lambda p: {"type": "media", "mime_type": "audio/ogg", "data": p.data("audio/ogg")},
    "google media by uri": lambda p: {"type": "media", "mime_type": p.named_as("application/{}"), "file_uri": p.named_as(URL)},
    "google media of bytes": lambda _: {"type": "media", "mime_type": "image/png", "data": b"\x00\xff" * 600},
    "google thinking": lambda p: {"type": "thinking", "thinking": p.hidden("reasoning"), "signature": p.hidden("signature")},
    "google function_call_signature": lambda p: {"type": "function_call_signature", "signature": p.hidden("signature")},
    # --- Without a type, as Bedrock and others have them
    "bedrock text": lambda p: {"text": p.word()},
    "bedrock image": lambda _: {"image": {"format": "png", "source": {"bytes": b"plumbytes" * 9}}},
    "bedrock json": lambda p: {"json": {"a": p.word()}},
}  # fmt: skip

BESIDE: dict[str, Callable[[Plant], BaseMessage]] = {
    "refusal": lambda p: AIMessage("", additional_kwargs={"refusal": p.word("I cannot {}")}),
    "sound with its transcript": lambda p: AIMessage(
        "", additional_kwargs={"audio": {"id": "a", "data": p.data("audio"), "transcript": p.word(), "expires_at": 1 << 40}}),
    "reasoning beside": lambda p: AIMessage("hm", additional_kwargs={"reasoning_content": p.hidden("reasoning")}),
    "signatures beside": lambda p: AIMessage(
        "hm", additional_kwargs={"__gemini_function_call_thought_signatures__": {"id1": p.hidden("signature")}}),
    "results of a server's tools beside": lambda p: AIMessage(
        "hm", additional_kwargs={"tool_outputs": [
            {"type": "web_search_call", "id": "w", "action": {"type": "search", "query": p.word()}}]}),
    "citations beside": lambda p: AIMessage("hm", additional_kwargs={"citations": [p.word(URL), {"title": p.word()}]}),
    "grounding": lambda p: AIMessage("hm", response_metadata={"grounding_metadata": {
        "web_search_queries": [p.word(), p.word()],
        "grounding_chunks": [{"web": {"uri": p.word(URL), "title": p.word()}}, {"maps": {"title": p.word()}}],
        "grounding_supports": [{"segment": {"text": "hm"}, "grounding_chunk_indices": [0]}]}}),
    "artifact": lambda p: ToolMessage("hm", tool_call_id="c", artifact={"rows": [p.hidden("artifact dict")] * 2}),
}  # fmt: skip


def surfaces(message: BaseMessage) -> dict[str, str]:
    """The message as each place shows it."""
    stored = codec.from_payload(codec.to_row(message)["payload"])
    said = StoredText(0, "m", stored, NOW)
    made, _ = blocks([PromptEntry(stored, (0,))])
    if not made:  # a tool's result is not shown without its call
        made, _ = blocks(
            [PromptEntry(AIMessage("", tool_calls=[{"name": "f", "args": {}, "id": "c"}])), PromptEntry(stored, (0,))]
        )
    return {
        "summary prompt": html.unescape("\n".join(each.text for each in pieces([(0, stored)], 100_000))),
        "chunks": "\n".join(texts(units([said], max_tokens=100_000, more=True)[0])),
        "read_messages": _passage(StoredMessage(0, stored, role="user"), UTC, 0).text,
        "text of a pack": "\n".join(content.line(entry.message) for block in made for entry in block.entries),
    }


def check(message: BaseMessage, plant: Plant) -> None:
    shown = surfaces(message)
    # Turns are read from it, and it is searched; it holds words alone, and media have a column of their own.
    searched = codec.to_row(message)["text"]
    for word in plant.words:
        assert word in searched
        assert [place for place, text in shown.items() if word not in text] == []
    for place, text in shown.items():
        bracket = text.rpartition("[")[2]
        assert [label for _, label in plant.named if label not in text] == [], place
        assert [each for each in plant.aside if each not in bracket] == [], place
    for hidden, _ in plant.named:
        assert hidden not in searched + "".join(shown.values())
    sent = [
        *plant.words,
        *(hidden for hidden, label in plant.named if label not in ("audio", "image") and "/" not in label),
    ]
    if not isinstance(message, ToolMessage) or message.artifact is None:
        assert content.characters(message) >= sum(map(len, sent)), "what is sent is charged"
        assert content.tokens(message, len) >= sum(map(len, sent))


@each_case("kind", [HumanMessage, AIMessage, ToolMessage, ChatMessage])
@each_case("name", BLOCKS)
def test_every_word_of_a_block_is_shown_everywhere_or_named(name: str, kind: type[BaseMessage]) -> None:
    plant = Plant()
    block = BLOCKS[name](plant)
    more: dict[str, Any] = {ToolMessage: {"tool_call_id": "c"}, ChatMessage: {"role": "assistant"}}.get(kind, {})
    around: list[Any] = [{"type": "text", "text": "before "}, block, {"type": "text", "text": "after"}]
    check(kind(content=around, id="m", **more), plant)
    plant = Plant()
    one: list[Any] = [BLOCKS[name](plant)]
    alone = kind(content=one, id="m", **more)
    if not content.is_empty(alone):  # reasoning alone is not sent
        check(alone, plant)


@each_case("name", BESIDE)
def test_what_providers_put_beside_the_content_is_shown_or_named(name: str) -> None:
    plant = Plant()
    message = BESIDE[name](plant)
    message.id = "m"
    check(message, plant)


CALLS: dict[str, Block] = {
    "tool_call": {"type": "tool_call", "id": "c1", "name": "find", "args": {"q": "kiwi"}, "extras": {"signature": "plum"}},
    "tool_call_chunk": {"type": "tool_call_chunk", "id": "c1", "name": "find", "args": '{"q": "kiwi"}', "index": 0},
    "anthropic tool_use": {"type": "tool_use", "id": "c1", "name": "find", "input": {"q": "kiwi"}},
    "openai function_call": {"type": "function_call", "id": "fc", "call_id": "c1", "name": "find", "arguments": '{"q": "kiwi"}'},
    "openai custom_tool_call": {"type": "custom_tool_call", "id": "ct", "call_id": "c1", "name": "find", "input": "kiwi"},
    "google function_call": {"type": "function_call", "id": "c1", "name": "find", "args": {"q": "kiwi"}},
}  # fmt: skip


@each_case("name", CALLS)
def test_a_call_is_shown_once_wherever_it_stands(name: str) -> None:
    call = {"name": "find", "args": {"q": "kiwi"}, "id": "c1"}
    known = AIMessage([{"type": "text", "text": "ok"}, CALLS[name]], id="m", tool_calls=[call])
    for place, text in surfaces(known).items():
        assert (text.count("kiwi"), text.count("[calls find(")) == (1, 1), place
        assert ("plum" in text, "[signature, 4 bytes]" in text) == (False, "extras" in CALLS[name]), place
    assert codec.to_row(known)["text"] == "ok"
    alone = AIMessage([CALLS[name]], id="m")
    alone.tool_calls = []
    assert content.display_text(alone).count("kiwi") == 1
    assert codec.to_row(alone)["text"] == "", "what calls something is no final answer"
    assert content.characters(alone) >= len("findkiwi")
    elsewhere = HumanMessage([CALLS[name]], id="m")
    shown = surfaces(elsewhere)
    lacking = [place for place in shown if "kiwi" not in shown[place]]
    assert lacking in ([], ["text of a pack"]), "no provider would take it"


def test_a_call_that_is_no_json_says_why() -> None:
    wrong = {"name": "find", "args": '{"q": kiwi', "id": "c", "error": "no JSON: pear", "type": "invalid_tool_call"}
    message = AIMessage("", id="m", invalid_tool_calls=[wrong])
    for place, text in surfaces(message).items():
        assert '[calls find({"q": kiwi), no JSON: pear]' in text, place


def test_what_is_said_around_the_calls_of_a_server_stays_in_order() -> None:
    message = AIMessage(
        [
            {"type": "text", "text": "Let me "},
            {"type": "text", "text": "look."},
            {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {"query": "kiln"}},
            {"type": "web_search_tool_result", "tool_use_id": "s", "content": [
                {"type": "web_search_result", "title": "Kilns", "url": "https://k", "encrypted_content": "x" * 2000}]},
            {"type": "text", "text": "It is "},
            {"type": "thinking", "thinking": "hm", "signature": "s" * 900},
            {"type": "text", "text": "hot", "citations": [
                {"type": "web_search_result_location", "title": "Kilns", "url": "https://k", "cited_text": "very hot"}]},
            {"type": "text", "text": "."},
        ]
    )  # fmt: skip
    assert content.display_text(message) == (
        'Let me look.\n[calls web_search({"query": "kiln"})]\n[web_search_tool_result] Kilns\nurl: https://k\n'
        "It is hot.\n[cites Kilns (https://k) “very hot”]\n"
        "[encrypted content, 2 KB; reasoning, 2 bytes; signature, 900 bytes]"
    )


def test_what_is_named_says_what_it_is_and_how_large() -> None:
    image = {"type": "image", "base64": "A" * 17_336, "mime_type": "image/png"}
    file = {"type": "file", "url": "https://example.com/a.pdf", "mime_type": "application/pdf", "filename": "a.pdf"}
    assert content.display_text(HumanMessage(["Look", image, file])) == (
        "Look\n[file a.pdf]\n[image/png, 13 KB; application/pdf, https://example.com/a.pdf]"
    )
    result = ToolMessage("found", tool_call_id="c", artifact=[{"page": "x" * 3_000}])
    assert content.display_text(result) == "found\n[artifact list, 3 KB]"
    assert content.display_text(ToolMessage("found", tool_call_id="c", artifact=[])) == "found"
    assert [encoded_data.readable_size(size) for size in (0, 999, 13_002, 2_500_000)] == [
        "0 bytes",
        "999 bytes",
        "13 KB",
        "2.5 MB",
    ]


def test_reasoning_alone_says_nothing_and_ends_no_turn() -> None:
    thought = AIMessage([{"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}]}], id="m")
    assert codec.to_row(thought)["text"] == ""
    assert content.display_text(thought) == "[reasoning, 2 bytes]"
    assert content.is_empty(thought)
    # OpenAI adds a block without anything to every answer.
    assert content.display_text(AIMessage([{"type": "reasoning", "id": "rs", "summary": []}, "Yes."])) == "Yes."


def test_a_size_is_no_number_that_somebody_said() -> None:
    image: Block = {"type": "image", "base64": "A" * 17_336, "mime_type": "image/png"}
    bodies: list[Any] = ["look at this", ["look at this", image]]
    plain, named = (
        units([StoredText(0, "m", HumanMessage(said, id="m"), NOW)], max_tokens=400, more=True)[0][0].parts[0]
        for said in bodies
    )
    assert (named.kind, named.importance, named.marks) == (plain.kind, plain.importance, plain.marks)
    assert named.text == "look at this\n[image/png, 13 KB]"
    (piece,) = pieces([(0, HumanMessage(["look at this", image]))], 1000)
    assert (piece.lines[0].text, "[image/png, 13 KB]" in piece.text) == ("look at this", True)
    many = HumanMessage(["a " * 90, *[{"type": "image", "url": f"https://example.com/{n}"} for n in range(60)]], id="m")
    parts = units([StoredText(0, "m", many, NOW)], max_tokens=100, more=True)[0][0].parts
    assert len(parts) > 2
    assert all(part.tokens <= 100 for part in parts)
    assert all(f"https://example.com/{n}" in "".join(each.text for each in parts) for n in range(60))


def test_a_name_that_does_not_fit_beside_the_words_is_in_another_piece() -> None:
    images: list[Any] = [{"type": "image", "url": f"https://example.com/{n:03}"} for n in range(40)]
    made = pieces([(0, HumanMessage(["word " * 60, *images]))], 400)
    assert all(len(each.text) < 520 for each in made)
    lines = "".join(line.text for each in made for line in each.lines)
    assert lines.strip() == ("word " * 60).strip()
    assert all(f"{n:03}" in "".join(each.text for each in made) for n in range(40))


def test_what_a_person_deleted_is_hidden_whatever_it_stood_in() -> None:
    result: Block = {
        "type": "web_search_tool_result",
        "content": [{"type": "web_search_result", "title": "Her PIN is 4711"}],
    }
    image: Block = {"type": "image", "url": "https://example.com/a.png"}
    message = AIMessage(["Found:", result, image], id="m", additional_kwargs={"refusal": "Her PIN is 4711"})
    made = content.without(message, ["Her PIN is 4711"])
    shown = content.display_text(made)
    assert "4711" not in shown
    assert (shown.count(content.HIDDEN), "https://example.com/a.png" in shown, "Found:" in shown) == (2, True, True)
    assert content.without(message, ["nobody said"]) is message


def test_calls_of_the_memorys_own_tools_are_no_talk_wherever_they_stand() -> None:
    calls = [
        {"name": "recall_context", "args": {"q": "plum"}, "id": "c1"},
        {"name": "find", "args": {"q": "kiwi"}, "id": "c2"},
    ]
    use: list[Any] = [
        {"type": "tool_use", "id": each["id"], "name": each["name"], "input": each["args"]} for each in calls
    ]
    said = [
        StoredText(0, "a", AIMessage(use, id="a", tool_calls=calls), NOW),
        StoredText(
            1, "b", ToolMessage("<conversation_memory>plum</conversation_memory>", tool_call_id="c1", id="b"), NOW
        ),
        StoredText(2, "c", ToolMessage("found", tool_call_id="c2", id="c"), NOW),
    ]
    text = "\n".join(texts(units(said, max_tokens=400, more=True)[0]))
    assert "plum" not in text
    assert text.count("kiwi") == 1


# --- Whatever a block holds

_kinds = st.sampled_from(
    ["text", "image", "image_url", "file", "document", "reasoning", "thinking", "tool_use", "function_call", "refusal",
     "web_search_call", "image_generation_call", "mcp_call", "server_tool_result", "web_search_tool_result", "citation",
     "non_standard", "search_result", "media", "odd"]
)  # fmt: skip
_keys = st.sampled_from(
    ["type", "id", "text", "content", "source", "data", "url", "image_url", "name", "args", "input", "action", "results",
     "result", "output", "annotations", "citations", "signature", "encrypted_content", "value", "status", "file",
     "summary", "refusal", "title", "mime_type", "format", "call_id", "error"]
)  # fmt: skip
_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20) | st.binary(max_size=9) | _kinds,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_keys | st.text(max_size=5), inner, max_size=5),
    max_leaves=15,
)
_blocks = st.dictionaries(_keys, _values, max_size=6) | st.tuples(
    _kinds, st.dictionaries(_keys, _values, max_size=6)
).map(lambda made: {**made[1], "type": made[0]})


@settings(max_examples=examples(150), deadline=None)
@given(st.lists(_blocks | st.text(max_size=20), max_size=5), st.dictionaries(_keys, _values, max_size=3), _values)
def test_nothing_raises_whatever_a_block_holds(body: list[Any], beside: dict[str, Any], artifact: Any) -> None:
    beside = {
        **beside,
        **dict.fromkeys(("audio", "tool_outputs", "citations", "reasoning", "function_call"), artifact),
    }
    message = AIMessage("", id="m", additional_kwargs=beside).model_copy(update={"content": body})
    content.tokens(message)
    surfaces(message)
    surfaces(ToolMessage("", id="m", tool_call_id="c", artifact=artifact).model_copy(update={"content": body}))


@settings(max_examples=examples(100), deadline=None)
@given(_values)
def test_nothing_raises_where_a_block_is_none(value: Any) -> None:
    message = AIMessage("").model_copy(update={"content": [value, None, 7, [value], {"type": value}]})
    whole = render(message)
    assert isinstance(whole.words, str)
    render(AIMessage("", response_metadata={"grounding_metadata": value}))


class Hostile:
    def __getattribute__(self, name: str) -> Any:
        raise RuntimeError("secret content")

    def __str__(self) -> str:
        raise RuntimeError("secret content")


def test_deep_and_foreign_values_are_named_and_large_ones_are_quick() -> None:
    deep: Any = "kiwi"
    for _ in range(400):
        deep = {"inner": [deep]}
    for kind in ("odd", "server_tool_result", "non_standard", "text", "image", "reasoning", "tool_use", "citation"):
        message = HumanMessage([{"type": kind, "value": deep, "text": deep, "output": deep, "input": deep}])
        whole = render(message)
        assert "nested values" in whole.named or "kiwi" in whole.unsaid + whole.words
        assert content.characters(message) >= len("kiwi")
    foreign = HumanMessage("").model_copy(
        update={"content": [{"type": "odd", "x": Hostile()}, {"type": "mcp_call", "output": Hostile()}]}
    )
    assert "secret" not in content.display_text(foreign)
    large = {"type": "web_search_tool_result", "content": [{"title": f"word {n}", "url": URL} for n in range(20_000)]}
    began = time.thread_time()
    assert "word 19999" in content.display_text(AIMessage([large]))
    assert time.thread_time() - began < 3


# --- From the database


async def test_every_surface_of_the_database_has_the_words(caller: Caller, user_id: str) -> None:
    plant = Plant()
    kinds = (
        "anthropic web_search_tool_result",
        "openai code_interpreter_call",
        "unknown",
        "text-plain",
        "anthropic search_result",
    )
    asked = HumanMessage([{"type": "text", "text": "Look it up."}, *(BLOCKS[kind](plant) for kind in kinds)])
    answer = AIMessage("", additional_kwargs={"refusal": plant.word("No, not {}.")})
    where = {"thread_id": "t", "user_id": user_id}
    conversation = conversation_of(caller.service, **where)
    await caller(conversation.append, [asked, answer])
    (turn,) = await caller(conversation.turns.list)
    (stored, _) = await caller(conversation.read)
    pack = await caller(conversation.context)
    prompts: list[str] = []

    def write(prompt: Any) -> str:
        prompts.append(html.unescape("\n".join(str(each.content) for each in prompt)))
        return "A summary."

    await caller(conversation.index)
    chunks = await caller(conversation.chunks.list)
    await caller(conversation.append, [HumanMessage("And now?")])
    policy = SummaryPolicy(keep_messages=1, keep_characters=1)
    await caller(conversation.summaries.make, model=write, policy=policy)
    shown = {
        "turn": turn.user_query + turn.ai_response,
        "pack": pack.text(),
        "chunks": "\n".join(each.content for each in chunks),
        "summary prompt": "\n".join(prompts),
    }
    for place, text in shown.items():
        assert [word for word in plant.words if word not in text] == [], place
        assert not [hidden for hidden, _ in plant.named if hidden in text], place
    assert turn.ai_response.startswith("No, not kiwi")
    assert stored.message.content == asked.content, "what is stored is what was said"
    assert pack.messages[-1].content == turn.ai_response, "a model reads that it refused"
