"""Fuzzy matches: a misspelled speaker's name, a relative date, an answer that needs its question."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

import psycopg
import pytest
from langchain_core.messages import AIMessage, HumanMessage

from langchain_supabase_memory import ContextBudget, SupabaseMemory
from langchain_supabase_memory.settings import RecallWeights
from langchain_supabase_memory.values import Chunk
from tests.embedders import WordEmbedder

TUESDAY = datetime(2024, 5, 7, 20, tzinfo=UTC)
Line = tuple[str, str]


@pytest.fixture(params=["words", "vectors"])
def memory(conn_string: str, user_id: str, request: pytest.FixtureRequest) -> Iterator[SupabaseMemory]:
    embedder = WordEmbedder() if request.param == "vectors" else None
    with SupabaseMemory.from_conn_string(conn_string, user_id=user_id, embeddings=embedder) as memory:
        yield memory


def say(memory: SupabaseMemory, *lines: Line, thread_id: str = "t", at: datetime = TUESDAY) -> None:
    """Each message's id is its number."""
    first = lines[0][0]
    messages = [
        (HumanMessage if name == first else AIMessage)(text, name=name, id=f"{thread_id}{number}")
        for number, (name, text) in enumerate(lines)
    ]
    times = [at + timedelta(minutes=number) for number in range(len(lines))]
    memory.conversation(thread_id).append(messages, created_at=times)
    memory.conversation(thread_id).index()


def ids(chunks: list[Chunk]) -> list[str]:
    return [each.message_ids[0] for each in chunks]


def named(memory: SupabaseMemory, question: str) -> set[str | None]:
    """Whose words count more because a question names them."""
    return {each.speaker for each in memory.recall(question, limit=100).chunks if "speaker" in each.score_parts}


# --- Names


GARDEN: list[Line] = [
    ("Melanie", "I paint in the evening with oil."),
    ("Jonathan", "And I paint with chalk, as Joan does."),
    ("Melanie", "My plants need light, they stand by the window."),
    ("Jonathan", "Mine stand in the cellar, poor things."),
]


@pytest.mark.parametrize(
    ("called", "expected"),
    [
        ("Melanie", {"Melanie"}),
        ("Melany", set()),  # two edits, and seven letters
        ("Melanei", {"Melanie"}),
        ("melanie", set()),  # a word that looks like no name
        ("Mel", {"Melanie"}),
        ("Me", set()),
        ("Melody", set()),
        ("Jonahtan", {"Jonathan"}),
        ("Johnathon", {"Jonathan"}),
        ("Jonatan’s", {"Jonathan"}),
        ("Jon", {"Jonathan"}),
        ("Nathan", {"Jonathan"}),
        ("Johann", set()),
        ("Joan", set()),  # somebody else, who was spoken of
        ("X" * 300, set()),
    ],
)
def test_whose_name_is_misspelt_is_meant(memory: SupabaseMemory, called: str, expected: set[str]) -> None:
    say(memory, *GARDEN)
    assert named(memory, f"What does {called} paint with?") == expected


def test_a_misspelt_name_finds_what_the_right_one_does(memory: SupabaseMemory) -> None:
    say(memory, *GARDEN)
    found = {name: memory.recall(f"What does {name} paint with?").chunks for name in ("Jonathan", "Jonahtan")}
    assert ids(found["Jonahtan"])[0] == "t1"
    assert [each.score_parts for each in found["Jonahtan"]] == [each.score_parts for each in found["Jonathan"]]


def test_a_part_of_a_compound_or_the_stem_of_the_right_name_is_not_the_misspelt_word(memory: SupabaseMemory) -> None:
    german: list[Line] = [
        ("Jonathan", "Ich war heute mit John in der Stadt, und wir haben die Küche von meiner Schwester gemalt."),
        ("Maria", "Das ist schön, aber wann kommt ihr wieder nach Hause? Wir haben auch noch nichts gegessen."),
    ]
    english: list[Line] = [
        ("Kim", "The kitchen was painted by Melanie last week, and we have only watched her from the door."),
        ("Melanie", "That is what I do when there is nothing else to be done, and it was not that hard."),
    ]
    say(memory, *german * 3)
    say(memory, *english * 3, thread_id="u")
    assert named(memory, "What does Jonathon paint?") == {"Jonathan"}, "German finds John in it"
    assert named(memory, "What does Melanies paint?") == {"Melanie"}, "in English one stem"
    assert memory.recall("What does Jonathon not eat?", limit=3).fits


def test_a_name_that_somebody_has_is_nobody_elses(memory: SupabaseMemory) -> None:
    say(memory, ("Ana", "I swim."), ("Anna", "I run."), ("Anton Ruiz", "I sleep."))
    assert named(memory, "What does Ana do?") == {"Ana"}
    assert named(memory, "What does Ama do?") == set(), "of three letters none is misspelt"
    assert named(memory, "What does Annna do?") == {"Anna"}
    assert named(memory, "What do Annna and Ant do?") == {"Anna", "Anton Ruiz"}
    assert named(memory, "What does Riuz do?") == {"Anton Ruiz"}


def test_accents_and_other_scripts(memory: SupabaseMemory) -> None:
    say(memory, ("Joaquín", "Tengo prisa."), ("Мария", "Я читаю."))
    assert named(memory, "¿Qué tiene Joaquin?") == {"Joaquín"}
    assert named(memory, "Что читает Марья?") == {"Мария"}


def test_of_another_users_speakers_nobody_is_meant(memory: SupabaseMemory) -> None:
    say(memory, ("Ana", "I swim with Melanei."), ("Ben", "I run."))
    other = SupabaseMemory(memory._services.transport, user_id=f"{memory.user_id}-other")
    say(other, *GARDEN)
    assert named(memory, "What does Melanei do?") == set()
    assert named(other, "What does Melanei do?") == {"Melanie"}, "the word was said to another user alone"


def test_among_very_many_speakers_nobody_is_guessed(memory: SupabaseMemory) -> None:
    for number in range(3):
        lines = [(f"Person{number}x{each}", f"I have the number {each}.") for each in range(33)]
        say(memory, *lines, ("Melanie", "I paint."), thread_id=f"crowd{number}")
    assert named(memory, "What does Melanei do?") == {"Melanie"}, "a hundred"
    say(memory, ("Ben", "I run."), thread_id="one")
    assert named(memory, "What does Melanei do?") == set()
    assert named(memory, "What does Melanie do?") == {"Melanie"}


def edits(one: str, two: str) -> int:
    """The distance of Damerau and Levenshtein, where what changed places is not edited again."""

    @cache
    def least(i: int, j: int) -> int:
        if not i or not j:
            return i + j
        found = [least(i - 1, j) + 1, least(i, j - 1) + 1, least(i - 1, j - 1) + (one[i - 1] != two[j - 1])]
        if i > 1 and j > 1 and one[i - 2 : i] == two[j - 2 : j][::-1]:
            found.append(least(i - 2, j - 2) + 1)
        return min(found)

    return least(len(one), len(two))


def test_edits_are_counted_as_damerau_and_levenshtein_do(conn_string: str) -> None:
    source = random.Random(17)
    pairs = [("".join(source.choices("abc", k=source.randint(0, 6))), "") for _ in range(400)]
    for place, (word, _) in enumerate(pairs):
        letters = list(word)
        for _ in range(source.randint(0, 3)):
            at = source.randint(0, len(letters))
            letters[at : at + source.randint(0, 2)] = source.choices("abc", k=source.randint(0, 2))
        pairs[place] = (word, "".join(letters))
    with psycopg.connect(conn_string) as connection:
        for most in (0, 1, 2):
            rows = connection.execute(
                "select memory_private.within_edit_distance(one, two, %s) from unnest(%s::text[], %s::text[]) as p (one, two)",
                [most, [one for one, _ in pairs], [two for _, two in pairs]],
            ).fetchall()
            assert [row[0] for row in rows] == [edits(*pair) <= most for pair in pairs]


# --- Dates


def dated(memory: SupabaseMemory, question: str, **asked: Any) -> set[str]:
    """What counts more because a question names its date."""
    chunks = memory.recall(question, limit=100, **asked).chunks
    return {each.content for each in chunks if "date" in each.score_parts}


EVENTS = [
    "Yesterday a pipe burst.", "Last Friday we danced.", "Last week I was in Rome.", "Last month I painted.",
    "A year ago I moved.", "Nothing is told here.",
]  # fmt: skip


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ("on 6 May 2024", {"Yesterday a pipe burst."}),
        ("on 6 May", {"Yesterday a pipe burst."}),
        ("on 6 May 2023", set()),
        ("on 3 May 2024", {"Last Friday we danced.", "Last week I was in Rome."}),
        ("on 2 May 2024", {"Last week I was in Rome."}),
        ("on 7 May 2024", set(EVENTS)),  # it was all said then
        ("in April 2024", {"Last month I painted.", "Last week I was in Rome."}),
        ("on 20 April 2024", set()),
        ("in 2023", {"A year ago I moved."}),
        ("in June 2023", set()),
        ("on Friday", {"Last Friday we danced."}),
    ],
)
def test_a_day_that_is_told_of_is_the_one_that_is_asked_for(
    memory: SupabaseMemory, asked: str, expected: set[str]
) -> None:
    say(memory, *[("Ana", text) for text in EVENTS])
    assert dated(memory, f"What happened {asked}?") == expected


def test_yesterday_is_that_of_the_zone_of_who_asks(memory: SupabaseMemory) -> None:
    say(memory, ("Ana", "Yesterday a pipe burst."))  # at four in the morning of the eighth, in Manila
    assert dated(memory, "What was on 7 May 2024?", time_zone="Asia/Manila") == {"Yesterday a pipe burst."}
    assert not dated(memory, "What was on 6 May 2024?", time_zone="Asia/Manila")


def test_an_edited_message_tells_of_other_days(memory: SupabaseMemory) -> None:
    say(memory, ("Ana", "Yesterday a pipe burst."))
    memory.conversation("t").append([HumanMessage("Two days ago a pipe burst.", name="Ana", id="t0")])
    memory.conversation("t").index()
    assert not dated(memory, "What was on 6 May 2024?")
    assert dated(memory, "What was on 5 May 2024?") == {"Two days ago a pipe burst."}


@pytest.mark.parametrize(
    "told", ["{NULL}", "{'[-1000001,0)'}", "{'(,)'}", "{" + ",".join(f"'[{n},{n}]'" for n in range(9)) + "}"]
)
def test_the_database_refuses_days_that_nobody_tells_of(
    memory: SupabaseMemory, conn_string: str, user_id: str, told: str
) -> None:
    say(memory, ("Ana", "Yesterday a pipe burst."))
    with psycopg.connect(conn_string) as connection, pytest.raises(psycopg.Error):
        connection.execute(
            "update memory.working_memory_chunks set told = %s where user_id = %s", [told.replace("'", '"'), user_id]
        )


# --- Answers beside their questions

TALK: list[Line] = [
    ("Ana", "The weather is dull, and nobody is in the street."),
    ("Ben", "So I stay in and mend my old shoes."),
    ("Ana", "How many animals live in your house?"),
    ("Ben", "Two, by now."),
    ("Ana", "That is a lot for such a small flat, and for the neighbors."),
    ("Ben", "What color is your caller?"),
    ("Ana", "Blue."),
    ("Ben", "Blue is fine with me, mine has been like that for ten years."),
    ("Ana", "And the color of your car, is it blue or white?"),
    ("Ben", "Blue."),
]


@pytest.mark.parametrize("question", ["How many animals are there?", "Which animals does Ben have in the house?"])
def test_a_question_and_its_short_answer_come_with_one_another(memory: SupabaseMemory, question: str) -> None:
    say(memory, *TALK)
    found = memory.conversation("t").recall(question, limit=2).chunks
    assert sorted(ids(found)) == ["t2", "t3"]
    assert found[0].score == pytest.approx(found[1].score, abs=1e-6)
    assert "beside" not in found[0].score_parts
    assert found[1].score_parts["beside"] > 0
    alone = memory.conversation("t").recall(question, limit=10, weights=RecallWeights(beside=0)).chunks
    assert all("beside" not in each.score_parts for each in alone)
    assert ids(alone)[0] == ids(found)[0]


def test_who_speaks_alone_or_the_answers_own_words_bring_nothing(memory: SupabaseMemory) -> None:
    say(memory, *TALK)
    for question in ("What did Ben say?", "Two of which?"):
        found = memory.conversation("t").recall(question, limit=10).chunks
        assert not [each for each in found if {"t2", "t3"} & set(each.message_ids) and "beside" in each.score_parts]


def test_the_same_answer_to_another_question_is_no_repeat(memory: SupabaseMemory) -> None:
    say(memory, *TALK)
    found = ids(memory.conversation("t").recall("Which color has the caller, and which the car?", limit=5).chunks)
    assert {"t5", "t6", "t8", "t9"} <= set(found)


def test_a_pack_has_both(memory: SupabaseMemory) -> None:
    say(memory, *TALK)
    asked = "How many animals live there?"
    pack = memory.conversation("new").context(
        HumanMessage(asked), query=asked, recall="user", budget=ContextBudget(characters=500)
    )
    assert {"t2", "t3"} <= set(ids(list(pack.recalled)))


def test_neither_a_long_answer_nor_a_filter_nor_a_pause_brings_more(memory: SupabaseMemory) -> None:
    long = "Two: the dog that you have met, and a parrot that came with the flat."
    say(memory, *TALK[:3], ("Ben", long), *TALK[4:])
    found = memory.conversation("t").recall("How many animals are there?", limit=10).chunks
    assert not [each for each in found if each.content == long and "beside" in each.score_parts]
    say(memory, *TALK, thread_id="u")
    answers = memory.conversation("u").recall("How many animals are there?", types=["answer"]).chunks
    assert {each.type for each in answers} == {"answer"}
    assert all("beside" not in each.score_parts for each in answers)
    say(memory, *TALK[:3], thread_id="v")
    later = AIMessage("Two, by now.", name="Ben", id="v3")
    memory.conversation("v").append([later], created_at=[TUESDAY + timedelta(days=2)])
    memory.conversation("v").index()
    apart = memory.conversation("v").recall("How many animals are there?", limit=10).chunks
    assert all("beside" not in each.score_parts for each in apart)


def test_candidates_bring_their_pair_as_well(memory: SupabaseMemory) -> None:
    say(memory, *TALK)
    found = memory.conversation("t").recall("How many animals are there?", limit=2, exact_below=0)
    assert found.approximate
    assert sorted(ids(found.chunks)) == ["t2", "t3"]


def test_by_reciprocal_ranks_as_well(memory: SupabaseMemory) -> None:
    say(memory, *TALK)
    found = memory.conversation("t").recall("How many animals are there?", limit=2, fusion="rrf").chunks
    assert sorted(ids(found)) == ["t2", "t3"]
