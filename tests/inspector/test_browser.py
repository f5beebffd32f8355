"""The inspector in a real Chromium: pages and actions, live updates, hostile text, themes, widths, keyboard only."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import psycopg
import pytest
from langchain_core.messages import AIMessage, HumanMessage

from langchain_supabase_memory import ContextBudget, SummaryPolicy, SupabaseMemory
from langchain_supabase_memory.inspector import live_updates
from langchain_supabase_memory.inspector.screen_list import SCREENS
from tests.embedders import WordEmbedder
from tests.inspector.browsing import Served, faint, served, unnamed
from tests.inspector.test_screens import OF_A_SPACE, talk
from tests.inspector.test_security import HOSTILE
from tests.inspector.visiting import address_of, memory_of
from tests.services.postgres import Cluster

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Dialog, Page

PAGES = {
    **{
        screen.name: address_of(screen, "studio")
        for screen in SCREENS
        if screen.name not in {*OF_A_SPACE, "profile_export"}
    },
    "prompt": "/conversation/prompt?thread=studio&question=What+did+the+kiln+show%3F",
    "turn": "/conversation/prompts/turn?thread=studio&answer=84",
    "recall of one": "/recall?thread=studio&q=kiln",
    "recalls compared": "/recall?thread=studio&q=kiln&limit=2&words2=on&compare=on",
    "nothing": "/conversation?thread=nowhere",
}
EVERYBODYS = {"Everybody": "/", "Due": "/?state=due", "One": "/?user={user}", "Queue": "/queue", "Recall": "/recall"}
"""The pages that a server sees otherwise."""


@pytest.fixture
def memory(conn_string: str, user_id: str) -> Iterator[SupabaseMemory]:
    """A conversation that has everything: segments, a board with evidence, chunks with vectors, prompts of answers."""
    settings = {"budget": ContextBudget(characters=3_000), "embeddings": WordEmbedder()}
    with memory_of(conn_string, user_id, **settings) as made:
        studio = made.conversation("studio")
        studio.append([HumanMessage("My kiln stopped at 840 degrees and shows E-47.", id="first"), *talk(80)])
        studio.summaries.make(policy=SummaryPolicy(messages=20, keep_messages=10))
        studio.summaries.edit(
            studio.summaries.list()[-1].number, "About a kiln that stopped at 840 degrees.", actor="maya"
        )
        studio.index()
        studio.board.revise()
        studio.board.add("fact", "The hotel wants 64 bowls.", actor="maya")
        for number in range(2):
            asked = HumanMessage(f"What did the kiln show, {number}?", id=f"asked{number}")
            studio.append([asked, AIMessage("E-47, at 840 degrees.", id=f"told{number}")], pack=studio.context(asked))
        yield made


@pytest.fixture
def inspector(memory: SupabaseMemory, chromium: Browser) -> Iterator[Served]:
    """It, with the right to write, and nothing on the console at the end."""
    with served(memory, chromium, write=True, actor="ana") as made:
        yield made
    assert [each for each in made.said if "404" not in each] == []


def item_of(page: Page, text: str) -> str:
    """The selector of an item of the board."""
    return f"#{page.locator('.items > li', has_text=text).first.get_attribute('id')}"


# Every page


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_page_can_be_read_in_light_and_in_dark(inspector: Served, scheme: str) -> None:
    page = inspector.open("/", color_scheme=scheme)
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (ground == "rgb(20, 21, 23)") == (scheme == "dark")
    for name, path in PAGES.items():
        page.goto(inspector.address + path)
        assert faint(page) == [], name


def test_everybodys_pages_can_be_read_found_and_are_narrow(
    memory: SupabaseMemory, chromium: Browser, conn_string: str, user_id: str
) -> None:
    memory.conversation("studio").opt_out(actor="maya")
    with memory_of(conn_string) as server, served(server, chromium, write=True) as inspector:
        for scheme in ("light", "dark"):
            page = inspector.open("/", viewport={"width": 400, "height": 800}, color_scheme=scheme)
            for name, path in EVERYBODYS.items():
                page.goto(inspector.address + path.format(user=user_id))
                assert page.evaluate("document.documentElement.scrollWidth") <= 400, name
                assert page.get_by_role("heading", level=1).count() == 1, name
                assert faint(page) == [], name
        page.goto(f"{inspector.address}/?user={user_id}")
        page.get_by_text("opted out").first.wait_for()
        assert inspector.said == []


def test_no_page_is_wider_than_four_hundred_pixels(inspector: Served) -> None:
    page = inspector.open("/", viewport={"width": 400, "height": 800})
    for name, path in PAGES.items():
        page.goto(inspector.address + path)
        assert page.evaluate("document.documentElement.scrollWidth") <= 400, name
        for button in page.locator("button:visible, a.button:visible, .nav a:visible").all():
            box = button.bounding_box()
            assert box is None or box["height"] >= 24, f"{name}: {button.inner_text()}"
    page.goto(inspector.address + PAGES["timeline"])
    page.locator("a.line").first.click()
    page.locator(".original").wait_for()
    assert page.evaluate("document.documentElement.scrollWidth") <= 400


def test_a_screen_reader_finds_its_way(inspector: Served) -> None:
    page = inspector.open()
    for name, path in PAGES.items():
        page.goto(inspector.address + path)
        assert page.get_by_role("main").count() == 1, name
        assert page.get_by_role("heading", level=1).count() == 1, name
        assert unnamed(page) == [], name
    page.goto(inspector.address + PAGES["timeline"])
    page.get_by_text("85 messages").first.wait_for()
    tree = page.locator("body").aria_snapshot()
    assert 'navigation "Inspector"' in tree
    assert 'link "Conversations"' in tree
    assert 'heading "Where every message is" [level=2]' in tree
    assert 'group "Where the messages are' in tree
    page.goto(inspector.address + "/")
    table = page.get_by_role("table").aria_snapshot()
    assert 'columnheader "Messages"' in table
    assert "of 85 messages summarized" in table


# By mouse: opening in place


def test_an_original_opens_in_place_and_closes_again(inspector: Served) -> None:
    page = inspector.open("/conversation?thread=studio&at=0")
    line = page.locator("#m0 a.line")
    line.click()
    page.locator("#m0 .original").wait_for()
    assert line.get_attribute("aria-expanded") == "true"
    assert "My kiln stopped at 840 degrees" in page.locator("#m0 .whole").inner_text()
    page.get_by_text("Stored JSON").click()
    assert '"type": "human"' in page.locator("#m0 pre").inner_text()
    line.click()
    page.locator("#m0 .original").wait_for(state="detached")
    assert line.get_attribute("aria-expanded") == "false"
    assert page.url.endswith("at=0"), "nothing was left"


def test_evidence_opens_in_place_with_its_quote(inspector: Served) -> None:
    page = inspector.open(PAGES["board"])
    item = item_of(page, "840")
    page.locator(f"{item} a[data-opens]").click()
    page.locator(f"{item} mark").wait_for()
    assert "840" in page.locator(f"{item} mark").first.inner_text()
    page.locator(f"{item} .evidence a").first.click()
    page.wait_for_url("**/conversation?*at=0*")
    assert page.locator("#m0.target").count() == 1


def test_what_stands_behind_a_prompt_opens_in_place(inspector: Served) -> None:
    page = inspector.open(PAGES["prompt"])
    for part, begins in (("#part-summary", "What it stands for"), ("#part-recalled li", "")):
        link = page.locator(f"{part} a[data-opens]", has_text=begins).first
        link.click()
        page.locator(f"{part} .inside .panel").first.wait_for()
        assert link.get_attribute("aria-expanded") == "true"
        link.click()
        page.locator(f"{part} .inside .panel").first.wait_for(state="detached")
    assert page.locator("#part-board li a[data-opens]").count() == 0, "what a person wrote has no message behind it"
    assert page.url == inspector.address + PAGES["prompt"], "nothing was left"


def test_from_a_message_to_the_prompt_of_its_answer(inspector: Served) -> None:
    page = inspector.open(PAGES["timeline"])
    page.locator("#m83 a.line").click()
    page.get_by_role("link", name="The prompt of its answer").click()
    page.wait_for_url("**/prompts/turn?*answer=84")
    page.get_by_role("heading", name="What did the kiln show, 1?").wait_for()
    page.locator("#part-board li", has_text="The hotel wants 64 bowls.").wait_for()
    page.locator("#part-summary a[data-opens]").first.click()
    page.locator("#part-summary .words li").first.wait_for()
    page.get_by_role("link", name="message 82", exact=True).last.click()
    page.get_by_role("heading", name="What did the kiln show, 0?").wait_for()


def test_prompts_are_listed_and_lead_to_each(inspector: Served) -> None:
    page = inspector.open(PAGES["prompts"])
    page.get_by_role("link", name="What did the kiln show, 1?").click()
    page.get_by_role("heading", name="What did the kiln show, 1?").wait_for()


def test_a_budget_and_a_question_can_be_tried(inspector: Served) -> None:
    page = inspector.open("/conversation/prompt?thread=studio")
    page.get_by_label("Try a question").fill("What did the kiln show?")
    page.get_by_role("textbox", name="Budget").fill("1200")
    page.get_by_role("button", name="Show").click()
    page.get_by_text("Budget of 1,200 characters").wait_for()
    assert page.locator("#part-current").count() == 1
    page.get_by_label("Recall from").select_option("none")
    page.get_by_role("button", name="Show").click()
    page.wait_for_url("**recall=none**")
    assert page.locator("#part-recalled").count() == 0


def test_the_report_is_copied_without_content(inspector: Served) -> None:
    page = inspector.open(PAGES["prompt"], permissions=["clipboard-read", "clipboard-write"])
    page.get_by_text("Report without content").click()
    page.get_by_role("button", name="Copy").click()
    page.get_by_role("button", name="Copied").wait_for()
    copied = page.evaluate("navigator.clipboard.readText()")
    assert '"tokens"' in copied
    assert "kiln" not in copied
    # As over plain HTTP from another machine, where there is no clipboard.
    page.goto(inspector.address + PAGES["turn"])
    page.evaluate("Object.defineProperty(navigator, 'clipboard', { value: undefined })")
    page.get_by_text("Report without content").click()
    page.get_by_role("button", name="Copy").click()
    page.get_by_role("button", name="Copied").or_(page.get_by_role("button", name="Selected")).wait_for()
    assert '"tokens"' in page.evaluate("getSelection().toString()")


def test_recall_without_a_conversation(inspector: Served) -> None:
    page = inspector.open("/recall")
    page.get_by_role("searchbox", name="Question").fill("kiln degrees")
    page.get_by_role("button", name="Search").click()
    page.locator(".results li").first.wait_for()
    page.locator(".results a").first.click()
    page.wait_for_url("**/conversation?*thread=studio*")


def test_recall_with_vectors_and_without(inspector: Served) -> None:
    page = inspector.open("/recall?thread=studio")
    page.get_by_role("searchbox", name="Question").fill("kiln degrees")
    page.get_by_role("button", name="Search").click()
    page.get_by_text("keywords and vectors").wait_for()
    page.get_by_label("keywords only, without vectors").check()
    page.get_by_role("button", name="Search").click()
    page.get_by_text("keywords only", exact=True).wait_for()


@pytest.mark.parametrize("width", [400, 1280])
def test_two_settings_of_recall_are_compared(inspector: Served, width: int) -> None:
    page = inspector.open("/recall?thread=studio&q=kiln+degrees&limit=3", viewport={"width": width, "height": 800})
    page.get_by_role("heading", name="Just missed").wait_for()
    page.get_by_text("Compare with …").click()
    assert page.get_by_label("keywords only, in the other one").is_checked()
    page.get_by_role("button", name="Compare").click()
    page.locator("#found2").wait_for()
    left, right = (page.locator(f"#found{number}").bounding_box() for number in (1, 2))
    assert left is not None
    assert right is not None
    assert (left["y"] == right["y"]) == (width > 1000), "side by side, or one below the other"
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert faint(page) == []


# Every action


def test_an_item_is_written_pinned_edited_and_deleted(inspector: Served, memory: SupabaseMemory) -> None:
    page = inspector.open(PAGES["board"])
    page.get_by_text("Add an item").click()
    page.get_by_label("Kind").select_option("action")
    page.get_by_label("Text", exact=True).fill("Order clay")
    page.locator("details[open]").get_by_role("button", name="Save").click()
    page.wait_for_url("**#item-*")
    item = item_of(page, "Order clay")
    page.locator(item).get_by_role("button", name="Pin").click()
    page.locator(f"{item} .pin").wait_for()
    page.locator(item).get_by_role("button", name="Unpin").click()
    page.locator(f"{item} .pin").wait_for(state="detached")
    page.locator(item).get_by_role("button", name="Pin").click()
    page.locator(f"{item} .pin").wait_for()
    page.locator(f"{item} a[data-opens]").click()
    page.locator(item).get_by_label("Item text").fill("Order white clay")
    page.locator(item).get_by_label("State").select_option("done")
    page.locator(item).get_by_role("button", name="Save").click()
    page.wait_for_load_state()
    (stored,) = [each for each in memory.conversation("studio").board.read(history=True).items if each.kind == "action"]
    assert (stored.text, stored.state, stored.pinned, stored.edited_by) == ("Order white clay", "done", True, "ana")
    page.locator(f"{item} a[data-opens]").click()  # among what is done, which has opened for it
    page.locator(item).get_by_text("Delete …").click()
    page.locator(item).get_by_role("button", name="Delete permanently").click()
    page.locator(item).wait_for(state="detached")


def test_summaries_are_edited_and_regenerated(inspector: Served, memory: SupabaseMemory) -> None:
    studio = memory.conversation("studio")
    page = inspector.open(PAGES["summaries"])
    first = page.locator("#segment-1")
    first.locator("summary", has_text="Edit").click()
    first.get_by_role("textbox").fill("About a kiln.")
    first.get_by_role("button", name="Save").click()
    page.locator(".whole", has_text="About a kiln.").wait_for()
    page.get_by_text("Regenerate …").click()
    page.get_by_role("button", name="Regenerate the summaries").click()
    page.wait_for_url("**/conversation?*")
    assert studio.summaries.list()[0].content == "About a kiln."
    page.goto(inspector.address + PAGES["summaries"])
    page.locator("#segment-1").get_by_text("Delete …").click()
    page.locator("#segment-1").get_by_role("button", name="Delete segment").click()
    page.wait_for_load_state()
    assert [each for each in studio.summaries.list() if each.edited_by] == []


def test_a_board_is_summed_up_and_regenerated(inspector: Served, memory: SupabaseMemory) -> None:
    page = inspector.open(PAGES["board"])
    page.get_by_text("Write a summary").click()
    page.get_by_label("Your summary").fill("Maya makes bowls.")
    page.locator("details[open]").get_by_role("button", name="Save").click()
    page.locator(".lede", has_text="Maya makes bowls.").wait_for()
    page.get_by_text("Regenerate …").click()
    page.get_by_role("button", name="Regenerate the board").click()
    page.wait_for_load_state()
    board = memory.conversation("studio").board.read()
    assert board.edited_summary == "Maya makes bowls."
    assert "The hotel wants 64 bowls." in [each.text for each in board.items]


def test_a_conversation_is_opted_out_and_asked_to_be_summarized(inspector: Served, memory: SupabaseMemory) -> None:
    page = inspector.open(PAGES["timeline"])
    page.get_by_role("button", name="Summarize now").click()
    page.locator("#standing", has_text="due").wait_for()
    page.get_by_text("Do not remember …").click()
    page.get_by_role("button", name="Do not remember it").click()
    page.get_by_text("opted out: nothing is derived from it").wait_for()
    assert memory.conversation("studio").privacy.opt_outs()
    page.get_by_role("button", name="Undo “Do not remember”").click()
    page.get_by_text("opted out: nothing is derived from it").wait_for(state="detached")


def test_what_was_given_up_is_tried_again(chromium: Browser, conn_string: str, user_id: str) -> None:
    with memory_of(conn_string) as server:
        for thread in ("stuck", "lost", "late"):
            server.for_user(user_id).conversation(thread).add_turn("a", "b", idempotency_key=thread)
        with psycopg.connect(conn_string, autocommit=True) as connection:
            connection.execute(
                "update memory_private.work set run_after = 'infinity', dead_at = now() where user_id = %s", [user_id]
            )
        with served(server, chromium, write=True) as inspector:
            page = inspector.open(f"/queue?user={user_id}")
            page.get_by_role("button", name="Retry stuck").click()
            dead = page.locator("section", has=page.locator("#q-dead"))
            dead.get_by_role("link", name="stuck").wait_for(state="detached")
            assert {each.key.thread_id for each in server.for_user(user_id).work.status(state="dead")} == {
                "lost",
                "late",
            }
            page.get_by_role("button", name="Retry all").click()
            dead.get_by_text("None.").wait_for()
        assert server.for_user(user_id).work.status(state="dead") == []


# Live


def test_what_changes_is_seen_without_a_reload(inspector: Served, memory: SupabaseMemory) -> None:
    page = inspector.open(PAGES["timeline"])
    page.evaluate("window.kept = true")
    page.get_by_text("85 messages").first.wait_for()
    memory.conversation("studio").append([HumanMessage("and now?", id="new"), AIMessage("Now it fires.", id="newer")])
    page.locator("#standing", has_text="87 messages").wait_for()
    page.locator("#messages ~ #message-list, #message-list").get_by_text("Now it fires.").wait_for()
    other = inspector.open("/")
    memory.conversation("bowls").add_turn("64 bowls", "are due")
    other.get_by_text("are due").wait_for()
    queue = inspector.open("/queue")
    memory.conversation("glaze").add_turn("blue", "green")
    queue.get_by_role("link", name="glaze").wait_for()
    assert page.evaluate("window.kept") is True, "the page was not loaded anew"


def test_the_running_state_is_seen_as_it_changes(inspector: Served, memory: SupabaseMemory, conn_string: str) -> None:
    memory.conversation("studio").summaries.request()
    page, queue, listed = (inspector.open(path) for path in (PAGES["timeline"], "/queue", "/"))
    ran = "update memory_private.work set {} where user_id = %s"
    with psycopg.connect(conn_string, autocommit=True) as connection:
        lease = "lease_token = gen_random_uuid(), lease_until = now() + interval '1 hour', worker = 'worker-7'"
        connection.execute(ran.format(lease).encode(), [memory.user_id])
        for each, selector in ((page, "#standing"), (queue, "#queue .chips"), (listed, "#list")):
            each.locator(selector, has_text="worker-7").wait_for()
        assert page.locator("#standing .c-running").count() == 1
        release = "lease_token = null, lease_until = null, worker = null"
        connection.execute(ran.format(release).encode(), [memory.user_id])
        for each, selector in ((page, "#standing"), (queue, "#queue"), (listed, "#list")):
            each.locator(selector, has_text="worker-7").wait_for(state="detached")


def test_more_pages_than_a_browser_has_connections(inspector: Served, memory: SupabaseMemory) -> None:
    """Six to a host, all pages together: who is not seen lets go, and catches up when it is seen again."""
    context = inspector.open("/").context
    pages = [context.pages[0]]
    for _ in range(7):
        seen(pages[-1], False)
        page = context.new_page()
        page.set_default_timeout(20_000)
        page.goto(f"{inspector.address}{PAGES['timeline']}")
        page.get_by_text("85 messages").first.wait_for()
        pages.append(page)
    memory.conversation("studio").append([HumanMessage("and now?", id="new")])
    pages[-1].locator("#standing", has_text="86 messages").wait_for()
    assert "85 messages" in pages[3].locator("#standing").inner_text(), "nobody sees it"
    seen(pages[-1], False)
    seen(pages[3], True)
    pages[3].locator("#standing", has_text="86 messages").wait_for()
    memory.conversation("studio").append([HumanMessage("and then?", id="newer")])
    pages[3].locator("#standing", has_text="87 messages").wait_for()


def seen(page: Page, is_seen: bool) -> None:
    """Bring a page before a person's eyes, or away; a browser without a screen shows them all."""
    state = "visible" if is_seen else "hidden"
    page.evaluate(
        """state => {
          Object.defineProperty(document, "hidden", { value: state === "hidden", configurable: true });
          Object.defineProperty(document, "visibilityState", { value: state, configurable: true });
          document.dispatchEvent(new Event("visibilitychange"));
        }""",
        state,
    )


def test_what_has_the_focus_or_is_open_stays_so(inspector: Served, memory: SupabaseMemory) -> None:
    studio = memory.conversation("studio")
    done = studio.board.add("action", "Order clay", actor="maya")
    studio.board.edit(done, actor="maya", state="done")
    page = inspector.open(PAGES["board"])
    page.get_by_text("Done, answered or superseded").click()
    page.get_by_role("link", name="history").focus()
    studio.board.add("fact", "Somebody else wrote this.", actor="ben")
    page.get_by_text("Somebody else wrote this.").first.wait_for()
    assert page.evaluate("document.activeElement.textContent") == "history"
    assert page.locator("details[open]").count() == 1
    page.goto(inspector.address + PAGES["prompt"])
    page.locator("#part-board").get_by_text("Text for the model").click()
    page.get_by_text("Report without content").focus()
    studio.append([HumanMessage("and now?", id="new")])
    page.locator("#standing", has_text="86 messages").wait_for()
    page.locator("#part-recent", has_text="and now?").wait_for()
    assert "without content" in page.evaluate("document.activeElement.textContent")
    assert page.locator("details[open]").count() == 1, "of several of one kind that one alone"
    assert page.locator("#part-board details[open]").count() == 1


def test_a_stream_that_ends_is_followed_by_another(
    inspector: Served, memory: SupabaseMemory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live_updates, "STREAM_SECONDS", 0.5)
    page = inspector.open(PAGES["timeline"])
    with page.expect_request("**/events?*"), page.expect_request("**/events?*"):
        pass
    assert page.locator("#away.shown").count() == 0
    memory.conversation("studio").append([HumanMessage("and now?", id="new")])
    page.locator("#standing", has_text="86 messages").wait_for()
    with page.expect_request("**/events?*"):
        pass
    assert page.locator("#away.shown").count() == 0


def test_what_is_being_written_is_not_taken_away(inspector: Served, memory: SupabaseMemory) -> None:
    page = inspector.open(PAGES["board"])
    page.get_by_text("Add an item").click()
    page.get_by_label("Text", exact=True).fill("half a sentence")
    memory.conversation("studio").board.add("fact", "Somebody else wrote this.", actor="ben")
    page.get_by_text("There are newer changes").wait_for()
    assert page.get_by_label("Text", exact=True).input_value() == "half a sentence"


def test_a_database_that_goes_away_is_said_and_the_page_recovers(chromium: Browser) -> None:
    with Cluster() as cluster:
        conn_string = cluster.conn_string(cluster.migrated_database())
        with memory_of(conn_string, "maya") as memory:
            memory.conversation("studio").add_turn("before", "yes")
            with served(memory, chromium) as inspector:
                page = inspector.open("/")
                page.get_by_text("before").first.wait_for()
                cluster.halt()
                page.get_by_text("The database is unreachable").wait_for()
                wrong = inspector.open("/queue")
                wrong.get_by_text("reloads by itself").wait_for()
                cluster.resume()
                page.locator("#away.shown").wait_for(state="detached", timeout=60_000)
                page.get_by_text("before").first.wait_for()
                wrong.get_by_role("heading", name="Queue").wait_for(timeout=60_000)
                memory.conversation("studio").add_turn("after", "it is back")
                page.get_by_text("it is back").wait_for(timeout=60_000)


# Hostile, long, from the right


def test_hostile_words_stay_words(chromium: Browser, conn_string: str, user_id: str) -> None:
    with memory_of(conn_string) as memory:
        said = memory.for_user(user_id).conversation(HOSTILE, agent_id=HOSTILE)
        said.append([HumanMessage(HOSTILE, id=HOSTILE), AIMessage("שלום " + HOSTILE + "\u202e 🦎", id="answer")])
        said.update(title=HOSTILE)
        item = said.board.add("fact", HOSTILE, actor=HOSTILE)
        with served(memory, chromium, write=True, actor=HOSTILE) as inspector:
            page = inspector.open(f"/?user={user_id}")
            dialogs: list[str] = []

            def dismiss(dialog: Dialog) -> None:
                dialogs.append(dialog.message)
                dialog.dismiss()

            page.on("dialog", dismiss)
            page.get_by_role("link", name=HOSTILE).first.click()
            page.locator("#m1 a.line").click()
            page.locator("#m1 .original").wait_for()
            assert HOSTILE in page.locator("#m1 .whole").inner_text()
            page.get_by_role("link", name="Board", exact=True).click()
            page.locator(f"#item-{item} a[data-opens]").click()
            page.locator(f"#item-{item} .panel").wait_for()
            for name in ("Next prompt", "Prompts", "Summaries", "Savings"):
                page.get_by_role("link", name=name, exact=True).click()
                page.wait_for_load_state()
            assert dialogs == []
            assert page.locator("img").count() == 0
        assert inspector.said == [], "nor did the content security policy have to step in"


def test_writing_from_the_right_begins_at_the_right(chromium: Browser, conn_string: str, user_id: str) -> None:
    with memory_of(conn_string, user_id) as memory:
        memory.conversation("t").append([HumanMessage("مرحبا بك في الاستوديو", id="m0"), AIMessage("hello", id="m1")])
        with served(memory, chromium) as inspector:
            page = inspector.open("/conversation?thread=t")
            direction = "element => getComputedStyle(element).direction"
            assert page.locator("#m0 .text").evaluate(direction) == "rtl"
            assert page.locator("#m1 .text").evaluate(direction) == "ltr"


def test_a_long_message_has_a_way_to_all_of_it(chromium: Browser, conn_string: str, user_id: str) -> None:
    with memory_of(conn_string, user_id) as memory:
        memory.conversation("t").append([HumanMessage("x" * 100_000 + " the end", id="m0")])
        with served(memory, chromium) as inspector:
            page = inspector.open("/conversation?thread=t", viewport={"width": 400, "height": 800})
            assert page.evaluate("document.documentElement.scrollWidth") <= 400
            page.locator("#m0 a.line").click()
            page.get_by_role("link", name="See all 100,008 characters").click()
            page.get_by_text("the end").first.wait_for()
            assert page.evaluate("document.documentElement.scrollWidth") <= 400


# By keyboard alone


def test_everything_can_be_done_by_keyboard(inspector: Served, memory: SupabaseMemory) -> None:
    page = inspector.open("/")

    def focused() -> str:
        text: str = page.evaluate("document.activeElement.textContent.trim() || document.activeElement.name || ''")
        return " ".join(text.split())

    def tab_to(name: str, most: int = 80) -> None:
        for _ in range(most):
            page.keyboard.press("Tab")
            if focused().startswith(name):
                outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
                assert outline != "none", "what has the focus is seen"
                return
        raise AssertionError(f"{name} cannot be reached")

    page.keyboard.press("Tab")
    assert focused() == "Skip to content"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"
    tab_to("My kiln stopped")
    page.keyboard.press("Enter")
    page.wait_for_url("**/conversation?*")
    tab_to("← ")
    page.keyboard.press("Enter")
    page.wait_for_url("**at=*")
    tab_to("0")
    page.keyboard.press("Enter")
    page.locator("#m0 .original").wait_for()
    tab_to("Stored JSON")
    page.keyboard.press("Enter")
    page.locator("#m0 pre").wait_for()
    page.goto(inspector.address + PAGES["board"])
    tab_to("Add an item")
    page.keyboard.press("Space")
    tab_to("fact")
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    page.keyboard.type("Written without a mouse.")
    tab_to("Save")
    page.keyboard.press("Enter")
    page.get_by_text("Written without a mouse.").first.wait_for()
    assert "Written without a mouse." in [each.text for each in memory.conversation("studio").board.read().items]


SCROLLS = """() => {
  document.querySelectorAll("details").forEach((each) => { each.open = true; });
  const scrolls = (each) => /auto|scroll/.test(getComputedStyle(each).overflowY) && each.scrollHeight > each.clientHeight;
  const focusable = "a[href], button, input, select, textarea, summary, [tabindex='0']";
  return [...document.querySelectorAll("main *")].filter(scrolls).map(
    (each) => [each.outerHTML.slice(0, 80), each.matches(focusable) || each.querySelector(focusable) !== null]);
}"""


def test_what_scrolls_by_itself_is_reached_by_keyboard(inspector: Served) -> None:
    page = inspector.open("/")
    scrolling: list[tuple[str, bool]] = []
    for path in PAGES.values():
        page.goto(inspector.address + path)
        scrolling += page.evaluate(SCROLLS)
    assert scrolling
    assert [html for html, is_reached in scrolling if not is_reached] == []


def test_everything_can_be_read_without_scripts(inspector: Served) -> None:
    page = inspector.open(PAGES["board"], java_script_enabled=False)
    item = item_of(page, "840")
    page.locator(f"{item} a[data-opens]").click()
    page.locator("mark").first.wait_for()
    page.get_by_label("Item text").fill("Written without scripts.")
    page.get_by_role("button", name="Save").click()
    page.get_by_text("Written without scripts.").first.wait_for()


# The cookie


def test_another_browser_is_not_let_in(inspector: Served, chromium: Browser) -> None:
    inspector.open()
    other = chromium.new_context().new_page()
    other.goto(f"{inspector.address}/?token=a-token-of-the-tests")
    assert "You are not signed in" in other.inner_text("h1")


# Finding


def test_a_key_leads_to_the_search_and_an_answer_says_why(inspector: Served) -> None:
    page = inspector.open("/")
    page.keyboard.press("/")
    page.keyboard.type("E-47")
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="Messages").wait_for()
    page.locator("a.title").first.click()
    page.locator("li.target").wait_for()
    page.goto(inspector.address + PAGES["turn"])
    page.get_by_label("A fact or a code in a few words").fill("stopped at 840 degrees")
    page.get_by_role("button", name="Explain").click()
    sentence = page.locator(".explained")
    sentence.wait_for()
    assert "unspent" in sentence.inner_text()
    assert sentence.get_by_role("link").count() >= 2


def test_the_list_of_users_narrows_while_one_types(
    memory: SupabaseMemory, chromium: Browser, conn_string: str, user_id: str
) -> None:
    with memory_of(conn_string, f"{user_id}-zoe") as other:
        other.conversation("t").append([HumanMessage("Which kiln?")])
    with memory_of(conn_string) as server, served(server, chromium) as inspector:
        page = inspector.open(f"/?prefix={user_id}")
        assert page.locator("#users a.title").count() == 2
        page.get_by_label("User").fill(f"{user_id}-z")
        page.locator("#users a.title").nth(1).wait_for(state="detached")
        assert page.locator("#users a.title").inner_text() == f"{user_id}-zoe"
        assert inspector.said == []


def test_a_double_click_sends_a_form_once(inspector: Served, memory: SupabaseMemory) -> None:
    page = inspector.open(PAGES["board"])
    page.get_by_text("Add an item").click()
    form = page.locator("details[open]")
    form.get_by_label("Text").fill("Order clay twice.")
    form.get_by_role("button", name="Save").dblclick()
    page.wait_for_load_state("networkidle")
    page.locator(".items").get_by_text("Order clay twice.").first.wait_for()
    board = memory.conversation("studio").board
    assert [each.text for each in board.read().items].count("Order clay twice.") == 1
    page.get_by_role("button", name="Pin Order clay twice.").or_(page.get_by_role("button", name="Pin")).first.click()
    page.get_by_role("button", name="Undo").dblclick()
    page.wait_for_load_state("networkidle")
    assert page.get_by_text("cannot be undone any more").count() == 0
    assert not any(each.pinned and each.edited_by for each in board.read().items)
