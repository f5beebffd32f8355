"""Exports of chat products in their documented form, with undocumented variants."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

SECONDS = 1_740_830_400.5
"""2025-03-01 12:00:00.5 UTC."""


def written(folder: Path, document: object, name: str = "conversations.json") -> Path:
    path = folder / name
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


def lines(folder: Path, *documents: object) -> Path:
    path = folder / "lines.jsonl"
    path.write_text("".join(json.dumps(each) + "\n" for each in documents), encoding="utf-8")
    return path


def node(name: str, parent: str | None, role: str | None, parts: list[Any], **beside: Any) -> dict[str, Any]:
    """A node of ChatGPT's tree; without a role one without a message."""
    message = None
    if role is not None:
        message = {
            "id": name,
            "author": {"role": role, "name": beside.pop("author", None), "metadata": {}},
            "create_time": beside.pop("at", SECONDS),
            "content": beside.pop("content", {"content_type": "text", "parts": parts}),
            "weight": 1.0,
            "recipient": beside.pop("recipient", "all"),
            "metadata": beside,
        }
    return {"id": name, "message": message, "parent": parent, "children": []}


def tree(*nodes: dict[str, Any], current: str | None, **beside: Any) -> dict[str, Any]:
    """A conversation of ChatGPT's export."""
    mapping = {each["id"]: each for each in nodes}
    for each in nodes:
        if each["parent"] in mapping:
            mapping[each["parent"]]["children"].append(each["id"])
    return {
        "title": "A kiln", "create_time": SECONDS, "update_time": SECONDS + 100, "mapping": mapping,
        "conversation_id": "chat-1", "current_node": current, **beside,
    }  # fmt: skip


CHATGPT = [
    tree(
        node("root", None, None, []),
        node("hidden", "root", "system", ["You are helpful"], is_visually_hidden_from_conversation=True),
        node("q1", "hidden", "user", ["My kiln shows E-47."]),
        node("a1-old", "q1", "assistant", ["An answer that was tried again."]),
        node("a1", "q1", "assistant", ["That is the thermocouple."], model_slug="gpt-5"),
        node(
            "q2", "a1", "user", [],
            content={
                "content_type": "multimodal_text",
                "parts": [{"content_type": "image_asset_pointer", "asset_pointer": "file-service://x"}, "And this?"],
            },
            attachments=[{"name": "kiln.png", "id": "x", "mimeType": "image/png"}],
        ),
        node("call", "q2", "assistant", [], recipient="python", content={"content_type": "code", "text": "1 + 1"}),
        node("result", "call", "tool", [], author="python", content={"content_type": "execution_output", "text": "2"}),
        node("a2", "result", "assistant", ["Two."], at=None),
        current="a2",
    ),
    tree(
        node("r", None, None, []), node("q", "r", "user", ["First"]), node("late", "q", "assistant", ["Newest"], at=SECONDS + 9),
        node("early", "q", "assistant", ["Oldest"]),
        current="gone", conversation_id=None, id="chat-2", title=None,
    ),
]  # fmt: skip


def claude_message(name: str, sender: str, text: str, **beside: Any) -> dict[str, Any]:
    return {
        "uuid": name, "sender": sender, "text": text, "content": [{"type": "text", "text": text}],
        "created_at": "2025-03-01T12:00:00.500000Z", "updated_at": "2025-03-01T12:00:00.500000Z", "attachments": [],
        "files": [], **beside,
    }  # fmt: skip


CLAUDE: list[dict[str, Any]] = [
    {
        "uuid": "claude-1", "name": "A kiln", "created_at": "2025-03-01T12:00:00Z", "updated_at": "2025-03-01T12:09:00Z",
        "account": {"uuid": "someone"},
        "chat_messages": [
            claude_message(
                "c1", "human", "What does this say?",
                attachments=[
                    {"file_name": "notes.txt", "file_size": 20, "file_type": "txt", "extracted_content": "Fire at 1,240 °C."},
                    {"file_name": "empty.pdf", "file_size": 3, "file_type": "pdf"},
                ],
                files=[{"file_name": "kiln.png"}],
            ),
            claude_message(
                "c2", "assistant", "", content=[
                    {"type": "thinking", "thinking": "Let me look."},
                    {"type": "text", "text": "I look it up."},
                    {"type": "tool_use", "id": "t1", "name": "web_search", "input": {"query": "kiln"}},
                    {"type": "tool_result", "tool_use_id": "t1", "name": "web_search", "is_error": False,
                     "content": [{"type": "text", "text": "1,240 °C is cone 6."}]},
                    {"type": "text", "text": "It is cone 6."},
                    {"type": "hologram"},
                ],
            ),
            {"uuid": "c3", "sender": "human", "text": "Thanks"},
        ],
    },
    {
        "uuid": "claude-2", "name": "", "chat_messages": [
            claude_message("d1", "human", "One", parent_message_uuid="00000000-0000-4000-8000-000000000000"),
            claude_message("d2", "assistant", "Tried again", parent_message_uuid="d1"),
            claude_message("d3", "assistant", "Two", parent_message_uuid="d1"),
        ],
    },
]  # fmt: skip
