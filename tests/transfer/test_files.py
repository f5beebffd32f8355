"""Files of chat products and other tools: what is imported, what the receipt says, and the errors for bad files."""

from __future__ import annotations

import json
import os
import sys
import threading
import tracemalloc
import zipfile
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from langchain_supabase_memory import MemoryConfig, Retention, SupabaseMemory, documents
from langchain_supabase_memory.errors import InvalidInputError, SupabaseMemoryError
from langchain_supabase_memory.language.messages.codec import to_row
from langchain_supabase_memory.transfer import export_conversations, file_reader, import_conversations
from langchain_supabase_memory.transfer.batches import ORPHANED, SMALLER, UNTIMED
from langchain_supabase_memory.transfer.sources import chatgpt, claude, jsonl, mem0
from langchain_supabase_memory.transfer.values import Event, LossCount, SourceMessage, ThreadStart
from tests.transfer.documents import CHATGPT, CLAUDE, claude_message, lines, node, tree, written

AT: Final = datetime(2025, 3, 1, 12, 0, 0, 500000, tzinfo=UTC)
SECRET: Final = "peanuts"
"""What stands in bad files and may stand in no error."""


def stored(memory: SupabaseMemory, thread_id: str) -> list[BaseMessage]:
    return [each.message for each in memory.conversation(thread_id).read()]


def said(memory: SupabaseMemory, thread_id: str) -> list[tuple[str, str]]:
    return [(each.type, each.text) for each in stored(memory, thread_id)]


def test_an_export_replaces_no_pipe_and_no_folder(memory: SupabaseMemory, tmp_path: Path) -> None:
    memory.conversation("t").append([HumanMessage("My kiln shows E-47.")])
    pipe, folder = tmp_path / "pipe", tmp_path / "folder"
    os.mkfifo(pipe)
    folder.mkdir()
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()), daemon=True)
    reader.start()
    receipt = export_conversations(memory, pipe)
    reader.join(60)
    assert pipe.is_fifo()
    assert (len(read[0]), b"E-47" in read[0]) == (receipt.bytes, True)
    with pytest.raises(InvalidInputError, match="cannot be written: Is a directory"):
        export_conversations(memory, folder)
    assert sorted(tmp_path.iterdir()) == [folder, pipe]


def test_of_chatgpt_the_branch_that_was_shown_is_kept(memory: SupabaseMemory, tmp_path: Path) -> None:
    receipt = import_conversations(memory, chatgpt(written(tmp_path, CHATGPT)))
    assert said(memory, "chat-1") == [
        ("human", "My kiln shows E-47."), ("ai", "That is the thermocouple."), ("human", "And this?"),
        ("ai", ""), ("tool", "2"), ("ai", "Two."),
    ]  # fmt: skip
    assert said(memory, "chat-2") == [("human", "First"), ("ai", "Newest")]
    call, result = stored(memory, "chat-1")[3:5]
    assert isinstance(call, AIMessage)
    assert isinstance(result, ToolMessage)
    assert (call.tool_calls[0]["name"], call.tool_calls[0]["args"]) == ("python", {"input": "1 + 1"})
    assert result.tool_call_id == call.tool_calls[0]["id"]
    rows = memory.conversation("chat-1").read(columns=("created_at", "metadata", "message_id"))
    assert [row.created_at == AT for row in rows] == [True] * 5 + [False]
    assert rows[2].metadata == {"attachments": ["kiln.png"]}
    info = memory.conversation("chat-1").info()
    assert (info.title, info.created_at) == ("A kiln", AT)
    assert {what: count for what, (count, _) in receipt.lost.items()} == {
        "messages of branches that were not shown last": 2,
        "images and files, of which the export has the names alone": 1,
        UNTIMED: 1,
    }
    assert receipt.lost[UNTIMED][1] == "conversation 1, message 8"
    assert receipt.stored == 8

    again = import_conversations(memory, chatgpt(written(tmp_path, CHATGPT)))
    assert (again.stored, again.known, again.restored) == (0, 8, 0)


def test_of_claude_tools_attachments_and_the_last_branch_are_kept(memory: SupabaseMemory, tmp_path: Path) -> None:
    archive = tmp_path / "export.zip"
    with zipfile.ZipFile(archive, "w") as made:
        made.write(written(tmp_path, CLAUDE), "conversations.json")
    receipt = import_conversations(memory, claude(archive))
    question, call, result, answer, thanks = stored(memory, "claude-1")
    assert "notes.txt:\nFire at 1,240 °C." in question.text
    assert isinstance(call, AIMessage)
    assert isinstance(result, ToolMessage)
    assert (call.text, call.tool_calls[0]["args"]) == ("I look it up.", {"query": "kiln"})
    assert (result.text, result.tool_call_id) == ("1,240 °C is cone 6.", call.tool_calls[0]["id"])
    assert (answer.text, thanks.text, answer.id) == ("It is cone 6.", "Thanks", "c2-3")
    assert said(memory, "claude-2") == [("human", "One"), ("ai", "Two")]
    assert memory.conversation("claude-1").read(first=1, columns=("created_at",))[0].created_at == AT
    assert {what: (count, place) for what, (count, place) in receipt.lost.items()} == {
        "images and files, of which the export has the names alone": (1, "conversation 1, message 1"),
        "attachments without their text": (1, "conversation 1, message 1"),
        "blocks of a kind that is not known": (1, "conversation 1, message 2"),
        "messages of branches that were not shown last": (1, "conversation 2"),
        UNTIMED: (1, "conversation 1, message 3"),
    }
    assert import_conversations(memory, claude(archive)).stored == 0


def spoken(events: Iterable[Event]) -> list[BaseMessage]:
    return [each.message for each in events if isinstance(each, SourceMessage) and each.message is not None]


def lost(events: Iterable[Event]) -> dict[str, int]:
    counted: dict[str, int] = {}
    for each in events:
        if isinstance(each, LossCount):
            counted[each.kind] = counted.get(each.kind, 0) + each.count
    return counted


def thought(text: str, *thoughts: str) -> list[Any]:
    """The content of an answer with its thoughts."""
    blocks = [{"type": "reasoning", "reasoning": each} for each in thoughts]
    return [*blocks, {"type": "text", "text": text}] if text else blocks


def kind(content_type: str, **fields: Any) -> dict[str, Any]:
    return {"content": {"content_type": content_type, **fields}}


THOUGHTFUL: Final = tree(
    node("q", None, "user", ["What is E-47?"]),
    node("t", "q", "assistant", [], **kind("thoughts", thoughts=[{"summary": "Checking", "content": "maybe they lie"}])),
    node("call", "t", "assistant", [], recipient="web", **kind("code", text="E-47")),
    node("failed", "call", "tool", [], author="web", **kind("system_error", name="Timeout", text="too slow")),
    node("t2", "failed", "assistant", [], **kind("thoughts", thoughts=[{"summary": "", "content": "a thermocouple"}, 7])),
    node("r", "t2", "assistant", [], **kind("reasoning_recap", content="Thought for 12 seconds")),
    node(
        "a", "r", "assistant",
        ["A thermocouple \ue200cite\ue202turn0search3\ue202turn1view0\ue201 by "
         '\ue200entity\ue202["company","Skutt","a maker"]\ue201, see \ue200url\ue202its page\ue202https://x.test\ue201【4:1†kiln.pdf】.'],
    ),
    node("s", "a", "user", [], **kind("user_editable_context", user_profile="A potter", user_instructions="Be short")),
    node("x", "s", "assistant", [], **kind("hologram", figure=3)),
    node("q2", "x", "user", ["And \ue200this\ue201?"]),
    node("t3", "q2", "assistant", [], **kind("thoughts", thoughts=[{"summary": "Hm", "content": "stopped"}])),
    current="t3",
)  # fmt: skip


def test_what_a_model_thought_is_a_block_of_its_answer_and_never_its_words(tmp_path: Path) -> None:
    events = list(chatgpt(written(tmp_path, [THOUGHTFUL])))
    question, call, failed, answer, second = spoken(events)
    assert (question.text, second.text) == ("What is E-47?", "And \ue200this\ue201?")
    assert isinstance(call, AIMessage)
    assert isinstance(failed, ToolMessage)
    assert (call.content, call.tool_calls[0]["name"]) == (thought("", "Checking\n\nmaybe they lie"), "web")
    assert (failed.text, failed.status) == ("too slow", "error")
    words = "A thermocouple by Skutt, see its page."
    assert (answer.text, answer.content) == (words, thought(words, "a thermocouple"))
    assert lost(events) == {
        "notes of how long a model thought": 1,
        "settings that hold for all conversations": 1,
        "messages of a kind that is not known": 1,
        "thoughts that no answer follows": 1,
    }


def test_thoughts_are_found_in_every_form(tmp_path: Path) -> None:
    answers = [
        {"role": "assistant", "content": "Cone 6.", "reasoning_content": "1,240 °C"},
        {"role": "assistant", "content": "<think>\n1,240 °C\n</think>\n\nCone 6."},
        {"role": "assistant", "content": "<thinking>1,240 °C</thinking>Cone 6."},
    ]
    shared = [{"from": "gpt", "value": "<think>1,240 °C</think>Cone 6."}]
    path = lines(tmp_path, {"thread_id": "ml", "messages": answers}, {"id": "s", "conversations": shared})
    assert [each.content for each in spoken(jsonl(path))] == [thought("Cone 6.", "1,240 °C")] * 4
    kept = [{"role": "assistant", "content": "Cone 6. <think>not at its beginning</think>"}]
    (message,) = spoken(jsonl(lines(tmp_path, {"thread_id": "t", "messages": kept})))
    assert message.content == "Cone 6. <think>not at its beginning</think>"
    only = claude_message("c", "assistant", "", content=[{"type": "thinking", "thinking": "stopped"}])
    events = list(claude(written(tmp_path, [{"uuid": "c", "chat_messages": [only]}])))
    assert (spoken(events), lost(events)) == ([], {"thoughts that no answer follows": 1})


def test_thoughts_are_not_recalled(memory: SupabaseMemory, tmp_path: Path) -> None:
    import_conversations(memory, chatgpt(written(tmp_path, [THOUGHTFUL])))
    conversation = memory.conversation("chat-1")
    conversation.index()
    assert not any("lie" in each.content for each in conversation.recall("do they lie?").chunks)
    assert ("ai", "A thermocouple by Skutt, see its page.") in said(memory, "chat-1")


def shards(folder: Path) -> Path:
    """An export of three files, with what stands beside them."""
    for number in range(3):
        each = tree(
            node(f"q{number}", None, "user", [f"Question {number}"]), current=f"q{number}", conversation_id=f"c{number}"
        )
        written(folder, [each], f"conversations-{number:03}.json")
    written(folder, [{"nothing": "of this"}], "shared_conversations.json")
    written(folder, {"id": "user"}, "user.json")
    return folder


@pytest.mark.parametrize("inside", ["", "export/"])
def test_an_export_in_several_files_is_one_export(tmp_path: Path, inside: str) -> None:
    folder = tmp_path / "download"
    (folder / inside).mkdir(parents=True)
    shards(folder / inside)
    archive = tmp_path / "export.zip"
    with zipfile.ZipFile(archive, "w") as made:
        for path in sorted(folder.rglob("*.json"), reverse=True):
            made.write(path, path.relative_to(folder).as_posix())
        made.writestr("__MACOSX/conversations-000.json", b"no JSON")
    for named in (folder, archive):
        events = list(chatgpt(named))
        assert [each.text for each in spoken(events)] == ["Question 0", "Question 1", "Question 2"]
        places = [each.place for each in events if isinstance(each, ThreadStart)]
        assert places == ["conversation 1", "conversation 2", "conversation 3"]
    (one,) = spoken(chatgpt(folder / inside / "conversations-001.json"))
    assert one.text == "Question 1"


def test_a_folder_or_an_archive_without_conversations_says_so(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    written(tmp_path / "empty", [], "shared_conversations.json")
    with zipfile.ZipFile(tmp_path / "empty.zip", "w") as made:
        made.writestr("user.json", "{}")
    for name, what in (("empty", "folder"), ("empty.zip", "archive")):
        for source in (chatgpt, claude):
            with pytest.raises(InvalidInputError, match=f"The {what} holds no conversations.json"):
                list(source(tmp_path / name))


def test_a_file_of_several_that_is_cut_is_named_by_what_stood_before_it(tmp_path: Path) -> None:
    folder = shards(tmp_path)
    (folder / "conversations-002.json").write_text('[{"title": "x"')
    with pytest.raises(InvalidInputError, match="ends in the middle, after conversation 2"):
        list(chatgpt(folder))


CALLS: Final = [{"id": "c1", "type": "function", "function": {"name": "look_up", "arguments": '{"part": "K"}'}}]


def test_chatml_and_sharegpt_are_a_conversation_a_line(memory: SupabaseMemory, tmp_path: Path) -> None:
    path = lines(
        tmp_path,
        {
            "thread_id": "ml",
            "messages": [
                {"role": "system", "content": "Be kind"},
                {"role": "user", "content": "E-47?", "created_at": "2025-03-01T12:00:00.5Z"},
                {"role": "assistant", "content": None, "tool_calls": CALLS},
                {"role": "tool", "content": "25 euros", "tool_call_id": "c1"},
                {"role": "assistant", "content": [{"type": "text", "text": "25 euros."}]},
            ],
        },
        {
            "id": "shared",
            "conversations": [
                {"from": "human", "value": "E-47?"},
                {"from": "function_call", "value": '{"name": "look_up", "arguments": {"part": "K"}}'},
                {"from": "observation", "value": "25 euros"},
                {"from": "gpt", "value": "25 euros."},
            ],
        },
        {"messages": [{"role": "user", "content": "Without an id"}]},
    )
    assert import_conversations(memory, jsonl(path)).stored == 10
    assert [kind for kind, _ in said(memory, "ml")] == ["system", "human", "ai", "tool", "ai"]
    assert [kind for kind, _ in said(memory, "shared")] == ["human", "ai", "tool", "ai"]
    assert memory.conversation("ml").read(columns=("created_at",))[1].created_at == AT
    for thread in ("ml", "shared"):
        call = next(each for each in stored(memory, thread) if isinstance(each, AIMessage) and each.tool_calls)
        result = next(each for each in stored(memory, thread) if isinstance(each, ToolMessage))
        assert (call.tool_calls[0]["args"], call.tool_calls[0]["id"]) == ({"part": "K"}, result.tool_call_id)
    assert import_conversations(memory, jsonl(path)).stored == 0
    assert len(memory.conversations()) == 3


GOOD: Final = {"thread_id": "good", "messages": [{"role": "user", "content": "Kept", "created_at": AT.isoformat()}]}


def _half(document: object) -> bytes:
    return json.dumps(document).encode()[:-9]


BAD: Final[list[tuple[str, Callable[..., Iterator[Any]], bytes, str]]] = [
    ("no JSON", jsonl, f"{SECRET} and more\n".encode(), "line 2"),
    ("half a line", jsonl, _half({"messages": [{"role": "user", "content": SECRET}]}), "line 2"),
    ("nested", jsonl, b'{"messages": ' + b"[" * 100_000 + b"]" * 100_000 + b"}\n", "line 2"),
    ("deep content", jsonl, b'{"messages": [{"role": "user", "content": ' + b"[" * 5000 + b"]" * 5000 + b"}]}\n", "line 2"),
    ("latin-1", jsonl, '{"messages": [{"role": "user", "content": "Käse"}]}\n'.encode("latin-1"), "line 2"),
    ("a list", jsonl, b"[1, 2]\n", "line 2"),
    ("another document", jsonl, json.dumps({"said": SECRET}).encode() + b"\n", "line 2"),
    ("another kind", jsonl, json.dumps({"kind": SECRET}).encode() + b"\n", "line 2"),
    ("an unknown role", jsonl, json.dumps({"messages": [{"role": SECRET, "content": SECRET}]}).encode() + b"\n", "line 2, message 1"),
    ("an unknown speaker", jsonl, json.dumps({"conversations": [{"from": SECRET, "value": ""}]}).encode() + b"\n", "line 2, message 1"),
    (
        "the future", jsonl,
        json.dumps({"messages": [{"role": "user", "content": SECRET, "created_at": "2999-01-01T00:00:00Z"}]}).encode() + b"\n",
        "line 2, message 1",
    ),
    (
        "no time", jsonl,
        json.dumps({"messages": [{"role": "user", "content": SECRET, "created_at": SECRET}]}).encode() + b"\n",
        "line 2, message 1",
    ),
    (
        "one id twice", jsonl,
        json.dumps({"messages": [{"role": "user", "content": text, "id": "m"} for text in ("a", SECRET)]}).encode() + b"\n",
        "line 2, message 2",
    ),
    ("an unusable thread", jsonl, json.dumps({"thread_id": "x" * 600, "messages": []}).encode() + b"\n", "line 2"),
]  # fmt: skip


@pytest.mark.parametrize(("read", "bad", "place"), [each[1:] for each in BAD], ids=[each[0] for each in BAD])
def test_a_bad_line_is_named_and_what_stands_before_it_is_stored(
    memory: SupabaseMemory, tmp_path: Path, read: Callable[..., Any], bad: bytes, place: str
) -> None:
    path = tmp_path / "lines.jsonl"
    path.write_bytes(json.dumps(GOOD).encode() + b"\n" + bad)
    with pytest.raises(SupabaseMemoryError) as raised:
        import_conversations(memory, read(path))
    assert raised.value.message.startswith(f"{place}:")
    assert raised.value.hint
    assert SECRET not in str(raised.value)
    assert said(memory, "good") == [("human", "Kept")]


def test_bad_lines_are_skipped_and_in_the_receipt_where_that_is_wanted(memory: SupabaseMemory, tmp_path: Path) -> None:
    path = tmp_path / "lines.jsonl"
    path.write_bytes(b"no JSON\n" + json.dumps(GOOD).encode() + b"\n\xff\xfe\xfd\n[]\n")
    receipt = import_conversations(memory, jsonl(path), skip=True)
    assert (receipt.stored, sum(count for count, _ in receipt.lost.values())) == (1, 3)
    assert [place for _, place in receipt.lost.values()] == ["line 1", "line 3", "line 4"]


def test_documents_that_are_none_are_named(memory: SupabaseMemory, tmp_path: Path) -> None:
    whole = json.dumps(CHATGPT).encode()
    found = {}
    for name, data in {
        "half": whole[: whole.index(b"chat-2") - 400],
        "text": b"hello " + SECRET.encode(),
        "empty": b"",
        "nested": b"[" * 200_000,
        "latin-1": '[{"title": "Käse", "mapping": {}}]'.encode("latin-1"),
        "strange": b'[{"title": "x"}]',
    }.items():
        path = tmp_path / f"{name}.json"
        path.write_bytes(data)
        with pytest.raises(InvalidInputError) as raised:
            import_conversations(memory, chatgpt(path))
        found[name] = str(raised.value)
        assert SECRET not in found[name]
        assert raised.value.hint
    assert "after conversation 1" in found["half"]
    assert "UTF-8" in found["latin-1"]
    assert "latin-1" in found["latin-1"]
    assert found["strange"].startswith("conversation 1:")
    # Nothing half lost: what was whole is there, and the whole file goes on from there.
    assert len(stored(memory, "chat-1")) == 6
    assert import_conversations(memory, chatgpt(written(tmp_path, CHATGPT))).stored == 2
    with pytest.raises(InvalidInputError, match="opened"):
        import_conversations(memory, chatgpt(tmp_path / "missing.json"))


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32"])
def test_what_says_its_encoding_is_read(memory: SupabaseMemory, tmp_path: Path, encoding: str) -> None:
    document = {"thread_id": "t", "messages": [{"role": "user", "content": "Käse 🧀\u2028 kiln"}]}
    path = tmp_path / "lines.jsonl"
    path.write_bytes((json.dumps(document, ensure_ascii=False) + "\n").encode(encoding))
    import_conversations(memory, jsonl(path))
    assert said(memory, "t") == [("human", "Käse 🧀\u2028 kiln")]
    other = tmp_path / "conversations.json"
    other.write_bytes(json.dumps(CLAUDE, ensure_ascii=False).encode(encoding))
    import_conversations(memory, claude(other))
    assert "1,240 °C" in stored(memory, "claude-1")[0].text


def test_another_encoding_is_read_where_it_is_named(memory: SupabaseMemory, tmp_path: Path) -> None:
    path = tmp_path / "lines.jsonl"
    path.write_bytes('{"thread_id": "t", "messages": [{"role": "user", "content": "Käse"}]}\n'.encode("latin-1"))
    import_conversations(memory, jsonl(path, encoding="latin-1"))
    assert said(memory, "t") == [("human", "Käse")]
    with pytest.raises(InvalidInputError, match="encoding"):
        import_conversations(memory, jsonl(path, encoding="nonsense"))


def test_a_dry_run_stores_nothing_and_says_what_retention_would_remove(
    conn_string: str, user_id: str, tmp_path: Path
) -> None:
    old, new = datetime.now(UTC) - timedelta(days=40), datetime.now(UTC) - timedelta(hours=1)
    turns = [
        {"role": role, "content": f"{number}", "created_at": (old if number < 3 else new).isoformat()}
        for number in range(6)
        for role in ("user", "assistant")
    ]
    path = lines(tmp_path, {"thread_id": "t", "messages": turns})
    for retention, gone in (
        (Retention(max_age=timedelta(days=30)), 6), (Retention(max_turns=2), 8), (Retention(max_messages=5), 7),
        (Retention(max_turns=9), 0), (None, 0),
    ):  # fmt: skip
        with SupabaseMemory.from_conn_string(
            conn_string, user_id=user_id, config=MemoryConfig(recall=None), model=None, retention=retention
        ) as memory:
            receipt = import_conversations(memory, jsonl(path), dry_run=True)
            assert (receipt.messages, receipt.stored, receipt.expired) == (12, 0, gone)
            assert len(memory.conversations()) == 0
            assert import_conversations(memory, jsonl(path)).expired == gone
            assert memory.conversation("t").count() == 12 - gone
            assert import_conversations(memory, jsonl(path)).stored == 0
            memory.forget_user()


def test_secrets_and_what_is_not_to_be_remembered_stay_out(conn_string: str, user_id: str, tmp_path: Path) -> None:
    from langchain_supabase_memory import SECRETS

    path = lines(
        tmp_path,
        {"thread_id": "t", "messages": [{"role": "user", "content": "My key is sk-proj-abcdefghijklmnopqrstuvwxyz012345678901"}]},
        {"thread_id": "u", "messages": [{"role": "user", "content": text} for text in ("My divorce is in May.", "My kiln is blue.")]},
    )  # fmt: skip
    with SupabaseMemory.from_conn_string(
        conn_string, user_id=user_id, config=MemoryConfig(recall=None), redactor=SECRETS
    ) as memory:
        memory.privacy.opt_out("divorce", actor="maya")
        import_conversations(memory, jsonl(path))
        assert "abcdefghij" not in stored(memory, "t")[0].text
        memory.conversation("u").index()
        assert [chunk.content for chunk in memory.conversation("u").chunks.list()] == ["My kiln is blue."]


def test_an_export_of_ours_is_redacted_on_its_way_in(conn_string: str, user_id: str, tmp_path: Path) -> None:
    from langchain_supabase_memory import SECRETS
    from langchain_supabase_memory.transfer import export_conversations

    key = "sk-proj-abcdefghijklmnopqrstuvwxyz012345678901"
    with SupabaseMemory.from_conn_string(conn_string, config=MemoryConfig(recall=None), model=None) as plain:
        plain.for_user(user_id).conversation("t").append(
            [HumanMessage(f"My key is {key}", id="m")], metadata={"k": key}
        )
        export_conversations(plain.for_user(user_id), tmp_path / "all.jsonl")
    with SupabaseMemory.from_conn_string(
        conn_string, user_id=f"{user_id}-2", config=MemoryConfig(recall=None), redactor=SECRETS
    ) as memory:
        import_conversations(memory, jsonl(tmp_path / "all.jsonl"))
        row = memory.conversation("t").read(columns=("text", "payload", "metadata"))[0]
        assert key not in repr((row.text, row.message and row.message.content, row.metadata))


def test_one_that_was_interrupted_goes_on(memory: SupabaseMemory) -> None:
    def broken(after: int) -> Iterator[Any]:
        for thread in range(3):
            yield ThreadStart(f"t{thread}", f"conversation {thread}")
            for number in range(1500):
                if thread * 1500 + number == after:
                    raise KeyboardInterrupt
                yield SourceMessage(f"message {number}", HumanMessage(f"{thread} {number}"))

    with pytest.raises(KeyboardInterrupt):
        import_conversations(memory, broken(2800))
    before = sum(info.message_count for info in memory.conversations())
    assert 2000 <= before < 2800
    receipt = import_conversations(memory, broken(-1))
    assert (receipt.known, receipt.stored) == (before, 4500 - before)
    for thread in range(3):
        assert [text for _, text in said(memory, f"t{thread}")] == [f"{thread} {number}" for number in range(1500)]


@pytest.mark.slow
def test_memory_does_not_grow_with_the_document(memory: SupabaseMemory, tmp_path: Path) -> None:
    peaks = []
    for count in (200, 2000):
        path = tmp_path / f"{count}.json"
        with path.open("w") as file:
            file.write("[")
            for number in range(count):
                each: dict[str, Any] = {**CLAUDE[1], "uuid": f"c{number}", "name": "x" * 2000}
                file.write(("," if number else "") + json.dumps(each))
            file.write("]")
        tracemalloc.start()
        receipt = import_conversations(memory, claude(path), dry_run=True)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        assert receipt.conversations == count
    assert peaks[1] < peaks[0] * 1.5


def ours(*documents: dict[str, Any]) -> list[object]:
    """The lines of an export of ours."""
    return [{"kind": "export", "format": 1}, *documents, {"kind": "end"}]


def begun(thread_id: str, **beside: Any) -> dict[str, Any]:
    return {"kind": "conversation", "thread_id": thread_id, "agent_id": "default", **beside}


def line_of(text: str, **beside: Any) -> dict[str, Any]:
    """A message of an export of ours."""
    row = to_row(HumanMessage(text, id=beside.pop("id", text)))
    return {"kind": "message", **row, "created_at": AT.isoformat(), **beside}


NOTED: Final = {"kind": "edits", "edits": {"summary": {"text": "Of B", "by": "ana", "at": AT.isoformat()}}}


@pytest.mark.parametrize(
    "broken",
    [
        b'{"kind": "conversation", "thread_id": 7}', b'{"kind": "conversation", "thread_id": "b", "created_at": "x"}',
        b'{"kind": "conv', b"[]", b'{"kind": "sheep"}', b'{"said": 1}', b"\xff\xfe\xfd",
    ],
)  # fmt: skip
def test_what_follows_a_conversation_that_cannot_be_read_is_not_put_into_the_one_before(
    memory: SupabaseMemory, tmp_path: Path, broken: bytes
) -> None:
    documents = ours(begun("a"), line_of("Of A"), begun("b"), line_of("Of B"), NOTED, begun("c"), line_of("Of C"))
    path = tmp_path / "lines.jsonl"
    encoded = [json.dumps(each).encode() for each in documents]
    encoded[3] = broken
    path.write_bytes(b"\n".join(encoded) + b"\n")
    receipt = import_conversations(memory, jsonl(path), skip=True)
    assert [said(memory, thread) for thread in "abc"] == [[("human", "Of A")], [], [("human", "Of C")]]
    assert memory.conversation("a").board.read().edited_summary is None
    assert (receipt.stored, receipt.lost[ORPHANED]) == (2, (2, "line 5"))


def test_a_message_that_cannot_be_read_costs_itself_alone(memory: SupabaseMemory, tmp_path: Path) -> None:
    documents = ours(begun("a"), line_of("One"), line_of("Two"), line_of("Three"))
    path = tmp_path / "lines.jsonl"
    encoded = [json.dumps(each).encode() for each in documents]
    encoded[3] = encoded[3][:30]
    path.write_bytes(b"\n".join(encoded) + b"\n")
    import_conversations(memory, jsonl(path), skip=True)
    assert said(memory, "a") == [("human", "One"), ("human", "Three")]


def test_a_conversation_that_a_file_names_twice_loses_nothing(memory: SupabaseMemory, tmp_path: Path) -> None:
    path = lines(
        tmp_path,
        {"id": "7", "messages": [{"role": "system", "content": "Be kind"}, {"role": "user", "content": "One"}]},
        {"id": "7", "messages": [{"role": "system", "content": "Be kind"}, {"role": "user", "content": "Two"}]},
        {"id": "8", "conversations": [{"from": "human", "value": "One"}]},
        {"id": "8", "conversations": [{"from": "human", "value": "Two"}]},
    )
    import_conversations(memory, jsonl(path))
    assert said(memory, "7") == [("system", "Be kind"), ("human", "One"), ("human", "Two")]
    assert said(memory, "8") == [("human", "One"), ("human", "Two")]
    assert import_conversations(memory, jsonl(path)).stored == 0


def test_one_id_with_other_words_in_another_call_is_told(memory: SupabaseMemory) -> None:
    many = [
        SourceMessage(f"message {number}", HumanMessage(f"{number}", id=f"m{number}"), AT) for number in range(1000)
    ]
    events: list[Event] = [
        ThreadStart("t", "the thread"),
        *many,
        SourceMessage("message 1000", HumanMessage("Other words", id="m7"), AT),
    ]
    receipt = import_conversations(memory, events)
    assert (receipt.stored, receipt.known) == (1000, 1)
    assert receipt.lost == {"messages that are there already with other content, which stays": (1, "message 1000")}
    assert import_conversations(memory, [ThreadStart("t", "the thread"), *many]).lost == {}


def test_what_is_larger_than_the_database_takes_is_cut_as_little_as_it_must_and_told(
    memory: SupabaseMemory, tmp_path: Path
) -> None:
    long, other = "kiln " * 1_200_000, "glaze " * 900_000
    path = lines(tmp_path, *ours(begun("u"), line_of(other, id="m2")))
    large, small = SourceMessage("2", HumanMessage(long, id="m"), AT), SourceMessage("3", HumanMessage("x", id="n"), AT)
    found: list[tuple[Iterable[Event], str, str]] = [
        ([ThreadStart("t", "1"), large, small], "2", "t"), (jsonl(path), "line 3", "u"),
    ]  # fmt: skip
    for source, place, thread in found:
        receipt = import_conversations(memory, source)
        assert receipt.lost == {SMALLER: (1, place)}
        kept = stored(memory, thread)[0].text
        assert 1_950_000 < len(kept) < 2_097_152
        assert "left out: more than a message may have" in kept
    assert import_conversations(memory, jsonl(path), dry_run=True).lost == {SMALLER: (1, "line 3")}


def test_a_row_that_is_refused_costs_itself_alone(memory: SupabaseMemory, tmp_path: Path) -> None:
    rows = [line_of(f"{number}") for number in range(40)]
    rows[17] = {**rows[17], "characters": -5}
    rows[30] = {**rows[30], "payload": {"type": "human", "data": []}}
    refused = {"kind": "edits", "edits": {"items": [{"kind": "fact", "text": "", "state": "current"}]}}
    long = begun("x" * 600)
    path = lines(tmp_path, *ours(begun("a"), *rows, refused, long, line_of("Lost"), NOTED, begun("b"), line_of("Kept")))
    with pytest.raises(InvalidInputError) as raised:
        import_conversations(memory, jsonl(path))
    assert str(raised.value).startswith("line 20: ")
    assert "stored (17 messages)" in raised.value.hint
    assert len(said(memory, "a")) == 17

    receipt = import_conversations(memory, jsonl(path), skip=True)
    assert (receipt.stored, receipt.known) == (22, 17)
    assert [text for _, text in said(memory, "a")] == [str(n) for n in range(40) if n not in (17, 30)]
    assert said(memory, "b") == [("human", "Kept")]
    assert receipt.lost[ORPHANED] == (2, "line 45")
    assert {place for _, place in receipt.lost.values()} >= {"line 20", "line 33", "line 43", "line 44"}


def test_what_people_set_is_redacted_and_made_storable_on_its_way_in(
    conn_string: str, user_id: str, tmp_path: Path
) -> None:
    from langchain_supabase_memory import SECRETS

    key = "sk-proj-abcdefghijklmnopqrstuvwxyz012345678901"
    beside = {"by": "ana", "at": AT.isoformat()}
    item = {"kind": "fact", "text": f"The key is {key}", "quote": f"it is {key}\0", "state": "current", **beside}
    edits = {"kind": "edits", "edits": {"summary": {"text": f"About {key}", **beside}, "items": [item]}}
    path = lines(
        tmp_path,
        *ours(begun("t", title=f"My {key}\0", metadata={"k": key, "n\0": "\0"}), line_of("Hello"), edits),
    )
    with SupabaseMemory.from_conn_string(
        conn_string, user_id=user_id, config=MemoryConfig(recall=None), redactor=SECRETS
    ) as memory:
        assert import_conversations(memory, jsonl(path)).restored == 4
        conversation = memory.conversation("t")
        board, info = conversation.board.read(), conversation.info()
        assert info.title
        assert board.edited_summary
        assert board.items[0].quote
        assert info.metadata["n\ufffd"] == "\ufffd"
        assert key not in repr((info, board))


MALFORMED: Final[list[tuple[str, Callable[..., Iterator[Any]], Any]]] = [
    ("attachments", claude, claude_message("x", "human", "Lost", attachments=7)),
    ("files", claude, claude_message("x", "human", "Lost", files=7)),
    ("a kind", claude, claude_message("x", "assistant", "", content=[{"type": {}, "text": "Lost"}])),
    ("a parent", claude, claude_message("x", "human", "Kept too", parent_message_uuid=[1])),
    ("an attachment", chatgpt, node("x", "q0", "user", ["Lost"], attachments=7)),
]  # fmt: skip


@pytest.mark.parametrize(("source", "message"), [each[1:] for each in MALFORMED], ids=[each[0] for each in MALFORMED])
def test_a_message_of_another_form_costs_itself_alone(
    memory: SupabaseMemory, tmp_path: Path, source: Callable[..., Any], message: dict[str, Any]
) -> None:
    if source is claude:
        listed = [claude_message("q0", "human", "Before"), message, claude_message("q2", "human", "After")]
        documents: list[Any] = [{"uuid": "t", "chat_messages": listed}, {**CLAUDE[1], "uuid": "u"}]
    else:
        after = node("q2", "x", "user", ["After"])
        documents = [tree(node("q0", None, "user", ["Before"]), message, after, current="q2", conversation_id="t")]
        documents.append({**CHATGPT[1], "id": "u"})
    path = written(tmp_path, documents)
    receipt = import_conversations(memory, source(path), skip=True)
    assert [text for _, text in said(memory, "t") if text not in ("Kept too", "")] == ["Before", "After"]
    assert len(said(memory, "u")) == 2
    told = {place for what, (_, place) in receipt.lost.items() if what not in LOST_ANYWAY}
    assert told <= {"conversation 1, message 2"}
    assert told or len(said(memory, "t")) == 3


LOST_ANYWAY: Final = {UNTIMED, "messages of branches that were not shown last"}


def test_an_archive_that_cannot_be_read_is_named_and_one_with_folders_is_read(
    memory: SupabaseMemory, tmp_path: Path
) -> None:
    document = written(tmp_path, CLAUDE)
    archive, damaged = tmp_path / "export.zip", tmp_path / "damaged.zip"
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as made:
        made.write(document, "__MACOSX/conversations.json")
        made.write(document, "data-2025/conversations.json")
    assert import_conversations(memory, claude(archive)).conversations == 2
    whole = bytearray(archive.read_bytes())
    with zipfile.ZipFile(archive) as made:
        start = made.getinfo("data-2025/conversations.json").header_offset
    for name, places in {"damaged": range(start + 80, start + 90), "encrypted": [start + 6]}.items():
        data = bytearray(whole)
        for place in places:
            data[place] ^= 1 if name == "encrypted" else 0xFF
        if name == "encrypted":
            data[data.rindex(b"PK\x01\x02") + 8] ^= 1
        damaged.write_bytes(data)
        with pytest.raises(InvalidInputError, match="damaged or encrypted"):
            import_conversations(memory, claude(damaged), skip=True)
    damaged.write_bytes(whole[:-40])
    with pytest.raises(InvalidInputError, match="damaged or encrypted"):
        import_conversations(memory, claude(damaged))
    with zipfile.ZipFile(damaged, "w") as made:
        made.write(document, "other.json")
    with pytest.raises(InvalidInputError, match=r"holds no conversations\.json"):
        import_conversations(memory, claude(damaged))


@pytest.mark.parametrize("wrapped", [False, True], ids=["one object", "a list"])
def test_a_conversation_of_any_size_is_refused_before_it_fills_the_memory(
    memory: SupabaseMemory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wrapped: bool
) -> None:
    monkeypatch.setattr(file_reader, "LONGEST", 2**20)
    monkeypatch.setattr(file_reader, "MAX_VALUES", 10_000)
    path = tmp_path / "conversations.json"
    small = json.dumps(CLAUDE[1])
    for filling in ('"' + "x" * 2**21 + '"', "[" + "0," * 20_000 + "0]"):
        large = small[:-1] + f', "more": {filling}}}'
        path.write_text(f"[{small}, {large}]" if wrapped else large)
        with pytest.raises(InvalidInputError, match="A conversation has more than 1 MiB"):
            import_conversations(memory, claude(path), dry_run=True)
    path.write_text("[" + ",".join([small] * 3000) + "]")  # each for itself is small
    assert import_conversations(memory, claude(path), dry_run=True).conversations == 3000


@pytest.mark.parametrize(("name", "source"), [("a.jsonl", jsonl), ("a.jsonl", mem0), ("a.json", mem0)])
def test_a_document_of_many_small_values_is_refused_before_it_is_parsed(
    memory: SupabaseMemory,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    source: Callable[[Path], Iterator[Event]],
) -> None:
    monkeypatch.setattr(file_reader, "MAX_VALUES", 10_000)
    monkeypatch.delattr(documents, "loads")
    path = tmp_path / name
    for filling in ("[]", "{}", '""', "0"):
        path.write_text("[" + f"{filling}," * 10_001 + "0]")
        with pytest.raises(InvalidInputError, match="has more than 10,000 values"):
            import_conversations(memory, source(path), dry_run=True)


def test_signs_within_texts_are_no_values(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_reader, "MAX_VALUES", 10_000)
    for text in ("[{, " * 10_000, '\\",[' * 10_000, '"' * 10_000 + ",{["):
        file_reader.check_values(json.dumps({"a": text, "b": [text]}).encode(), "It", "")
    file_reader.check_values(b'["' + b"[{," * 10_000, "It", "")  # the text has no end
    file_reader.check_values(b'["' + b'\\"' * 100_000 + b"," * 10_001, "It", "")


def test_a_file_is_read_from_the_standard_input(
    memory: SupabaseMemory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines, archive = tmp_path / "lines.jsonl", tmp_path / "archive.zip"
    lines.write_text(json.dumps({"thread_id": "t", "messages": [{"role": "user", "content": "Hello"}]}) + "\n")
    with zipfile.ZipFile(archive, "w") as made:
        made.writestr("conversations.json", json.dumps(CLAUDE))
    expected = import_conversations(memory, claude(archive), dry_run=True).messages

    def read_from(file: Path, source: Callable[[str], Iterator[Event]]) -> int:
        with file.open() as stream:
            monkeypatch.setattr(sys, "stdin", stream)
            return import_conversations(memory, source("-"), dry_run=True).messages

    assert read_from(lines, jsonl) == 1
    assert read_from(archive, claude) == expected
    reader, writer = os.pipe()
    os.write(writer, archive.read_bytes()[:4096])
    os.close(writer)
    with os.fdopen(reader) as stream, pytest.raises(InvalidInputError, match="An archive cannot be read from a pipe"):
        monkeypatch.setattr(sys, "stdin", stream)
        import_conversations(memory, claude("-"), dry_run=True)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
@pytest.mark.parametrize("sign", ["x", "記", "\N{GRINNING FACE}", "\n"], ids=["ascii", "chinese", "emoji", "escapes"])
def test_a_long_text_is_parsed_from_its_beginning_a_few_times(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, encoding: str, sign: str
) -> None:
    path = tmp_path / "conversations.json"
    length = 8_000_000 // len(json.dumps(sign, ensure_ascii=False).encode())
    path.write_text(json.dumps([{"text": sign * length}], ensure_ascii=False), encoding=encoding)
    held: list[int] = []
    read = file_reader._SizeLimitedFile.read

    def counted(self: Any, size: int = -1) -> bytes:
        found = read(self, size)
        held.append(self._bytes)  # what a parser looks at anew, for the text goes on
        return found

    monkeypatch.setattr(file_reader._SizeLimitedFile, "read", counted)
    [(_, found)] = file_reader.conversations(path, None, "conversations.json")
    assert found == {"text": sign * length}
    assert sum(held) <= 5 * max(held)


@pytest.mark.slow
def test_memory_does_not_grow_with_what_is_imported_and_exported(memory: SupabaseMemory, tmp_path: Path) -> None:
    def talks(count: int) -> Iterator[Event]:
        for number in range(count):
            yield ThreadStart(f"{count}-{number}", f"conversation {number}")
            for place in range(4):
                yield SourceMessage(
                    f"message {place}", HumanMessage(f"{number} {place} " + "kiln " * 400, id=f"m{place}"), AT
                )

    imports, exports = [], []
    for count in (300, 1500):  # 2.5 MB and 12 MB
        tracemalloc.start()
        assert import_conversations(memory, talks(count), agent_id=f"of {count}").stored == 4 * count
        imports.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.reset_peak()
        with (tmp_path / "all.jsonl").open("wb") as file:
            told = export_conversations(memory, file, agent_id=f"of {count}")
        assert (told.conversations, told.messages) == (count, 4 * count)
        exports.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert imports[1] < imports[0] * 1.5
    assert exports[1] < exports[0] * 1.5
