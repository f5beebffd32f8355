"""Who may read and change data, and what a browser may do with a page: one test for each guarantee."""

from __future__ import annotations

import hashlib
import logging
from typing import Any

import httpx
import psycopg
import pytest
from langchain_core.messages import AIMessage, HumanMessage
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.routing import Mount, Route

from langchain_supabase_memory import SummaryPolicy, SupabaseMemory
from langchain_supabase_memory.errors import ConfigurationError, InvalidInputError
from langchain_supabase_memory.inspector import application, live_updates, profile_routes, space_routes, topic_routes
from langchain_supabase_memory.inspector.edit_routes import MAX_FORM_BYTES, ROUTES
from langchain_supabase_memory.inspector.screen_list import SCREENS
from langchain_supabase_memory.inspector.static_files import FILES
from tests.each_case import each_case
from tests.inspector.visiting import ADDRESS, TOKEN, Person, Reader, address_of, asked_of, memory_of

OF_SPACES = [route.path for route in space_routes.ROUTES]
OF_PROFILES = [route.path for route in profile_routes.ROUTES]
OF_TOPICS = [route.path for route in topic_routes.ROUTES]
WRITES = [*(route.path for route in ROUTES), *OF_SPACES, *OF_PROFILES, *OF_TOPICS]
PAGES = [
    *map(address_of, SCREENS), "/recall?thread=t&q=kiln", "/conversation?thread=nowhere", "/nowhere",
]  # fmt: skip
OF_CONVERSATION = [screen for screen in SCREENS if screen.is_of_conversation]
TAGS = {
    "html", "head", "meta", "title", "link", "script", "body", "header", "main", "footer", "nav", "section", "div", "span",
    "p", "a", "b", "bdi", "br", "code", "em", "mark", "del", "blockquote", "pre", "h1", "h2", "h3", "ul", "ol", "li", "dl",
    "dt", "dd", "time", "figure", "figcaption", "table", "caption", "thead", "tbody", "tr", "th", "td", "form", "label",
    "input", "select", "option", "textarea", "button", "details", "summary", "svg", "g", "defs", "pattern", "path", "rect",
    "circle", "polyline", "dialog", "kbd",
}  # fmt: skip


def client(app: Any, **settings: Any) -> httpx.AsyncClient:
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url=ADDRESS, **settings)


def test_every_route_is_a_screen_a_change_or_carries_no_page(memory: SupabaseMemory) -> None:
    """So that the tests below, which go through the screens and the changes, leave none out."""
    routes = [route.path for route in application(memory).routes if isinstance(route, Route)]
    assert sorted(routes) == sorted([*(screen.path for screen in SCREENS), *WRITES, "/events", "/static/{name}"])


# The token, the cookie


async def test_the_token_lets_one_browser_in_once_and_leaves_the_address(memory: SupabaseMemory) -> None:
    app = application(memory, token=TOKEN)
    async with client(app) as first, client(app) as second:
        assert (await first.get("/")).status_code == 401
        assert (await first.get("/", params={"token": "another"})).status_code == 401
        assert (await first.head("/", params={"token": TOKEN})).status_code == 401, "a look does not use it up"
        entered = await first.get("/", params={"token": TOKEN, "state": "due"})
        assert (entered.status_code, entered.headers["location"]) == (303, "/?state=due")
        assert (await first.get("/")).status_code == 200
        again = await second.get("/", params={"token": TOKEN})
        assert again.status_code == 401
        assert "works once" in Reader(again.text).text


async def test_the_cookie_is_for_this_page_alone(memory: SupabaseMemory) -> None:
    app = application(memory, token=TOKEN)
    async with client(app) as http:
        cookie = (await http.get("/", params={"token": TOKEN})).headers["set-cookie"]
    assert TOKEN not in cookie
    assert [part.strip() for part in cookie.split(";")[1:]] == ["Path=/", "HttpOnly", "SameSite=Strict"]
    async with client(app, cookies={app.state.inspector.sessions.cookie: "guessed"}) as http:
        assert (await http.get("/")).status_code == 401
    async with client(app, headers={"cookie": "=;\x01; broken"}) as http:
        assert (await http.get("/")).status_code == 401


async def test_the_cookies_of_other_applications_of_this_machine_are_no_hindrance(memory: SupabaseMemory) -> None:
    app = application(memory, token=TOKEN)
    async with client(app) as http:
        await http.get("/", params={"token": TOKEN})
        ours = f"{app.state.inspector.sessions.cookie}={http.cookies[app.state.inspector.sessions.cookie]}"
    for others in ('g_state={"i_l":0}', "a b=c", "=", "x=ä", 'y="'):
        async with client(app, headers={"cookie": f"{others}; {ours}".encode()}) as http:
            assert (await http.get("/")).status_code == 200, others


@each_case("token", ["", "short", "x" * 15])
def test_a_token_that_can_be_guessed_is_refused(conn_string: str, token: str) -> None:
    memory = memory_of(conn_string, "maya")
    with pytest.raises(ConfigurationError, match="at least 16 characters"):
        application(memory, token=token)
    memory.close()


@pytest.mark.parametrize("path", [*PAGES, "/events?about=list", *WRITES])
async def test_nobody_sees_anything_without_the_cookie(memory: SupabaseMemory, path: str) -> None:
    async with client(application(memory, token=TOKEN, write=True)) as http:
        method = "POST" if path in WRITES else "GET"
        answer = await http.request(method, path, headers={"origin": ADDRESS})
    assert answer.status_code == 401


# Host and Origin


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8765", "127.0.0.1.evil.example", "", "[::2]:1", "[x"])
async def test_a_host_that_is_not_ours_is_refused(memory: SupabaseMemory, host: str) -> None:
    async with Person(memory) as person:
        for path in ("/", "/static/inspector.js", "/?token=" + TOKEN):
            answer = await person.http.get(path, headers={"host": host})
            assert answer.status_code == 421


@pytest.mark.parametrize("host", ["localhost:9", "127.0.0.1", "[::1]:8765", "LOCALHOST", "inspector.example"])
async def test_the_hosts_that_are_ours_are_not(memory: SupabaseMemory, host: str) -> None:
    async with Person(memory, hosts=["127.0.0.1", "localhost", "::1", "inspector.example"]) as person:
        assert (await person.http.get("/static/inspector.js", headers={"host": host})).status_code == 200


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://127.0.0.1:9", "file://127.0.0.1:8765", ""])
async def test_another_origin_is_refused(memory: SupabaseMemory, origin: str) -> None:
    async with Person(memory, write=True) as person:
        assert (await person.http.get("/", headers={"origin": origin})).status_code == 403
        form = {"csrf_token": person.csrf_token, "do": "opt_out", "sure": "1"}
        for path in WRITES:
            answer = await person.http.post(path, data=form, headers={"origin": origin})
            assert answer.status_code == 403


async def test_who_changes_something_says_where_it_comes_from(memory: SupabaseMemory) -> None:
    async with Person(memory, write=True) as person:
        assert (await person.http.post("/queue/retry", data={"csrf_token": person.csrf_token})).status_code == 403


# Writing


@pytest.mark.parametrize("path", WRITES)
async def test_nothing_is_changed_without_write(memory: SupabaseMemory, path: str) -> None:
    await memory.conversation("t").aadd_turn("hello", "hi")
    async with Person(memory) as person:
        answer = await person.post(path, {"do": "opt_out", "sure": "1", "text": "x", "kind": "fact"}, thread="t")
        assert answer.status_code == 403
        assert "--write" in Reader(answer.text).text
    assert await memory.conversation("t").privacy.aopt_outs() == []
    assert (await memory.conversation("t").board.aread()).is_empty


async def test_no_page_has_a_form_without_write(memory: SupabaseMemory) -> None:
    await memory.conversation("t").aadd_turn("hello", "hi")
    async with Person(memory) as person:
        for page in PAGES:
            assert not Reader((await person.http.get(page)).text).all("form", method="post"), page


@pytest.mark.parametrize("path", WRITES)
async def test_a_form_of_another_session_changes_nothing(memory: SupabaseMemory, path: str) -> None:
    await memory.conversation("t").aadd_turn("hello", "hi")
    app = application(memory, write=True)  # without a token each browser has a session of its own
    headers = {"origin": ADDRESS}
    async with client(app, headers=headers) as one, client(app, headers=headers) as another:
        board = "/conversation/board?thread=t"
        own, theirs = [Reader((await each.get(board)).text).csrf_token for each in (one, another)]
        assert own != theirs
        form = {"do": "opt_out", "sure": "1", "text": "x", "kind": "fact"}
        for mark in ("", "guessed", theirs):
            answer = await one.post(path, params={"thread": "t"}, data={**form, "csrf_token": mark})
            assert answer.status_code == 403, mark
            assert "does not belong to your session" in Reader(answer.text).text, mark
        assert await memory.conversation("t").privacy.aopt_outs() == []
        assert (await memory.conversation("t").board.aread()).is_empty
        answer = await one.post(path, params={"thread": "t"}, data={**form, "csrf_token": own})
        assert answer.status_code != 403, "with its own it would have been done"


@pytest.mark.parametrize("path", WRITES)
async def test_a_look_changes_nothing(memory: SupabaseMemory, path: str) -> None:
    async with Person(memory, write=True) as person:
        assert (await person.http.get(path, params={"csrf_token": person.csrf_token})).status_code == 405


async def test_a_form_has_a_size(memory: SupabaseMemory) -> None:
    async with Person(memory, write=True) as person:
        assert (await person.post("/queue/retry", {"text": "x" * MAX_FORM_BYTES})).status_code == 413
        headers = {"origin": ADDRESS}
        assert (await person.http.post("/queue/retry", content=b"\xff=\xff", headers=headers)).status_code == 400


# What a browser may do with a page


@pytest.mark.parametrize(
    "path", [*PAGES, "/static/inspector.css", "/static/htmx-2.0.11.min.js", "/conversation/board/add"]
)
async def test_every_answer_says_what_a_browser_may_do(memory: SupabaseMemory, path: str) -> None:
    await memory.conversation("t").aadd_turn("hello", "hi")
    async with Person(memory) as person:
        answer = await person.http.get(path)
    bounded(answer)


@pytest.mark.parametrize("path", [*PAGES, "/events?about=list"])
async def test_an_answer_that_refuses_says_so_too(
    memory: SupabaseMemory, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def failing(*_: Any, **__: Any) -> None:
        raise RuntimeError

    app = application(memory, token=TOKEN)
    async with client(app) as stranger:
        answers = {401: await stranger.get(path)}
    async with client(app) as http:
        answers[303] = await http.get("/", params={"token": TOKEN})
        answers[403] = await http.get(path, headers={"origin": "https://evil.example"})
        answers[421] = await http.get(path, headers={"host": "evil.example"})
        monkeypatch.setattr("langchain_supabase_memory.memory.conversation.Conversation.ainfo", failing)
        answers[500] = await http.get("/conversation?thread=t")
    for status, answer in answers.items():
        assert answer.status_code == status
        bounded(answer)


def bounded(answer: httpx.Response) -> None:
    """What a browser may do with an answer: nothing but show it and load its own style and scripts."""
    policy = dict(part.strip().split(" ", 1) for part in answer.headers["content-security-policy"].split(";"))
    assert policy == {
        "default-src": "'none'",
        "script-src": "'self'",
        "style-src": "'self'",
        "img-src": "'self'",
        "connect-src": "'self'",
        "form-action": "'self'",
        "base-uri": "'none'",
        "frame-ancestors": "'none'",
    }
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["cache-control"] == "no-store"
    assert answer.headers["referrer-policy"] == "same-origin"
    assert answer.headers["x-frame-options"] == "DENY"
    assert answer.headers["cross-origin-opener-policy"] == "same-origin"
    assert answer.headers["cross-origin-resource-policy"] == "same-origin"


def test_htmx_is_the_file_that_was_published() -> None:
    """From the package htmx.org 2.0.11 on npm, dist/htmx.min.js."""
    digest = hashlib.sha256(FILES["htmx-2.0.11.min.js"]).hexdigest()
    assert digest == "d6fdc75f204e6bdefa99b69bf1e6d4ac69b8a364f77929f45c13476b4000f717"


HOSTILE = '<img src=x onerror="alert(1)">\'"`{{7*7}}</script><script>alert(2)</script>'


async def test_what_was_said_is_never_more_than_words(
    conn_string: str, user_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Everything that anybody can write is hostile: ids, titles, messages, metadata, boards, summaries, errors."""
    monkeypatch.setattr(live_updates, "STREAM_SECONDS", 0.1)
    owner = f"{user_id}{HOSTILE}"
    async with memory_of(conn_string) as memory:
        said = memory.for_user(owner).conversation(HOSTILE, agent_id=HOSTILE)
        calls = [{"name": "x", "args": {HOSTILE: HOSTILE}, "id": HOSTILE}]
        await said.aappend(
            [
                HumanMessage(HOSTILE, id=HOSTILE, name="x"),
                AIMessage("", tool_calls=calls, id="call"),
                AIMessage(HOSTILE + "\u202e\u0007" + "long " * 300, id="answer"),
            ],
            metadata={HOSTILE: HOSTILE},
        )
        await said.aindex()
        await said.aupdate(title=HOSTILE)
        items = [await said.board.aadd(kind, f"{HOSTILE} {kind}", actor=HOSTILE) for kind in ("fact", "action")]
        await said.board.aedit(items[0], actor=HOSTILE, text=HOSTILE + " edited")
        await said.board.aedit_summary(HOSTILE, actor=HOSTILE)
        await memory.for_user(owner).privacy.aopt_out("kangaroo" + HOSTILE, actor=HOSTILE)
        pack = await said.acontext(HOSTILE)
        await said.aappend([HumanMessage(HOSTILE, id="asked"), AIMessage(HOSTILE, id="told")], pack=pack)
        await said.summaries.amake(policy=SummaryPolicy(messages=2, keep_messages=1))
        (segment, *_) = await said.summaries.alist()
        await said.summaries.aedit(segment.number, f"{HOSTILE} in short", actor=HOSTILE)
        await _with_hostile_names(conn_string, owner)
        asked: dict[str, Any] = {"user": owner, "agent": HOSTILE, "thread": HOSTILE}
        async with Person(memory, write=True, actor=HOSTILE) as person:
            pages = [
                await person.answer("/", user=owner if whose else "", state=state, agent=HOSTILE)
                for whose in (True, False)
                for state in ("", "due", "idle", HOSTILE)
            ]
            shown = {
                each.name: await person.answer(each.path, **asked, question=HOSTILE, budget=HOSTILE)
                for each in OF_CONVERSATION
            }
            pages += shown.values()
            summaries, turn = shown["summaries"], await person.answer("/conversation/prompts/turn", **asked, answer=4)
            assert turn.status_code == 200
            pages.append(turn)
            pages.append(await person.answer("/conversation/prompts/turn", **asked, answer=HOSTILE))
            pages.append(await person.answer("/conversation/messages", part=True, **asked, first=0, last=9))
            events = await person.answer("/events", **asked, about=HOSTILE, seen=HOSTILE, state=HOSTILE)
            assert HOSTILE not in events.text
            assert "<" not in events.text
            for number in range(3):
                pages.append(await person.answer("/conversation/message", **asked, number=number))
                pages.append(await person.answer("/conversation/message", part=True, **asked, number=number))
            pages.append(await person.answer("/conversation/board/item", **asked, item=items[0]))
            pages.append(await person.answer("/conversation/board/item", part=True, **asked, item=items[0]))
            pages.append(await person.answer("/conversation/board/item", part=True, **asked, item=HOSTILE))
            found = await person.answer("/recall", **asked, q=HOSTILE, scope="user")
            queue = await person.answer("/queue", user=owner)
            pages += [found, queue]
            pages.append(await person.answer("/" + HOSTILE))
    for page, names in ((summaries, 3), (found, 2), (queue, 3)):
        assert Reader(page.text).text.count(HOSTILE) >= names, "editor and model, speaker, error and worker are there"
    named = 0
    for page in pages:
        read = harmless(page.text)
        assert all(attributes.get("src") for attributes in read.all("script")), "no script in the page"
        assert "\u202e" not in page.text
        assert "\u0007" not in page.text
        named += HOSTILE in read.text
    assert named >= 20, "it was there"


def harmless(text: str) -> Reader:
    """Read a page, which has only elements that the inspector writes, and neither handlers nor styles."""
    read = Reader(text)
    assert {tag for tag, _ in read.elements} <= TAGS
    assert not {name for _, attributes in read.elements for name in attributes if name.startswith("on")}
    assert not any("style" in attributes for _, attributes in read.elements)
    return read


async def _with_hostile_names(conn_string: str, owner: str) -> None:
    """What only a program names: a segment's model, a chunk's speaker, a worker, the error of its last try."""
    async with await psycopg.AsyncConnection.connect(conn_string, autocommit=True) as connection:
        for change in (
            "update memory.conversation_summaries set model = %s where user_id = %s",
            "update memory.working_memory_chunks set speaker = %s where user_id = %s",
            "update memory_private.work set worker = %s, lease_token = gen_random_uuid(), run_after = now(),"
            " lease_until = now() + interval '1 hour' where user_id = %s",
            "update memory_private.work set error = %s where user_id = %s",
        ):
            changed = await connection.execute(change.encode(), [HOSTILE, owner])
            assert changed.rowcount, change


# Whose data


async def test_as_a_user_nobody_elses_rows_are_there(
    conn_string: str, user_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with memory_of(conn_string) as server:
        await server.for_user(user_id).conversation("mine").aadd_turn("my words", "yes")
        theirs = server.for_user(f"{user_id}-other").conversation("theirs")
        await theirs.aadd_turn("a secret of another", "yes")
        item = await theirs.board.aadd("fact", "a secret fact", actor="them")
        kept = [HumanMessage("a secret question", id="q"), AIMessage("a secret answer", id="a")]
        await theirs.aappend(kept, pack=await theirs.acontext("a secret question"))
        mine = server.for_token({"sub": user_id, "role": "authenticated"})
        async with Person(mine, write=True) as person:
            listed = await person.page("/", user=f"{user_id}-other")
            assert "my words" in listed.text
            assert "secret" not in listed.text
            assert "One user’s data" in listed.text
            for screen in OF_CONVERSATION:
                for whose in ("", f"{user_id}-other"):
                    named = {**asked_of(screen, "theirs"), "user": whose, "item": item}
                    for answer in (1, 3):
                        await person.page(screen.path, 404, part=True, **{**named, "answer": answer})
                    if screen.name != "messages":  # whose address leads to the timeline
                        await person.page(screen.path, 404, **named)
            monkeypatch.setattr(live_updates, "STREAM_SECONDS", 0.1)
            told = await person.answer(
                "/events", about="conversation", thread="theirs", user=f"{user_id}-other", seen="x"
            )
            assert told.text == "retry: 2000\n\nevent: changed\ndata:\n\nevent: again\ndata:\n\n"
            gone = await person.answer("/events", about="conversation", thread="nowhere", seen="x")
            assert gone.text == told.text, "as of one that does not exist"
            await person.page("/conversation/board/item", 404, thread="theirs", item=item)
            found = await person.page("/recall", q="secret", user=f"{user_id}-other")
            assert "a secret of another" not in found.text
            assert "secret" not in (await person.page("/queue")).text
            for path in [each for each in WRITES if each not in (*OF_SPACES, *OF_PROFILES, *OF_TOPICS)]:
                form = {"item": item, "pin": item, "text": "x", "kind": "fact", "number": "1"}
                status = (await person.post(path, form, thread="theirs", user=f"{user_id}-other")).status_code
                assert status == 404, path
            assert (await person.post("/queue/retry", {})).status_code == 403, "which needs a server's rights"
        assert [each.pinned for each in (await theirs.board.aread()).items] == [False]


async def test_what_needs_a_servers_rights_is_not_there_as_a_user(conn_string: str, user_id: str) -> None:
    async with memory_of(conn_string) as server:
        await server.for_user(user_id).conversation("t").aadd_turn("a", "b")
        async with await psycopg.AsyncConnection.connect(conn_string, autocommit=True) as connection:
            dead = b"update memory_private.work set run_after = 'infinity', dead_at = now() where user_id = %s"
            await connection.execute(dead, [user_id])
        mine = server.for_token({"sub": user_id, "role": "authenticated"})
        for memory, status in ((mine, 404), (server, 200)):
            async with Person(memory, write=True) as person:
                doctor = await person.answer("/doctor")
                assert doctor.status_code == status
                if memory is mine:
                    assert not {"port", "host", "embedder"} & {*Reader(doctor.text).text.split()}
                for path in ("/", "/queue"):
                    page = await person.page(path)
                    assert bool(page.all("a", href="/doctor")) == (memory is server)
                queue = await person.page("/queue", user=user_id)
                retries = [each for each in queue.all("form") if "/queue/retry" in str(each["action"])]
                assert len(retries) == (3 if memory is server else 0), "one conversation, its cause, all"
                assert "supabase-memory worker" not in queue.text or memory is server


async def test_who_acts_as_a_user_is_noted_by_that_name(conn_string: str, user_id: str) -> None:
    async with memory_of(conn_string) as server:
        said = server.for_user(user_id).conversation("t")
        await said.aadd_turn("a", "b")
        mine = server.for_token({"sub": user_id, "role": "authenticated"})
        async with Person(mine, write=True, actor="somebody else") as person:
            await person.post("/conversation/board/add", {"kind": "fact", "text": "A fact."}, thread="t")
            await person.post("/conversation/board/summary", {"text": "In short."}, thread="t")
            board = await said.board.aread()
            assert [item.author for item in board.items] == [user_id]
            assert board.edited_by == user_id
            await person.post("/conversation/remember", {"do": "opt_out", "sure": "1"}, thread="t")
        assert [out.actor for out in await said.privacy.aopt_outs()] == [user_id]


async def test_everybodys_data_is_there_over_a_servers_connection_alone_and_the_page_says_so(
    server: SupabaseMemory, user_id: str
) -> None:
    await server.for_user(user_id).conversation("one").aadd_turn("a secret wish", "yes")
    async with Person(server) as person:
        page = await person.page("/", user=user_id)
        assert "a secret wish" in page.text
        assert "All users’ data, with a server’s rights" in page.text
        everybody = await person.page("/", state="due")
        assert "secret" not in everybody.text, "titles and words come with one user"
        assert "Enter a user" in (await person.page("/recall", q="words")).text
        await person.page("/conversation", 404, thread="one")


async def test_a_memory_of_one_user_shows_that_user_alone(conn_string: str, user_id: str) -> None:
    async with memory_of(conn_string, user_id) as memory:
        other = SupabaseMemory(memory._services.transport, user_id=f"{user_id}-other")
        await other.conversation("t").aadd_turn("words of another", "yes")
        async with Person(memory) as person:
            page = await person.page("/", user=f"{user_id}-other")
            assert "words of another" not in page.text
            assert f"{user_id}, with a server’s rights" in page.text
            await person.page("/conversation", 404, thread="t", user=f"{user_id}-other")


# Logs


async def test_what_was_said_is_in_no_log(
    memory: SupabaseMemory, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = "a word that nobody logs"
    await memory.conversation("t").aadd_turn(secret, secret)

    async def failing(*_: Any, **__: Any) -> None:
        raise RuntimeError(secret)

    with caplog.at_level(logging.DEBUG):
        async with Person(memory, write=True) as person:
            await person.page("/conversation", thread="t")
            await person.page("/recall", thread="t", q=secret)
            await person.post("/conversation/board/add", {"kind": "fact", "text": secret}, thread="t")
            monkeypatch.setattr("langchain_supabase_memory.memory.conversation.Conversation.ainfo", failing)
            broken = await person.page("/conversation", 500, thread="t")
    assert "RuntimeError" in broken.text
    assert secret not in broken.text
    logged = [record for record in caplog.records if record.name.startswith("langchain_supabase_memory")]
    assert any(getattr(record, "memory_error", None) == "RuntimeError" for record in logged), "that it failed is there"
    for record in logged:
        assert secret not in f"{record.getMessage()} {record.__dict__}"


# Mounted


async def test_an_application_mounts_it_for_whoever_is_signed_in(server: SupabaseMemory, user_id: str) -> None:
    await server.for_user(user_id).conversation("t").aadd_turn("words of mine", "yes")

    def memory_for(request: Request) -> SupabaseMemory:
        return server.for_token({"sub": request.headers["x-user"], "role": "authenticated"})

    mounted = application(memory_for, write=True, hosts=["app.example"])
    app = Starlette(routes=[Mount("/memory", mounted)])
    headers = {"x-user": user_id, "host": "app.example", "origin": "https://app.example"}
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(app), base_url="https://app.example", headers=headers
    ) as http:
        first = await http.get("/memory/")
        assert "words of mine" in first.text
        cookie = first.headers["set-cookie"]
        assert "Path=/memory" in cookie
        assert "Secure" in cookie
        page = Reader((await http.get("/memory/conversation", params={"thread": "t"})).text)
        inside = [str(each["href"]) for each in page.all("a") if not str(each["href"]).startswith("#")]
        assert all(each.startswith("/memory/") for each in inside)
        assert all(str(each["src"]).startswith("/memory/static/") for each in page.all("script"))
        done = await http.post(
            "/memory/conversation/remember",
            params={"thread": "t"},
            data={"csrf_token": page.csrf_token, "do": "opt_out", "sure": "1"},
        )
        assert done.status_code == 303
        other = await http.get("/memory/conversation", params={"thread": "t"}, headers={"x-user": "somebody"})
        assert other.status_code == 404
    assert [each.thread_id for each in await server.for_user(user_id).privacy.aopt_outs()] == ["t"]


def test_what_is_no_memory_is_refused(conn_string: str) -> None:
    with pytest.raises(ConfigurationError, match="memory"):
        application("postgresql://…")  # type: ignore[arg-type]
    memory = memory_of(conn_string, "maya")
    with pytest.raises(ConfigurationError, match="hosts"):
        application(memory, hosts="localhost")
    with pytest.raises(InvalidInputError, match="actor must"):
        application(memory, actor=" ")
    memory.close()
