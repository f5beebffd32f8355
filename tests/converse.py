"""A long conversation in SQL only: every function `public.memory_*` at least once, with every kind of result.

It does what a client in another language does: documents in, documents out. The database has spaces switched on.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import psycopg
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from psycopg.types.json import Json

from langchain_supabase_memory.language.messages.codec import to_row

VECTORS = ([1.0, 0.0, 0.0], [0.6, 0.8, 0.0], [0.0, 0.0, 1.0])
"""Unit vectors."""

IMAGE = {"type": "image", "url": "https://example.com/kiln.png"}
SAID = [
    HumanMessage("My kiln shows E-47. What is that?", id="m0"),
    AIMessage("That is the thermocouple. Please replace it.", id="m1"),
    HumanMessage([{"type": "text", "text": "Here is a photo. My budget is 40 euros."}, IMAGE], id="m2"),
    AIMessage("", id="m3", tool_calls=[{"name": "look_up", "args": {"part": "K"}, "id": "c1"}]),
    ToolMessage("A type K thermocouple costs 25 euros.", id="m4", tool_call_id="c1"),
    AIMessage("A type K for 25 euros fits.", id="m5"),
    HumanMessage("Remind me to order it. My sister Ana is allergic to peanuts.", id="m6"),
    AIMessage("I will. Noted.", id="m7"),
]


@dataclass
class Caller:
    """Calls functions by name, for one owner by default, and records every answer.

    Attributes:
        connection: A connection to a migrated database, with access to all functions.
        user_id: The owner.
        answers: Every answer, by function.
    """

    connection: psycopg.Connection[Any]
    user_id: str
    answers: dict[str, list[Any]] = field(default_factory=dict)
    _owned: dict[str, bool] = field(default_factory=dict)

    def __call__(self, name: str, /, **arguments: Any) -> Any:
        """Call `memory_<name>` with `p_<argument>` for each argument."""
        given = {f"p_{each}": value for each, value in arguments.items()}
        if "p_user_id" not in given and self._takes_a_user(name):
            given["p_user_id"] = self.user_id
        passed = [Json(value) if isinstance(value, (dict, list)) else value for value in given.values()]
        call = f"select public.memory_{name}({', '.join(f'{each} => %s' for each in given)})"
        answer = self.connection.execute(call.encode(), passed).fetchall()[0][0]
        self.answers.setdefault(f"memory_{name}", []).append(answer)
        return answer

    def _takes_a_user(self, name: str) -> bool:
        if name not in self._owned:
            query = "select 'p_user_id' = any (p.proargnames) from pg_proc p where p.proname = %s"
            self._owned[name] = self.connection.execute(query, [f"memory_{name}"]).fetchall() == [(True,)]
        return self._owned[name]


def rows(messages: list[BaseMessage], **beside: Any) -> list[dict[str, Any]]:
    """Return messages as rows for `memory_append`."""
    return [{**to_row(message), **beside} for message in messages]


def converse(call: Caller) -> None:
    """Run all parts, in an order that satisfies their dependencies."""
    part: Callable[[Caller], None]
    for part in (
        _store_and_read, _branch, _summarize, _complete, _index, _keep_a_board, _context, _control, _take_along, _use_the_store,
        _work, _give_up, _roll_out, _change_a_fact, _know, _topics, _count, _move_to_long_term, _share, _forget,
    ):  # fmt: skip
        part(call)


def _store_and_read(call: Caller) -> None:
    call("schema")
    call("limits")
    call("append", thread_id="studio", messages=rows(SAID, metadata={"mood": "calm"}))
    call("append", thread_id="studio", messages=[])
    call("append", thread_id="studio", messages=rows([AIMessage("I will. It is noted.", id="m7")]))
    call("append", thread_id="garden", messages=rows([HumanMessage("Nothing yet.", id="g0")]), agent_id="gardener")
    columns = ["message_id", "role", "text", "characters", "tokens", "created_at", "updated_at", "metadata", "images",
               "payload", "unreadable"]  # fmt: skip
    assert len(call("read", thread_id="studio", columns=columns)["messages"]) == len(SAID)
    call("read", thread_id="studio", last=2)
    call("read", thread_id="nowhere")
    found = call("find", texts=["e-47"], around=1)
    assert [each["message"]["message_id"] for each in found["found"]] == ["m0"]
    assert call("find", texts=["the"], limit=1, order="oldest", around=1)["after"]
    call("read", thread_id="studio", display=True)
    first = call("conversations", limit=1)
    assert call("conversations", limit=1, after=first["after"])["before"]
    call("update", thread_id="garden", agent_id="gardener", title="Bulbs", metadata={"color": "green"})
    assert call("count", thread_id="studio") == len(SAID)
    assert len(call("turns", thread_id="studio", last=5)["turns"]) == 3
    call("append", thread_id="broken", messages=rows([HumanMessage("Odd.", id="o0"), HumanMessage("Even.", id="o1")]))
    assert call("set_aside", thread_id="broken", rows=[{"sequence": 0, "reason": "ValueError"}]) == [0]
    assert len(call("unreadable")) == 1
    call("coverage", thread_id="broken")


def _branch(call: Caller) -> None:
    state = {"token": "t1", "expected": None, "after": None, "ids": ["b0", "b1", "b2"], "database": None}
    said = [HumanMessage("One.", id="b0"), AIMessage("Two.", id="b1"), HumanMessage("Three.", id="b2")]
    first = call("append", thread_id="graph", messages=rows(said, metadata={"via": "graph"}), branch=state)
    owner, database = first["owner"], first["database"]
    assert call("context", thread_id="graph", branch_ids=["b0"])["superseded"] == [1, 2]
    assert call("context", thread_id="graph", branch_ids=["b0", "b1", "b2"])["superseded"] == []
    left = {**state, "token": "t2", "expected": "t1", "ids": ["b0"], "owner": owner, "database": database}
    assert call("append", thread_id="graph", messages=[], branch=left)["lacking"] == ["b2", "b1"]
    call("append", thread_id="graph", messages=[], branch={**left, "removed": ["b1", "b2"]})
    assert call("coverage", thread_id="graph")["superseded"] == [[1, 2]]
    assert call("reinstate", thread_id="graph", message_ids=["b1"]) == [1]
    (left,) = call("read", thread_id="graph", superseded=True, columns=["text", "parent"])["messages"]
    assert left["parent"] is None
    moved = call(
        "append",
        thread_id="graph",
        messages=rows(said),
        branch={**left, "token": "t9", "expected": "t0", "after": "b0"},
    )
    assert moved["moved"]
    for name in ("owner", "database"):
        assert call("append", thread_id="graph", messages=[], branch={**left, name: "another"})["foreign"] == name
    said = [HumanMessage("Wait.", id="r0")]
    on_server = {**state, "token": "r1", "ids": ["r0"], "run": "run-1"}
    call("append", thread_id="graph", messages=rows(said, metadata={"via": "graph", "run": "run-1"}), branch=on_server)
    after = {**on_server, "token": "r2", "ids": ["r1"], "run": "run-2"}
    assert call("append", thread_id="graph", messages=[], branch=after)["unfinished"] == "run-1"
    call("append", thread_id="graph", messages=[], branch={**after, "ended": "run-1"})
    strange = {"token": "t3", "ids": ["y0", "z0"], "resent": ["y0"]}
    new = rows([HumanMessage("Who?", id="z0")])
    assert call("append", thread_id="graph", messages=new, branch=strange)["unfamiliar"]
    again = rows([HumanMessage("And then?", id="b3"), AIMessage("Three again.", id="b0")])
    assert call("append", thread_id="graph", messages=again)["repeated"] == ["b0"]


def _summarize(call: Caller) -> None:
    assert call("due", messages=3, user_id=call.user_id)
    call("opt_out", by="maya", topic="peanuts")
    assert call("pending", thread_id="nowhere") is None
    for until in (1, 5):
        pending = call("pending", thread_id="studio", until=until)
        assert pending["topics"] == ["peanuts"]
        commit = {**_read(pending), "content": "The kiln shows E-47.", "tokens": 8, "model": "m", "quality": 0.5}
        assert call("commit_summary", thread_id="studio", **commit)["committed"]
    assert not call("commit_summary", thread_id="studio", **commit | {"content": "Late."})["committed"]
    call("fail_summary", thread_id="broken", error="Timeout")
    call("opt_in", by="maya", topic="peanuts")
    page = call("unembedded_summaries", model="words", limit=1)
    (stands,) = page["summaries"]
    place = {"after_user": page["after"]["user"], "after": page["after"]["id"]}
    assert call("unembedded_summaries", model="words", **place) == {"summaries": [], "after": None}
    named = {name: stands[name] for name in ("user_id", "conversation_id", "level", "number", "id")}
    assert call("embed_summaries", model="words", vectors=[{**named, "embedding": VECTORS[0]}])
    asked = {"query": "E-47", "vector": VECTORS[0], "model": "words"}
    assert call("recall_summaries", **asked)[0]["similarity"] == 1
    edit = {"action": "edit", "by": "maya", "number": 2, "text": "A thermocouple is needed.", "tokens": 6}
    call("edit_summary", thread_id="studio", **edit)


def _read(pending: Any) -> dict[str, Any]:
    """Return a commit's fields for what it was computed from."""
    return {
        "conversation_id": pending["conversation_id"],
        "through": pending["through_sequence"],
        "revision": pending["revision"],
        "to": pending["messages"][-1]["sequence"],
        "message_ids": [each["message_id"] for each in pending["messages"]],
    }


def _complete(call: Caller) -> None:
    for until in (3, 7):
        pending = call("pending", thread_id="studio", until=until, level=1)
        commit = {**_read(pending), "content": "A kiln and a sister.", "tokens": 6, "level": 1}
        assert call("commit_summary", thread_id="studio", **commit)["committed"]
    parts = [each["id"] for each in call("summaries", thread_id="studio", level=1)]
    above = {"conversation_id": pending["conversation_id"], "revision": pending["revision"], "level": 2, "parts": parts}
    assert call("commit_parent", thread_id="studio", **above, content="About a kiln.", tokens=4)["committed"]
    (whole,) = call("summaries", thread_id="studio", level=None)
    facts = [{"text": "The budget is 40 euros.", "quote": "My budget is 40 euros", "message_ids": ["m2"]}]
    about = {"id": whole["id"], "topics": ["kiln"], "key_facts": facts, "revision": pending["revision"]}
    assert call("describe_summary", thread_id="studio", **about)["described"]
    call("summaries", thread_id="studio", level=None)
    call("summaries", thread_id="studio")
    assert call("coverage", thread_id="studio")["levels"]
    assert call("coverage", thread_id="nowhere") is None


def _index(call: Caller) -> None:
    assert call("index_due", user_id=call.user_id)
    pending = call("pending_chunks", thread_id="studio", model="words")
    made = [_chunk(place, each, VECTORS[place % 3]) for place, each in enumerate(pending["messages"])]
    made[0] |= {"type": "question", "signals": 20, "quotes": ["[0,3)", "[4,8)"], "tone": -25}
    commit = {**_read(pending), "chunks": made, "model": "words"}
    del commit["message_ids"]
    assert call("commit_chunks", thread_id="studio", **commit)["committed"]
    call("fail_index", thread_id="broken", error="Timeout")
    assert call("pending_chunks", thread_id="nowhere") is None
    pending = call("pending_chunks", thread_id="studio", model="words")
    assert len(pending["before"]["near"]) == 2
    signals = call("signals", thread_id="studio")["signals"]
    if call.user_id.startswith("space:"):
        assert pending["speech"] is None
        assert signals == []
    else:
        assert [each["speaker"] for each in pending["speech"]["asked"]] == ["Maya"]
        assert signals[0]["quotes"] == [made[0]["content"][:3], made[0]["content"][4:8]]
        assert [each["signals"] for each in call("conversations", signals=4)["conversations"]] == [20]
    ask = {"query": "thermocouple", "vectors": [{"names": [], "vector": VECTORS[0]}], "model": "words", "neighbors": 1,
           "limit": 2}  # fmt: skip
    call("recall", ask={**ask, "more": [{"query": "kiln"}], "pool": 2}, thread_id="studio")
    found = call("recall", ask=ask, thread_id="studio")
    assert any(each["before"] for each in found["chunks"])
    assert any(each["after"] for each in found["chunks"])
    (first, *_) = call("chunks", thread_id="studio")["chunks"]
    call("rate_chunk", chunk_id=first["id"], importance=0.9, by="maya")
    again = {name: first[name] for name in ("id", "place", "part")} | {"embedding": VECTORS[1]}
    call("reembed", thread_id="studio", model="other", embeddings=[again])
    call("append", thread_id="studio", messages=rows([AIMessage("That is the K thermocouple.", id="m1")]))
    (stale,) = call("pending_chunks", thread_id="studio", model="words")["stale"]
    assert stale["messages"]


def _chunk(place: int, message: Any, vector: list[float]) -> dict[str, Any]:
    data = message["payload"]["data"]
    said = data["content"] if isinstance(data["content"], str) else data["content"][0]["text"]
    return {
        "place": place, "part": 1, "id": str(uuid.uuid4()),
        "from_sequence": message["sequence"], "to_sequence": message["sequence"], "message_ids": [message["message_id"]],
        "stretch": 0, "type": "fact", "role": "user", "speaker": "Maya", "said_at": message["created_at"],
        "content": said or "look up", "tokens": 9, "importance": 0.8, "cohesion": None, "has_time": False,
        "has_number": True, "told": ["[-1,0)"], "embedding": vector,
    }  # fmt: skip


def _keep_a_board(call: Caller) -> None:
    assert call("pending_board", thread_id="nowhere") is None
    assert call("board", thread_id="nowhere") is None
    pending = call("pending_board", thread_id="studio", messages=4)
    action = "00000000-0000-4000-8000-00000000a000"
    items = [
        {"kind": "fact", "text": "The budget is 40 euros.", "state": "current", "quote": "My budget is 40 euros",
         "sequence": 2},
        {"id": action, "kind": "action", "text": "Replace the thermocouple.", "state": "open", "sequence": 1},
    ]  # fmt: skip
    commit = {"summary": "A kiln shows E-47.", "context_notes": "", "tokens": 6, "quality": 0.7}
    assert call("commit_board", thread_id="studio", **_read(pending), **commit, items=items)["added"] == 2
    assert not call("commit_board", thread_id="studio", **_read(pending), **commit | {"summary": "Late."})["committed"]
    pending = call("pending_board", thread_id="studio")
    closed = [{"id": action, "state": "done", "sequence": 7}]
    assert call("commit_board", thread_id="studio", **_read(pending), **commit, closed=closed)["changed"] == 1
    fact = next(each for each in call("board", thread_id="studio")["items"] if each["kind"] == "fact")
    edit = {"thread_id": "studio", "by": "maya"}
    added = call("edit_board", **edit, action="add", kind="question", text="Which kiln?", state="open")
    call("edit_board", **edit, action="add", kind="question", text="Which kiln?", state="open")
    call("edit_board", **edit, action="pin", item_id=added["item_id"])
    call("edit_board", **edit, action="summary", text="E-47, to be repaired.")
    call("board", thread_id="studio", history=True)
    call("edit_board", **edit, action="delete", item_id=fact["id"])
    call("edit_board", **edit, action="regenerate")
    assert call("pending_board", thread_id="studio")["hidden"]


def _context(call: Caller) -> None:
    ask = {"query": "thermocouple", "scope": "conversation"}
    pending = call("pending", thread_id="studio", until=3)
    call("commit_summary", thread_id="studio", **_read(pending), content="The kiln shows E-47.", tokens=8)
    call("append", thread_id="studio", messages=rows([SystemMessage("Be brief.", id="m8")]))
    asked_for = {"characters": 60, "messages": 1, "recall": ask, "board": 10}
    asked = call("context", thread_id="studio", **asked_for)
    assert asked["asked"]["sequence"] == 6
    assert asked["recalled"]["chunks"]
    assert asked["board"]["items"]
    assert asked["segments"]
    both = call("append_context", thread_id="studio", messages=rows([HumanMessage("Now?", id="m9")]), context=asked_for)
    assert both["stored"]["appended"] == 1
    assert both["context"]["messages"][-1]["sequence"] == both["stored"]["sequences"][0]
    assert call("context", thread_id="nowhere") is None
    recalled = {"recalled": call("recall", ask=ask), "shared": None, "profile": None, "asked_by": None}
    assert call("context", thread_id="nowhere", recall={**ask, "scope": "user"}) == recalled
    given = {"spaces": ["space:00000000-0000-4000-8000-000000000000"], "agents": ["default"], "items": 5}
    refused, board = call("context", thread_id="nowhere", shared=given)["shared"]
    assert (refused["is_refused"], refused["items"], board["is_refused"]) == (True, None, False)
    assert board["items"]


def _control(call: Caller) -> None:
    call("opt_out", by="maya", thread_id="garden", agent_id="gardener")
    assert call("pending_chunks", thread_id="garden", agent_id="gardener")["opted_out"]
    call("opt_out", by="maya", topic="taxes")
    assert len(call("opt_outs")) == 2
    call("opt_in", by="maya", thread_id="garden", agent_id="gardener")
    assert len(call("control_changes")) > 3


def _take_along(call: Caller) -> None:
    assert call("edits", thread_id="nowhere") is None
    call("append", thread_id="moved", messages=rows([HumanMessage("My kiln is blue.", id="k0")]))
    other = rows([HumanMessage("My kiln is green.", id="k0")])
    assert call("append", thread_id="moved", messages=other, replace=False)["different"] == ["k0"]
    pending = call("pending", thread_id="moved", until=0)
    call("commit_summary", thread_id="moved", **_read(pending), content="A kiln.", tokens=2, model="words")
    call("edit_summary", thread_id="moved", action="edit", by="maya", number=1, text="A blue kiln.", tokens=3)
    call("update", thread_id="moved", title="A kiln", metadata={"color": "blue"})
    call("opt_out", thread_id="moved", topic="rent", by="maya")
    fact = {"kind": "fact", "text": "The kiln is blue.", "state": "current"}
    added = call("edit_board", thread_id="moved", by="maya", action="add", **fact)
    call("edit_board", thread_id="moved", by="maya", action="pin", item_id=added["item_id"])
    assert call("restore", thread_id="begun", edits={"title": "A glaze"})["restored"] == 1
    taken = call("export", conversations=[{"thread_id": "moved"}, {"thread_id": "nowhere"}])
    assert [each["edits"] is None for each in taken] == [False, True]
    brought = {"thread_id": "brought", "before": {"opt_outs": []}, "messages": other, "edits": {"title": "A kiln"}}
    done = call("import", conversations=[brought, {"messages": other}])
    assert [each.get("appended") for each in done] == [1, None]
    for thread in ("studio", "moved"):
        edits = call("edits", thread_id=thread)
        call("append", thread_id=f"{thread} 2", messages=rows([HumanMessage("My kiln is blue.", id="k0")]))
        assert call("restore", thread_id=f"{thread} 2", edits=edits)["restored"]


def _use_the_store(call: Caller) -> None:
    item = {"namespace": ["maya", "kilns"], "key": "k1"}
    found = {"field": "$", "vector": VECTORS[0]}
    put = {"op": "put", **item, "value": {"kind": "gas"}, "index": None, "ttl": 5, "model": "words", "vectors": [found]}
    call("store", ops=[put, {**put, "key": "k2", "ttl": None, "vectors": None}])
    ops = [
        {"op": "get", **item, "refresh": True},
        {"op": "search", "prefix": ["maya"], "query": "gas", "vector": VECTORS[0], "model": "words", "limit": 5,
         "filter": {"fields": {"kind": {"all": [["$eq", "gas"]]}}}},
        {"op": "list", "conditions": [{"type": "prefix", "path": ["*", "kilns"]}], "depth": 1},
        {"op": "delete", **item, "key": "k3"},
    ]  # fmt: skip
    got, searched, listed, gone = call("store", ops=ops)
    assert got["key"] == "k1"
    assert len(searched) == 2
    assert (listed, gone) == ([["maya"]], None)
    call.connection.execute("update memory.store_items set expires_at = now() - interval '1 s' where key = 'k1'")
    assert call("store_sweep", limit=1) == {"items": 1, "after": call.user_id}
    page = call("store_reindex", model="words", dimensions=3, limit=1)
    vectors = [{**page["items"][0], "vectors": [found]}]
    assert call("store_reindex", model="words", dimensions=3, items=vectors, after=page["after"])["indexed"] == 1


def _change_a_fact(call: Caller) -> None:
    """A fact is said twice, and then another one holds."""
    said = ["I live in Riga.", "I live in Riga.", "I live in Oslo."]
    call("append", thread_id="home", messages=rows([HumanMessage(text, id=f"h{n}") for n, text in enumerate(said)]))
    pending = call("pending_chunks", thread_id="home")
    made = [{**_chunk(place, each, VECTORS[0]), "embedding": None} for place, each in enumerate(pending["messages"])]
    commit = {**_read(pending), "chunks": made}
    del commit["message_ids"]
    call("commit_chunks", thread_id="home", **commit)
    riga, oslo = (f"00000000-0000-4000-8000-00000000b00{number}" for number in (0, 1))
    items = [
        {"id": riga, "kind": "fact", "text": said[0], "state": "current", "sequence": 0},
        {"id": oslo, "kind": "fact", "text": said[2], "state": "current", "sequence": 2, "replaces": riga},
    ]
    beside = {"summary": "", "context_notes": "", "tokens": 0, "quality": None}
    call("commit_board", thread_id="home", **_read(call("pending_board", thread_id="home")), **beside, items=items)
    found = call("recall", ask={"query": "Riga"}, thread_id="home")
    assert [each["count"] for each in found["repeats"]] == [2]
    assert [each["text"] for each in found["newer"]] in ([said[2]], [])


def _work(call: Caller) -> None:
    call("append", thread_id="market", messages=rows([HumanMessage("I sell cups on Sundays.", id="k0")]))
    call("request", thread_id="studio", priority=1)
    call("request", thread_id="nowhere")
    call("status", thread_id="studio")
    first, second = call("worker_claim", worker="w1", limit=2, settle_seconds=0)
    lease = {name: first[name] for name in ("user_id", "conversation_id", "token")}
    assert call("worker_heartbeat", leases=[lease]) == [first["token"]]
    drafted = {**lease, "position": first["position"], "digest": "d", "answer": "A kiln."}
    assert call("worker_keep_draft", **drafted)["kept"]
    call("status", state="running")
    call("worker_release", leases=[{name: second[name] for name in lease}])
    ended = {**lease, "position": first["position"]}
    failed = {"error": "Timeout", "failed": {"summary": "Timeout"}}
    assert call("worker_finish", **ended, **failed, retry_seconds=0)["outcome"] == "retry"
    assert call("worker_finish", **ended)["outcome"] == "lost"
    call("status")
    again = next(each for each in call("worker_claim", worker="w2", limit=9, settle_seconds=0) if each["drafts"])
    assert again["conversation_id"] == first["conversation_id"]
    served = {name: again[name] for name in ("user_id", "conversation_id", "token", "position")}
    assert call("worker_finish", **served, served=True)["outcome"] == "done"
    call("worker_queue")


def _give_up(call: Caller) -> None:
    call("append", thread_id="studio", messages=rows([HumanMessage("And now?", id="m9")]))
    (claimed,) = call("worker_claim", worker="w1", limit=9, settle_seconds=0)
    ended = {name: claimed[name] for name in ("user_id", "conversation_id", "token", "position")}
    assert call("worker_finish", **ended, error="Timeout", max_attempts=1)["outcome"] == "dead"
    call("worker_queue")
    assert call("worker_users")["users"] or call.user_id.startswith("space:")  # a space is no user
    call("worker_users", limit=1)
    call("worker_users", prefix="nobody")
    assert call("worker_revive")["revived"] == 1
    assert call("worker_doctor")["heartbeat_at"] is None
    assert call("worker_chore", name="expire", every_seconds=60)["mine"]
    call("worker_doctor", model="words")
    call("worker_rederive")
    page = call("worker_rederive", limit=1, after_user="", after="00000000-0000-0000-0000-000000000000")
    assert page["after"]
    assert call("worker_idle", seconds=0)
    assert call("worker_archive", thread_id="market", next_sequence=1)["archived"]
    call("status")


def _roll_out(call: Caller) -> None:
    assert call("rollout", agent_id="nobody") is None
    call("worker_set_rollout", stage="25", by="ops", share=0.5)
    call("rollout")
    call("worker_rollouts")
    old = {"stage": "25", "old_messages": 9, "old_tokens": 90, "old_characters": 400, "old_ms": 1.5, "only_old": 1}
    new = {"new_messages": 5, "new_tokens": 50, "new_characters": 200, "new_ms": 2.5, "shared": 4, "only_new": 1,
           "omitted": 0}  # fmt: skip
    call("compare", thread_id="studio", comparison=old | new, only_old=["m0"], through=5)
    call("compare", thread_id="studio", comparison=old | {"error": "Timeout"})
    assert not call("compare", thread_id="nowhere", comparison=old)["recorded"]
    stood = [[0, 1, 0, 900, 80, 0, 0, 60, 0, 1, 9, 3], [1, 0, 0, 1, 9, 3, 0, 0, 1], [1, 2, 3, 1, 9, 3, 0, 9999, -1]]
    for each in ("s1", "s2"):
        call("append", thread_id="studio", messages=rows([AIMessage("Cone 6.", id=each)]), manifest=stood)
    chunk = call("chunks", thread_id="studio", limit=1)["chunks"][0]
    place = [[chunk["from_sequence"], chunk["to_sequence"], chunk["part"]]]
    segment = call("summaries", thread_id="studio")[-1]["number"]
    turn = call("turns", thread_id="studio", last=1)["turns"][0]["from_sequence"]
    named: dict[str, Any] = {"segment": segment, "version": 1, "passages": place, "turn": turn}
    made = call("prompt", thread_id="studio", messages=[[0, 3]], at="2026-01-01T00:00:00Z", **named)
    assert made["segment"] is not None
    assert made["board"] is not None
    assert made["turn"] is not None
    assert call("prompt", thread_id="graph", messages=[[0, 3]])["superseded"]
    assert call("prompt", thread_id="nowhere") is None
    page = call("manifests", thread_id="studio", limit=1)
    assert call("manifests", thread_id="studio", after=page["after"], **{"from": 0, "to": 99})["manifests"]
    call("comparisons", thread_id="studio")
    call("comparison_report", user_id=call.user_id)


def _share(call: Caller) -> None:
    space = call("create_space", name="Studio", about="The kiln and who fires it.", retention={"turns": 100})[
        "space_id"
    ]
    assert [each["role"] for each in call("spaces")] == ["manager"]
    assert call("update_space", space=space, name="The studio", retention={"turns": 50})["retention"] == {"turns": 50}
    call("update_space", space=space, retention={}, user_id=None)
    invitation = call("invite", space=space, role="contributor", uses=2)
    assert call("join", token=invitation["token"], user_id="bo")["role"] == "contributor"
    call("set_member", space=space, member="bo", role="reader")
    assert call("name_member", space=space, name="Bo", member="bo")["name"] == "Bo"
    call("append", user_id=space, thread_id="standup", messages=rows([HumanMessage("Done.", id="d0")]), author_id="bo")
    (found,) = call("read", user_id=space, thread_id="standup", columns=["author_id", "author_name"])["messages"]
    assert (found["author_id"], found["author_name"]) == ("bo", "Bo")
    assert len(call("space", space=space)["members"]) == 2
    assert call("context", user_id=space, thread_id="standup", author_id="bo")["asked_by"] == "Bo"
    call(
        "append",
        thread_id="quoted",
        messages=rows([HumanMessage("We fire at nine.", id="q0"), HumanMessage("Ok.", id="q1")]),
    )
    quoted = {"thread_id": "quoted", "message_id": "q0", "quote": "We fire at nine.", "kind": "action", "space": space}
    item = call("contribute", **quoted)
    assert [each["contributed_by"] for each in call("board", user_id=space, thread_id="board")["items"]] == [
        call.user_id
    ]
    assert len(call("held")["contributions"]) == 1
    assert call("withdraw", space=space, item_id=item["item_id"])["item_id"] == item["item_id"]
    call("contribute", **quoted)
    assert call("forget_message", thread_id="quoted", message_id="q0")["contributions"] == 1
    call("contribute", **quoted | {"message_id": "q1", "quote": "Ok."})
    call("space", space=space, user_id=None)
    call("space", space=space, user_id="bo")
    call("invite", space=space, role=None)
    call("set_member", space=space, member="bo", role=None)
    call("forget_space", space=space, dry_run=True)
    assert call("forget_space", space=space)["messages"] == 1


def _know(call: Caller) -> None:
    """What the user says of themself is read with the board, and seen, changed and refused by them."""
    if call.user_id.startswith("space:"):
        return  # it has none
    said: list[BaseMessage] = [
        HumanMessage("From now on call me Maya.", id="p0"),
        HumanMessage("No, call me May.", id="p1"),
    ]
    call("append", thread_id="me", messages=rows(said))
    name = {"kind": "instruction", "subject": "name", "durable": True}
    found: list[dict[str, Any]] = [
        {**name, "value": "Maya", "sequence": 0, "quote": "call me Maya"},
        {**name, "value": "May", "corrects": True, "polarity": 1, "sequence": 1, "quote": "call me May"},
        {**name, "value": "Ben", "sequence": 1, "quote": "call me Ben"},
    ]
    beside = {"summary": "", "context_notes": "", "tokens": 0, "quality": None, "profile": found}
    call("commit_board", thread_id="me", **_read(call("pending_board", thread_id="me")), **beside)
    (held,) = call("profile")["items"]
    assert held["value"] == "May"
    (shown,) = call("context", thread_id="me", profile=10)["profile"]
    assert (shown["id"], shown["value"], shown["before"]) == (held["id"], "May", "Maya")
    assert call("profile", limit=1, states=["held", "superseded"])["after"]
    assert call("profile", item_id=held["id"])["items"]
    made = call(
        "edit_profile", action="remember", item={"kind": "fact", "value": "Has a kiln.", "condition": "at home"}
    )
    made = call("edit_profile", action="correct", id=made["item_id"], item={"value": "Has two kilns."}, by="maya")
    for action in ("pin", "confirm", "delete"):
        call("edit_profile", action=action, id=made["item_id"])
    call("consent", purpose="tone", allowed=False, by="maya")
    assert call("consents")
    (gone,) = call("profile", states=["deleted"])["items"]
    assert call("restore", edits={"profile": [gone], "consents": call("consents")}) == {"restored": 0, "refused": 0}


def _topics(call: Caller) -> None:
    """What is talked about is found, by words and by vectors, and a person makes something of it."""
    members = []
    for thread, text in (("clay", "The porcelain cracked in the kiln."), ("rye", "The sourdough needs more rye.")):
        call("append", thread_id=thread, messages=rows([HumanMessage(text)]))
        pending = call("pending_chunks", thread_id=thread, model="words")
        made = [_chunk(0, pending["messages"][0], [0.0, 0.0, -1.0])]
        commit = {**_read(pending), "chunks": made, "model": "words"}
        del commit["message_ids"]
        assert call("commit_chunks", thread_id=thread, **commit)["committed"]
        members.append([pending["conversation_id"], 0])
    assert call("worker_topics", limit=1)["after"]
    for key in call("worker_topics")["conversations"]:
        call("assign_topics", thread_id=key["thread_id"], agent_id=key["agent_id"], model="words")
    assert call("worker_topics")["after"] is None
    assert call("assign_topics", thread_id="nowhere") == {"assigned": 0, "more": False}
    page = call("topic_stretches", model="words")
    assert [row[:2] for row in page["stretches"] if row[:2] in members] == sorted(members)
    assert call("topic_stretches")["alike"] is None
    given = {"version": page["version"], "model": "words", "since": page["since"], "threshold": 0.5}
    assert call("commit_topics", **given, clusters=[{"topic_id": None, "members": members}])["committed"]
    assert not call("commit_topics", **given, clusters=[])["committed"]
    call.connection.execute("update memory.topic_clusterings set due_at = now() where user_id = %s", [call.user_id])
    assert call("worker_topics")["owners"] == [call.user_id]
    topic = next(each for each in call("topics", quotes=2) if len(each["quotes"]) == 2)
    call("edit_topic", topic_id=topic["id"], action="rename", name="Crafts", by="maya")
    assert call("topics", topic_id=topic["id"], parts=True)[0]["name"] == "Crafts"
    assert call("topic_days")
    would = call("forget_topic", topic_id=topic["id"], by="maya", dry_run=True)
    assert would["stretches"] == len(members)
    assert call("forget_topic", topic_id=topic["id"], by="maya", words=[])["words"] == []


def _count(call: Caller) -> None:
    """What was said is counted once, and everything of it goes with the consent."""
    if call.user_id.startswith("space:"):
        return  # nothing is counted of it
    assert call("worker_usage", limit=1)["after"]
    ids = [each["id"] for each in call("worker_usage", user_id=call.user_id)["conversations"]]
    while call("worker_count_usage", conversations=ids, limit=2)["more"]:
        pass
    assert call("worker_usage", user_id=call.user_id)["conversations"] == []
    assert call("worker_count_usage", conversations=[]) == {"counted": 0, "more": False}
    assert call("usage")[-1]["turns"] > 0
    assert call("recent_packs")
    assert call("unread", days=0)["chunks"] > 0
    call.connection.execute(
        "insert into memory.usage_days (user_id, agent_id, day, turns)"
        " select 'counted' || n, 'counted', current_date - 3, 1 from generate_series(1, 3000) n"
    )
    assert call("worker_insights")["cells"]
    call.connection.execute("delete from memory.usage_days where agent_id = 'counted'")
    call("consent", purpose="analytics", allowed=False, by="maya")
    assert call("usage") == []
    call("consent", purpose="analytics", allowed=True, by="maya")
    ids = [each["id"] for each in call("worker_usage", user_id=call.user_id)["conversations"]]
    call("worker_count_usage", conversations=ids)


def _move_to_long_term(call: Caller) -> None:
    """What the profile holds moves, and goes when a message is gone that says so."""
    call("append", thread_id="stall", messages=rows([HumanMessage("I always sell cups on Sundays.", id="k0")]))
    found = {"kind": "fact", "value": "Sells cups", "durable": True, "sequence": 0, "quote": "sell cups"}
    beside = {"summary": "", "context_notes": "", "tokens": 0, "quality": None, "profile": [found]}
    call("commit_board", thread_id="stall", **_read(call("pending_board", thread_id="stall")), **beside)
    items = [{"item_id": each["id"], "evidence": each["evidence"]} for each in call("profile")["items"]]
    moving = call("promote", target="store", items=items)
    assert len(call("promote", target="store", items=moving, moved=True)) == len(moving)
    assert call("promote", target="store", items=items) == []
    call("forget_message", thread_id="stall", message_id="k0")
    (gone,) = call("withdrawn", target="store")["memories"]
    assert gone in [each["memory_id"] for each in moving]
    call("withdrawn", target="store", gone=[gone])


def _forget(call: Caller) -> None:
    assert call("forget_message", thread_id="studio", message_id="m0")["messages"] == 1
    retried = call("append", thread_id="studio", messages=rows([HumanMessage("My kiln shows E-47.", id="m0")]))
    assert retried["sequences"] == [None], "what was forgotten is not brought back"
    assert call("forget_expired", retention={"messages": 1}, limit=1)["after"]
    call("forget_expired", retention={"messages": 1})
    more = rows([HumanMessage("One.", id="e0"), HumanMessage("Two.", id="e1")])
    assert call("append", thread_id="studio", messages=more, retention={"messages": 1})["expired"] == 2
    call("forget", everything=True)
