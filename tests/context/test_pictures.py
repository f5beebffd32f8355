"""Notebook displays: tables and charts in which no message text is markup, on light and dark backgrounds."""

from __future__ import annotations

from collections.abc import Iterator
from html.parser import HTMLParser
from typing import Any
from xml.etree import ElementTree

import pytest
from langchain_core.messages import AIMessage, HumanMessage

from langchain_supabase_memory import ContextBudget, ExtractiveSummarizer, MemoryConfig, SummaryPolicy, SupabaseMemory
from langchain_supabase_memory.markup import table
from langchain_supabase_memory.telemetry import prompt_growth
from langchain_supabase_memory.types import PromptGrowth
from langchain_supabase_memory.values import Coverage, CoveredRange
from tests.each_case import each_case

EVIL = "</td></table></pre><script>alert('x')</script><img src=x onerror=\"y\">&amp; kiln \x1b[31m\u202egnp"
SVG = "{http://www.w3.org/2000/svg}"


class Elements(HTMLParser):
    """The elements and the text of a page."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: set[str] = set()
        self.text = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_data(self, data: str) -> None:
        self.text += data


def safe(html: str) -> Elements:
    """What a page shows, which holds nothing but what a table, a strip or a picture is made of."""
    page = Elements(html)
    assert not {"script", "img", "style", "link", "a"} & {*page.tags}
    assert not {name for name in page.attributes if name.startswith("on") or name in ("href", "src")}
    for unseen in "\x1b\u202e":
        assert unseen not in html
    for fixed in ("color:#000", "color:black", "background:#fff", "background:white", "solid white"):
        assert fixed not in html, "it takes the colors of the page"
    return page


@pytest.fixture
def memory(conn_string: str, user_id: str) -> Iterator[SupabaseMemory]:
    policy = SummaryPolicy(messages=8, keep_messages=4)
    budget = ContextBudget(characters=1500)
    with SupabaseMemory.from_conn_string(
        conn_string,
        user_id=user_id,
        config=MemoryConfig(policy=policy, recall=None),
        budget=budget,
        model=ExtractiveSummarizer(),
    ) as memory:
        yield memory


def test_everything_that_a_notebook_shows_is_text(memory: SupabaseMemory) -> None:
    thread = "</pre><script>t</script>"
    conversation = memory.conversation(thread, agent_id="<b>agent</b>")
    conversation.append([(AIMessage if n % 2 else HumanMessage)(f"{n} {EVIL}", name="<i>Eve</i>") for n in range(12)])
    conversation.update(title=EVIL.replace("\x1b", ""))
    conversation.index()
    pack = conversation.context(EVIL)
    shown: dict[str, tuple[Any, str]] = {
        "pack": (pack, "whole history"),
        "report": (pack.report(), "whole history"),
        "coverage": (conversation.coverage(), "verbatim"),
        "conversations": (memory.conversations(), "onerror"),
        "found": (memory.find("kiln"), "onerror"),
        "recalled": (memory.recall("kiln"), "onerror"),
        "board": (conversation.board.read(), ""),
        "growth": (prompt_growth([pack]), "everything"),
        "manifest": (pack.manifest, "of 1,500 characters, by api"),
    }
    for name, (value, words) in shown.items():
        if value is not None:
            page = safe(value._repr_html_())
            assert words in page.text, name
            assert "script" not in page.tags, name


def test_a_reason_in_a_coverage_is_text() -> None:
    ranges = [CoveredRange(0, 3, "omitted", reason='"><script>x</script>')]
    assert safe(Coverage(ranges)._repr_html_()).text.strip() == '0-3: omitted ("><script>x</script>)'


def test_a_table_has_a_cell_for_each_value() -> None:
    page = Elements(table("<b>All</b>", ("a", "<i>b</i>"), [(1, None), ("x\ny", "")], note="<u>n</u>"))
    assert (page.tags.count("th"), page.tags.count("td"), page.tags.count("tr")) == (2, 4, 3)
    assert page.text == "<b>All</b>a<i>b</i>1x y<u>n</u>"


def test_pages_of_lists_say_that_there_is_more(memory: SupabaseMemory) -> None:
    for number in range(3):
        memory.conversation(f"t{number}").append([HumanMessage("kiln")])
    assert "there are more" in memory.conversations(limit=2)._repr_html_()
    assert "there are more" not in memory.conversations()._repr_html_()
    assert memory.find("kiln", limit=2)._repr_html_().count("<tr>") == 3


def test_manifests_are_tables(memory: SupabaseMemory) -> None:
    conversation = memory.conversation("kiln")
    for number in range(12):
        asked = HumanMessage(f"And what of glaze {number}?")
        pack = conversation.context(asked)
        conversation.append([asked, AIMessage(f"Glaze {number}. {'Fire it. ' * 20}")], pack=pack)
    page = conversation.manifests(limit=3)
    shown = safe(page._repr_html_())
    assert "there are more" in shown.text
    assert shown.tags.count("tr") == 4
    for each in page.manifests:
        assert f"{each.turn}" in shown.text
        assert f"{each.full_tokens:,}" in shown.text
    later, _, earlier = page.manifests
    table_of = safe(later._repr_html_())
    assert table_of.tags.count("tr") == 1 + len(later.parts) + len(later.omitted)
    for part in later.parts:
        assert f"{part.name}{part.reason}{part.messages}" in table_of.text
    differs = later.since(earlier)
    text = safe(differs._repr_html_()).text
    recent = next(part for part in differs.parts if part.name == "recent")
    assert f"recent{recent.change}{recent.characters:+,}{recent.tokens:+,}" in text
    assert "first" in recent.change
    assert "nothing differs" in later.since(later)._repr_html_()
    small = conversation.context("Now?", budget=ContextBudget(characters=400), model=None).manifest
    left_out = safe(small._repr_html_()).text
    assert small.omitted
    assert all(f"left out{why}" in left_out for _, _, why in small.omitted)
    assert "omitted" in safe(small.since(later)._repr_html_()).text


def lines(picture: PromptGrowth) -> list[list[tuple[float, float]]]:
    """The points of each line that has a color of its own."""
    paths = ElementTree.fromstring(picture.svg).iter(f"{SVG}path")
    drawn = [each.attrib["d"][1:].split("L") for each in paths if each.get("fill") == "none"]
    return [[(float(x), float(y)) for x, y in (point.split() for point in each)] for each in drawn]


def test_prompts_grow_without_the_memory_and_not_with_it(memory: SupabaseMemory) -> None:
    conversation = memory.conversation("kiln")
    packs = []
    for number in range(40):
        packs.append(conversation.context(f"And what of glaze {number}?"))
        conversation.add_turn(f"And what of glaze {number}?", f"Glaze {number} is in drawer {number}. " * 4)
    picture = prompt_growth(packs)
    assert picture.full == tuple(sorted(picture.full))
    assert picture.full[-1] > 3 * picture.packed[-1]
    everything, sent = lines(picture)
    assert len(everything) == len(sent) == 40
    assert everything[-1][1] < sent[-1][1], "higher up in the picture"
    assert "40 turns" in str(picture)
    assert ElementTree.fromstring(picture.svg).attrib["aria-label"] == str(picture)
    assert prompt_growth([each.report() for each in packs]) == picture


@each_case(
    ("sent", "full"), [((), ()), ((0,), (0,)), ((5,), (3,)), ((7,) * 10_000, tuple(range(1, 10_001))), ((1,), (10**9,))]
)
def test_a_picture_of_any_length_stays_small_and_within_its_frame(sent: tuple[int, ...], full: tuple[int, ...]) -> None:
    picture = PromptGrowth(sent, full)
    safe(picture._repr_html_())
    assert len(picture.svg) < 20_000
    for line in lines(picture):
        assert all(0 <= x <= 720 and 30 <= y <= 220 for x, y in line)
        assert line[-1][0] == 570, "the last turn is drawn"
