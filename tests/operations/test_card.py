"""A board as a card: no text becomes markup, and all of it is readable in any display."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from html.parser import HTMLParser
from typing import Any

from langchain_supabase_memory.operations.boards.board import Board, BoardItem
from langchain_supabase_memory.operations.boards.html import board_card
from langchain_supabase_memory.operations.boards.kinds import BOARD_KINDS, SENTENCES_FIRST, BoardItemKind
from tests.each_case import each_case

TIME = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
LATER = TIME + timedelta(days=4, hours=1)
NASTY = """<script>alert('x')</script><img src=x onerror="alert(1)"><style>*{display:none}</style>&amp;"""
ENDLESS = "https://example.com/" + "x" * 250
ARABIC = "يعيش في القاهرة منذ 2019"


def item(kind: BoardItemKind, text: str, **more: Any) -> BoardItem:
    made = BoardItem(
        id="i", kind=kind, text=text, state=BOARD_KINDS[kind].states[0], type=None, quote=None,
        message_ids=["m"], sequences=[3], importance=0.5, first_seen_at=TIME, last_seen_at=TIME, version=1,
        superseded_by=None, superseded_at=None, pinned=False, author="told", edited_by=None, edited_at=None,
    )  # fmt: skip
    return replace(made, **more)


def board(*items: BoardItem, **more: Any) -> Board:
    made = Board("trip", "What was said.", items=list(items), through_sequence=9, next_sequence=10, model="told")
    return replace(made, **more)


KINDS: tuple[BoardItemKind, ...] = tuple(each.kind for each in SENTENCES_FIRST)


def full(text: str) -> Board:
    """A board with a text wherever one can stand."""
    more: dict[str, Any] = {"quote": f"“{text}", "author": text, "edited_by": f"{text}!", "edited_at": TIME}
    items = [item(kind, text, type="person" if BOARD_KINDS[kind].types else None, **more) for kind in KINDS]
    return board(
        *items, thread_id=text, summary=text, edited_summary=text, edited_by=text, edited_at=TIME, context_notes=text,
        model=f"{text}?", unlisted=1,
    )  # fmt: skip


class Card(HTMLParser):
    """A card as a browser has it: its elements, and each text with those around it."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[tuple[str, dict[str, str]]] = []
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.texts: list[tuple[str, list[dict[str, str]]]] = []
        self.feed(html)
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.elements.append((tag, given))
        if tag != "br":
            self.open.append((tag, given))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop()[0] == tag

    def handle_data(self, data: str) -> None:
        if data.strip():
            self.texts.append((data, [given for _, given in self.open]))

    @property
    def text(self) -> str:
        return " ".join(" ".join(text for text, _ in self.texts).split())


def styles(given: dict[str, str]) -> dict[str, str]:
    return dict(each.split(":", 1) for each in given.get("style", "").split(";") if each)


@each_case("text", [NASTY, '" onmouseover="alert(1)', "'><svg onload=alert(1)>", "</section></div>", "\u202e"])
def test_nothing_that_was_said_is_markup(text: str) -> None:
    shown = Card(board_card(full(text)))
    assert {tag for tag, _ in shown.elements} <= {"section", "div", "span", "ul", "li", "br", "s", "time"}
    names = {name for _, given in shown.elements for name in given}
    assert names <= {"style", "dir", "role", "aria-level", "aria-label"}
    harmless = board_card(full("harmless"))
    assert [each[0] for each in shown.elements] == [each[0] for each in Card(harmless).elements]
    assert "url(" not in harmless
    assert "position" not in harmless
    assert sum(text in said for said, _ in shown.texts) >= 3 + 4 * len(KINDS)


def test_all_that_was_said_has_the_direction_of_its_letters() -> None:
    shown = Card(board_card(full(ARABIC)))
    for text, around in shown.texts:
        if ARABIC in text:
            assert any(given.get("dir") == "auto" for given in around), text
        else:
            assert not any("dir" in given for given in around), text


def test_nothing_runs_out_of_the_card() -> None:
    shown = Card(board_card(full(ENDLESS)))
    (_, outer), *_ = shown.elements
    style = styles(outer)
    assert (style["overflow-wrap"], style["box-sizing"], style["max-width"]) == (
        "anywhere",
        "border-box",
        "min(760px,100%)",
    )
    boxes = [styles(given) for _, given in shown.elements if "inline-block" in given.get("style", "")]
    assert len(boxes) == 2
    for each in boxes:
        assert (each["max-width"], each["box-sizing"]) == ("100%", "border-box")
    assert not any("overflow-wrap" in given.get("style", "") for _, given in shown.elements[1:]), "it is inherited"
    kept = [text for text, around in shown.texts if any("nowrap" in given.get("style", "") for given in around)]
    assert all(re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d", text) for text in kept)


def luminance(color: tuple[float, ...]) -> float:
    """How bright a color is, as WCAG 2 has it."""
    linear = [each / 12.92 if each <= 0.04045 else ((each + 0.055) / 1.055) ** 2.4 for each in color]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(text: str, page: str, opacity: float) -> float:
    ink, paper = (tuple(int(each[at : at + 2], 16) / 255 for at in (1, 3, 5)) for each in (text, page))
    seen = tuple(opacity * one + (1 - opacity) * other for one, other in zip(ink, paper, strict=True))
    light, dark = sorted((luminance(seen), luminance(paper)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@each_case(
    ("text", "page"),
    [
        ("#000000", "#ffffff"),
        ("#3b3b3b", "#ffffff"),
        ("#ffffff", "#111111"),
        ("#e0e0e0", "#111111"),
        ("#cccccc", "#1e1e1e"),
    ],
)
def test_every_word_can_be_read_on_light_and_dark_pages(text: str, page: str) -> None:
    shown = Card(board_card(full("text")))
    assert round(contrast("#888888", "#ffffff", 1), 2) == 3.54, "a grey of its own could not"
    for said, around in shown.texts:
        opacity = 1.0
        for given in around:
            assert not {"color", "background", "background-color"} & styles(given).keys()
            opacity *= float(styles(given).get("opacity", 1))
        assert contrast(text, page, opacity) >= 4.5, said


def test_headings_are_headings() -> None:
    shown = Card(board_card(full("text")))
    found = [(around[-1] if around[-1].get("role") else around[-2])["aria-level"] for _, around in shown.texts
             if any(given.get("role") == "heading" for given in around)]  # fmt: skip
    assert found == ["3", *("4" for _ in KINDS)]
    assert shown.elements[0][1]["aria-label"] == "Board of text"


@each_case("kind", KINDS)
def test_all_evidence_is_in_sight(kind: BoardItemKind) -> None:
    made = item(
        kind, "Budget", quote="we have 4,200 euros", sequences=[3, 7, 12], last_seen_at=LATER, superseded_at=LATER,
        pinned=True, author="tomas", edited_by="ana", edited_at=LATER,
    )  # fmt: skip
    shown = Card(board_card(board(made)))
    assert not any("title" in given for _, given in shown.elements)
    for each in (
        "pinned", "superseded, held until 2026-03-06 10:00", "by tomas", "edited by ana 2026-03-06 10:00",
        "messages 3, 7 and 12", "first 2026-03-02 09:00 , last 2026-03-06 10:00", "“ we have 4,200 euros ”",
    ):  # fmt: skip
        assert each in shown.text
    crossed_out = any(tag == "s" for tag, _ in shown.elements)
    assert crossed_out


def test_what_says_nothing_is_not_said() -> None:
    text = Card(board_card(board(item("fact", "User: I live in Cebu", quote="I live in Cebu")))).text
    assert text.endswith("User: I live in Cebu message 3 · 2026-03-02 09:00"), (
        "neither the same words again nor the writer"
    )
    added = item("action", "Book", sequences=[], author="ana", edited_by="ana", edited_at=TIME)
    assert Card(board_card(board(added))).text.endswith("Book by ana 2026-03-02 09:00")
    assert "messages 0, 1, 2, 3, 4, 5, 6, 7 and 12 more" in board_card(
        board(item("topic", "x", sequences=list(range(20))))
    )


def test_a_time_elsewhere_is_told_in_utc() -> None:
    made = item("fact", "x", first_seen_at=datetime.fromisoformat("2026-03-02T17:00:00+08:00"))
    html = board_card(board(replace(made, last_seen_at=made.first_seen_at)))
    assert "times in UTC" in html
    assert "2026-03-02 09:00" in html


@each_case(("unlisted", "said"), [(1, "1 more item is on the board"), (1_200, "1,200 more items are on")])
def test_what_is_not_listed_is_counted(unlisted: int, said: str) -> None:
    assert said in board_card(board(item("fact", "x"), unlisted=unlisted))
    assert "not listed" not in board_card(board(item("fact", "x")))
    assert "Nothing is on the board" not in board_card(Board("t", unlisted=unlisted))


def test_an_empty_board_says_so() -> None:
    assert Card(board_card(Board("t"))).text == "t nothing yet · version 0 Nothing is on the board yet."
