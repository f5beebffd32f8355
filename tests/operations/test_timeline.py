"""The chart of recalled chunks: correct, readable, and without message text as markup."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone
from xml.etree import ElementTree

import pytest

from langchain_supabase_memory.errors import InvalidInputError
from langchain_supabase_memory.operations.recall.chunk_timeline import MAX_DRAWN, ChunkTimeline, chunk_timeline
from langchain_supabase_memory.values import Chunk
from tests.each_case import each_case

BEGUN = datetime(2026, 9, 28, 8, tzinfo=UTC)
SVG = "{http://www.w3.org/2000/svg}"


def chunk(
    place: int,
    said_at: datetime,
    *,
    content: str = "words",
    score: float | None = None,
    speaker: str | None = None,
) -> Chunk:
    return Chunk(
        id=str(place), thread_id="t", agent_id="default", place=place, part=1, from_sequence=place, to_sequence=place,
        message_ids=[str(place)], episode=0, type="fact", role="user", speaker=speaker, said_at=said_at,
        content=content, importance=0.5, score=score,
    )  # fmt: skip


def weeks(count: int) -> list[Chunk]:
    return [chunk(place, BEGUN + timedelta(hours=place * 1000 / count)) for place in range(count)]


def parsed(picture: ChunkTimeline) -> ElementTree.Element:
    """The picture as XML, which it must be to be saved as a file."""
    html = picture._repr_html_()
    assert picture.svg in html
    return ElementTree.fromstring(picture.svg)


def shown(picture: ChunkTimeline) -> list[str]:
    return [str(each.text) for each in parsed(picture).iter(f"{SVG}text")]


def dates(picture: ChunkTimeline) -> list[str]:
    """What is written below the line."""
    return [str(each.text) for each in parsed(picture).iter(f"{SVG}text") if each.get("text-anchor") == "middle"]


def stems(picture: ChunkTimeline) -> list[tuple[str, float, float]]:
    """Title, place and height of each recalled chunk, in the order in which they are drawn."""
    found = []
    for group in parsed(picture).iter(f"{SVG}g"):
        title, circle = group.find(f"{SVG}title"), group.find(f"{SVG}circle")
        assert title is not None
        assert circle is not None
        found.append((str(title.text), float(circle.attrib["cx"]), float(circle.attrib["cy"])))
    return found


def test_what_was_said_is_text_and_nothing_else() -> None:
    evil = "</title></svg><script>alert('x')</script><img src=x onerror=\"y\">&amp; \x00\x1b[31m\u202egnp\ud800"
    said = [chunk(0, BEGUN, content=evil, speaker='"><b>Eve', score=1.0), chunk(1, BEGUN + timedelta(days=1))]
    picture = chunk_timeline(said, said[:1])
    html = picture._repr_html_()
    assert "<script" not in html
    assert "<img" not in html
    assert "<b>" not in html
    for unseen in "\x00\x1b\u202e\ud800":
        assert unseen not in html
    [(title, _, _)] = stems(picture)
    assert "User (b Eve): </title></svg><script>alert('x')</script><img src=x onerror=\"y\">&amp;" in title
    assert "Eve" not in str(picture)
    assert "alert" not in repr(picture)


def test_a_long_text_is_shown_with_its_beginning() -> None:
    said = [chunk(0, BEGUN, content="word\n" * 100_000, score=0.5)]
    [(title, _, _)] = stems(chunk_timeline(said, said))
    assert title.endswith("word word…")
    assert len(title) < 250


def test_stems_are_as_high_as_scores_and_the_best_is_named() -> None:
    said = weeks(10)
    found = [chunk(place, said[place].said_at, score=score) for place, score in ((7, 0.8), (2, 0.4), (5, 0.2))]
    picture = chunk_timeline(said, found)
    drawn = stems(picture)
    assert [title.split(",")[0] for title, _, _ in drawn] == ["3: message 5", "2: message 2", "1: message 7"]
    base = 176
    heights = [base - y for _, _, y in drawn]
    assert heights[1] / heights[2] == pytest.approx(0.5)
    assert heights[0] / heights[2] == pytest.approx(0.25)
    assert drawn[1][1] < drawn[0][1] < drawn[2][1]  # left to right as it was said
    assert "message 7, 30 Oct" not in shown(picture)
    assert any(each.startswith("message 7, ") for each in shown(picture))
    assert "score 0.80" in drawn[2][0]
    assert parsed(picture).get("aria-label") == "3 of 10 chunks recalled, said from 2026-09-28 to 2026-11-04"


def test_it_is_the_same_whatever_the_order_of_what_was_said() -> None:
    said = weeks(50)
    found = [chunk(place, said[place].said_at, score=place / 50) for place in range(0, 50, 7)]
    assert chunk_timeline(said, found).svg == chunk_timeline(said[::-1], found).svg


def test_nothing_and_a_single_chunk_can_be_drawn() -> None:
    nothing = chunk_timeline([])
    assert stems(nothing) == []
    assert str(nothing) == "0 of 0 chunks recalled"
    one = [chunk(0, BEGUN)]
    assert stems(chunk_timeline(one)) == []
    [(title, x, y)] = stems(chunk_timeline(one, one))
    assert x == pytest.approx((44 + 940) / 2)
    assert 36 < y < 176  # no score: no height that would mean anything
    assert "score" not in title
    assert dates(chunk_timeline(one)) == ["28 Sep 08:00"]
    unscored = [chunk(0, BEGUN, score=0.0), chunk(1, BEGUN, score=-0.1)]
    assert len(stems(chunk_timeline(unscored, unscored))) == 2


def test_what_was_recalled_from_elsewhere_widens_the_time_line() -> None:
    picture = chunk_timeline([chunk(0, BEGUN)], [chunk(0, BEGUN - timedelta(days=10), score=1.0)])
    [(_, x, _)] = stems(picture)
    assert x == 44
    assert str(picture).splitlines()[1].startswith("2026-09-18 │█")


def test_thousands_of_chunks_are_thinned() -> None:
    said = weeks(20_000)
    found = [chunk(each.place, each.said_at, score=each.place / 20_000) for each in said[::20]]
    picture = chunk_timeline(said, found)
    drawn = stems(picture)
    assert len(drawn) == MAX_DRAWN
    assert {int(re.findall(r"message (\d+)", title)[0]) for title, _, _ in drawn} == {
        each.place for each in found[-MAX_DRAWN:]
    }
    assert f"1,000 of 20,000 chunks recalled, the best {MAX_DRAWN} drawn" in str(picture)
    assert len(picture.svg) < 60_000


@each_case(
    ("length", "wanted"),
    [
        (timedelta(minutes=5), ["28 Sep 08:00", "08:01", "08:02", "08:03", "08:04", "08:05"]),
        (timedelta(hours=20), ["28 Sep 09:00", "12:00", "15:00", "18:00", "21:00", "29 Sep 00:00", "03:00"]),
        (timedelta(days=3), ["28 Sep 12:00", "29 Sep 00:00", "12:00", "30 Sep 00:00", "12:00", "1 Oct 00:00"]),
        (timedelta(days=40), ["5 Oct", "12 Oct", "19 Oct", "26 Oct", "2 Nov"]),
        (timedelta(days=200), ["Oct 2026", "Nov 2026", "Dec 2026", "Jan 2027", "Feb 2027", "Mar 2027", "Apr 2027"]),
        (timedelta(days=3650), ["2028", "2030", "2032", "2034", "2036"]),
    ],
)
def test_dates_are_round(length: timedelta, wanted: list[str]) -> None:
    assert dates(chunk_timeline([chunk(0, BEGUN), chunk(1, BEGUN + length)])) == wanted


@each_case("first", [datetime(1, 1, 2, tzinfo=UTC), datetime(9999, 12, 1, tzinfo=UTC)])
def test_times_at_the_end_of_the_calendar_can_be_drawn(first: datetime) -> None:
    assert stems(chunk_timeline([chunk(0, first), chunk(1, BEGUN)], [chunk(0, first, score=1)]))
    assert stems(chunk_timeline([chunk(0, first), chunk(1, first + timedelta(days=20))], [chunk(0, first, score=1)]))


def test_dates_are_the_readers() -> None:
    late = datetime(2026, 9, 30, 20, tzinfo=UTC)
    said = [chunk(0, late, score=1.0)]
    assert dates(chunk_timeline(said, said, time_zone="Asia/Manila")) == ["1 Oct 04:00"]
    assert dates(chunk_timeline(said, said, time_zone=timezone(timedelta(hours=-10)))) == ["30 Sep 10:00"]
    assert "2026-10-01 04:00" in stems(chunk_timeline(said, said, time_zone="Asia/Manila"))[0][0]
    with pytest.raises(InvalidInputError):
        chunk_timeline(said, time_zone="Mars/Olympus")


def test_a_change_to_summer_time_moves_no_day() -> None:
    begun = datetime(2026, 3, 26, 23, tzinfo=UTC)
    picture = chunk_timeline([chunk(0, begun), chunk(1, begun + timedelta(days=6))], time_zone="Europe/Berlin")
    assert dates(picture) == ["27 Mar", "28 Mar", "29 Mar", "30 Mar", "31 Mar", "1 Apr", "2 Apr"]


def test_a_terminal_gets_two_lines_that_fit() -> None:
    said = weeks(300)
    found = [chunk(150, said[150].said_at, score=0.5), chunk(299, said[299].said_at, score=0.25)]
    caption, line = str(chunk_timeline(said, found)).splitlines()
    assert caption == "2 of 300 chunks recalled"
    assert len(line) <= 80
    assert line.count("█") == 1
    assert line.endswith("▅│ 2026-11-08")
