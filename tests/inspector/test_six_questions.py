"""Six questions that people bring to the inspector, each answered from its first screen, with the clicks counted."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from langchain_core.messages import AIMessage, HumanMessage

from langchain_supabase_memory import ContextBudget, SupabaseMemory
from tests.inspector.browsing import Served, served
from tests.inspector.visiting import memory_of

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Locator, Page

MOST = 3
"""The most clicks from the first screen to an answer."""


@dataclass
class Visit:
    """A page, and how often it was clicked on; sending a form with Enter counts as a click."""

    page: Page
    clicks: int = 0

    def click(self, target: Locator) -> None:
        target.first.click()
        self.clicks += 1

    def enter(self, target: Locator, words: str) -> None:
        target.fill(words)
        target.press("Enter")
        self.clicks += 1

    def reads(self, words: str) -> None:
        self.page.locator("main", has_text=words).wait_for()

    def open_prompt(self) -> None:
        """Open the prompt of the newest answer."""
        self.click(self.page.get_by_role("link", name="My kiln stopped"))
        self.click(self.page.get_by_role("link", name="Its prompt, and why").last)


def knew_the_allergy(visit: Visit) -> None:
    visit.open_prompt()
    visit.enter(visit.page.get_by_label("A fact or a code in a few words"), "hazelnuts make me ill")
    visit.reads("It was not in the prompt. Said in message 2.")


def is_remembered(visit: Visit) -> None:
    visit.click(visit.page.get_by_role("link", name="Profile"))
    visit.reads("I live in Manila.")


def cost(visit: Visit) -> None:
    visit.reads("Tokens sent")
    (week,) = re.findall(r"([\d,]+) in 7 days", visit.page.locator(".usage li", has_text="Tokens sent").inner_text())
    assert int(week.replace(",", "")) > 0


def is_stuck(visit: Visit) -> None:
    visit.click(visit.page.locator(".figures a"))
    visit.reads("AuthenticationError × 1")
    cause = visit.page.locator(".cause", has_text="AuthenticationError")
    assert "key" in cause.locator("p").inner_text(), "the next step"
    assert cause.locator("bdi.dim").inner_text().endswith("-stuck"), "the user"


def changed(visit: Visit) -> None:
    visit.open_prompt()
    visit.reads("Compared with the prompt of message")
    assert visit.page.locator("section[aria-labelledby=difference] tr").count() >= 1


def code_was_said(visit: Visit) -> None:
    visit.enter(visit.page.get_by_role("searchbox", name="Search"), "kiln E-47")
    visit.click(visit.page.locator("main a.title"))
    visit.page.locator("li#m0.target", has_text="E-47").wait_for()


QUESTIONS: dict[str, Callable[[Visit], None]] = {
    "Why did it not know the allergy?": knew_the_allergy,
    "What do you remember of me?": is_remembered,
    "What did this cost last week?": cost,
    "Which user’s work is stuck, and why?": is_stuck,
    "What changed in the prompt between these two answers?": changed,
    "Where was the kiln’s code said?": code_was_said,
}
OF_EVERYBODY = "Which user’s work is stuck, and why?"
"""The question about all users; the others are about one."""


def documented() -> dict[str, int]:
    """The clicks of the page's table."""
    page = (Path(__file__).parents[2] / "docs" / "inspector.md").read_text(encoding="utf-8")
    table = page.partition("| question | clicks | how |\n| --- | --- | --- |\n")[2].partition("\n\n")[0]
    rows = [[cell.strip() for cell in row.strip("|").split("|")] for row in table.splitlines()]
    return {question: int(clicks) for question, clicks, _ in rows}


@pytest.fixture
def memory(conn_string: str, user_id: str) -> Iterator[SupabaseMemory]:
    with memory_of(conn_string, user_id, budget=ContextBudget(characters=2_000), model=None) as made:
        studio = made.conversation("studio")
        talk: list[Any] = [
            HumanMessage("My kiln stopped at 840 degrees and shows E-47."),
            AIMessage("Let it cool."),
            HumanMessage("Hazelnuts make me ill, by the way."),
            AIMessage("I see."),
            *(AIMessage("A glaze is mixed slowly. " * 8) if n % 2 else HumanMessage(f"Glaze {n}?") for n in range(40)),
        ]
        studio.append(talk)
        for question in ("What could I bake on Sunday?", "And on Monday?"):
            asked = HumanMessage(question)
            studio.append([asked, AIMessage("How about a hazelnut cake?")], pack=studio.context(asked))
        made.profile.remember("I live in Manila.", kind="fact", subject="home", actor="maya")
        made.usage.update()
        with memory_of(conn_string, f"{user_id}-stuck") as stuck:
            stuck.conversation("late").add_turn("a", "b")
        with psycopg.connect(conn_string, autocommit=True) as connection:
            connection.execute(
                "update memory_private.work set run_after = 'infinity', dead_at = now(), paused = "
                """'{"summary": {"error": "AuthenticationError", "failures": 8, "until": "infinity"}}'"""
                " where user_id = %s",
                [f"{user_id}-stuck"],
            )
        yield made


def test_each_question_is_answered_in_at_most_three_clicks(
    memory: SupabaseMemory, chromium: Browser, conn_string: str
) -> None:
    clicks = {}
    with memory_of(conn_string) as server, served(server, chromium) as everybody, served(memory, chromium) as mine:
        for question, answer in QUESTIONS.items():
            inspector: Served = everybody if question == OF_EVERYBODY else mine
            visit = Visit(inspector.open("/"))
            answer(visit)
            clicks[question] = visit.clicks
        assert everybody.said == []
        assert mine.said == []
    assert max(clicks.values()) <= MOST
    assert clicks == documented()
