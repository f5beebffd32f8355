"""The data sets for recall: small files of each form, and malformed ones."""

from __future__ import annotations

import json
import math
import re
import subprocess
import sys
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.retrieval import comparable, sets
from benchmarks.retrieval.data import ADVERSARIAL, Conversation, FormError, Question, Turn
from benchmarks.retrieval.data_sets import load
from benchmarks.retrieval.metrics import Packer, columns, measured
from benchmarks.retrieval.report import Results, together

LOCOMO: list[dict[str, Any]] = [
    {
        "sample_id": "conv-1",
        "conversation": {
            "speaker_a": "Ana",
            "speaker_b": "Ben",
            "session_10": [{"dia_id": "D10:1", "speaker": "Ben", "text": "A dog.", "blip_caption": "a dog"}],
            "session_10_date_time": "1:56 pm on 8 May, 2023",
            "session_2": [{"dia_id": "D2:1", "speaker": "Ana", "text": "Hello."}],
            "session_2_date_time": "9:01 am on 7 May, 2023",
        },
        "qa": [
            {"question": "Which pet?", "answer": "A dog", "evidence": ["D10:1"], "category": 4},
            {"question": "Which cat?", "evidence": ["D10:1"], "category": 5},
            {"question": "Lost?", "answer": "x", "evidence": ["D9:1"], "category": 1},
            {"question": "None?", "answer": 5, "evidence": [], "category": 3},
        ],
    }
]
LONGMEMEVAL: list[dict[str, Any]] = [
    {
        "question_id": "q1",
        "question_type": "single-session-user",
        "question": "Which kiln do I have?",
        "answer": "A Rohde",
        "question_date": "2023/06/01 (Thu) 10:00",
        "haystack_session_ids": ["b", "a"],
        "haystack_dates": ["2023/05/21 (Sun) 02:21", "2023/05/20 (Sat) 02:21"],
        "haystack_sessions": [
            [
                {"role": "user", "content": "I have a Rohde.", "has_answer": True},
                {"role": "assistant", "content": " ", "has_answer": False},
            ],
            [{"role": "user", "content": "Hello."}, {"role": "assistant", "content": "Hello!"}],
        ],
        "answer_session_ids": ["b"],
    }
]
REALTALK: dict[str, Any] = {
    "name": {"speaker_1": "Ana", "speaker_2": "Ben"},
    "session_1": [
        {"clean_text": "Hey", "speaker": "Ben", "date_time": "29.12.2023, 14:30:05", "dia_id": "D1:1"},
        {"clean_text": "", "speaker": "Ana", "date_time": "29.12.2023, 14:30:05", "dia_id": "D1:2"},
        {"clean_text": "I run at six", "speaker": "Ana", "date_time": "29.12.2023, 14:30:05", "dia_id": "D1:3"},
    ],
    "session_1_date_time": "29.12.2023, 14:30:05",
    "events_session_1": {},
    "qa": [
        {"question": "When does she run?", "answer": "at six", "evidence": ["D1:3; D1:1"], "category": 2},
        {"question": "Lost?", "answer": "x", "evidence": ["D7:1"], "category": 1},
    ],
}
CHAT: list[dict[str, Any]] = [
    {
        "batch_number": 1,
        "turns": [
            [
                {
                    "role": "user",
                    "id": 0,
                    "time_anchor": "March-15-2024",
                    "content": "Sprint ends on March 29 ->-> 1,1",
                },
                {"role": "assistant", "id": 1, "content": "Noted."},
            ],
            [{"role": "user", "id": 2, "content": "150 commits"}, {"role": "assistant", "id": 9, "content": "Well!"}],
        ],
    },
    {
        "batch_number": 2,
        "turns": [
            [
                {"role": "user", "id": 4, "time_anchor": "April-02-2024", "content": "165 commits"},
                {"role": "assistant", "id": 9, "content": "Fine!"},
            ]
        ],
    },
]
PROBING: dict[str, Any] = {
    "abstention": [{"question": "My past?", "ideal_response": "Nothing is said."}],
    "knowledge_update": [
        {
            "question": "How many commits?",
            "answer": "165",
            "source_chat_ids": {"original_info": [2], "updated_info": [4]},
        }
    ],
    "information_extraction": [
        {"question": "When does the sprint end?", "answer": "March 29", "source_chat_ids": [0, 0]},
        {"question": "Which of the two?", "answer": "?", "source_chat_ids": [9]},
    ],
}


def written(path: Path, document: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document))
    return path


def test_the_own_sets_name_who_speaks_and_evidence_that_exists() -> None:
    talks = {each.id: each for each in sets.conversations()}
    assert len(talks) == 6
    for talk in talks.values():
        assert len({turn.id for turn in talk.turns}) == len(talk.turns) >= 40
        assert all(one.at <= two.at for one, two in pairwise(talk.turns))
        assert len({turn.speaker for turn in talk.turns}) in (2, 3)
    for name in sets.SETS:
        asked = sets.questions(name)
        assert 25 <= len(asked) <= 40
        assert len({(each.conversation, each.question.text) for each in asked}) == len(asked)
        assert {each.conversation for each in asked} == talks.keys()
        for each in asked:
            turns = {turn.id: turn for turn in talks[each.conversation].turns}
            assert each.question.evidence
            assert each.question.evidence <= turns.keys()
            speakers = {turn.speaker for turn in turns.values()}
            if each.spelled_correctly is not None:
                words = set(re.findall(r"\w+", each.spelled_correctly)) - set(re.findall(r"\w+", each.question.text))
                assert words
                assert words <= speakers
                assert words == {turns[place].speaker for place in each.question.evidence}
    assert all(len(each.question.evidence) in (2, 3, 4) for each in sets.questions("neighbors"))


def test_locomo_is_read(tmp_path: Path) -> None:
    found = load(written(tmp_path / "locomo10.json", LOCOMO))
    (conversation,) = found.conversations
    assert (found.name, conversation.id, conversation.speakers) == ("LoCoMo", "conv-1", ("Ana", "Ben"))
    assert [(turn.id, turn.text, turn.session) for turn in conversation.turns] == [
        ("D2:1", "Hello.", 2),
        ("D10:1", "A dog. [a dog]", 10),
    ]
    assert conversation.turns[0].at == datetime(2023, 5, 7, 9, 1, tzinfo=UTC)
    assert [(each.category, set(each.evidence)) for each in conversation.questions] == [
        ("one turn", {"D10:1"}),
        (ADVERSARIAL, {"D10:1"}),
    ]


def test_longmemeval_is_read(tmp_path: Path) -> None:
    unanswered = {**LONGMEMEVAL[0], "question_id": "q1_abs"}
    found = load(written(tmp_path / "longmemeval_s.json", [*LONGMEMEVAL, unanswered]))
    first, second = found.conversations
    assert (found.name, first.id, second.questions) == ("LongMemEval", "q1", [])
    assert [(turn.id, turn.speaker, turn.text) for turn in first.turns] == [
        ("S0:0", "user", "Hello."),
        ("S0:1", "assistant", "Hello!"),
        ("S1:0", "user", "I have a Rohde."),
    ]
    assert first.turns[-1].at == datetime(2023, 5, 21, 2, 21, tzinfo=UTC)
    (question,) = first.questions
    assert (set(question.evidence), question.category) == ({"S1:0"}, "single-session-user")
    assert len(load(tmp_path / "longmemeval_s.json", 1).conversations) == 1


def test_realtalk_is_read_by_file_and_by_folder(tmp_path: Path) -> None:
    one = load(written(tmp_path / "Chat_1_Ana_Ben.json", REALTALK))
    written(tmp_path / "Chat_2_Ana_Ben.json", REALTALK)
    found = load(tmp_path)
    assert (found.name, [each.id for each in found.conversations]) == ("REALTALK", ["Chat_1_Ana_Ben", "Chat_2_Ana_Ben"])
    assert one.conversations == found.conversations[:1]
    (question,) = found.conversations[0].questions
    assert (set(question.evidence), question.category) == ({"D1:1", "D1:3"}, "time")
    turns = found.conversations[0].turns
    assert [(turn.id, turn.speaker) for turn in turns] == [("D1:1", "Ben"), ("D1:3", "Ana")]
    assert turns[0].at == datetime(2023, 12, 29, 14, 30, 5, tzinfo=UTC)
    assert turns[0].at < turns[1].at


def test_beam_is_read(tmp_path: Path) -> None:
    for number in (10, 9):
        written(tmp_path / f"100K/{number}/chat.json", CHAT)
        written(tmp_path / f"100K/{number}/probing_questions/probing_questions.json", PROBING)
    found = load(tmp_path / "100K")
    assert (found.name, [each.id for each in found.conversations]) == ("BEAM", ["100K/9", "100K/10"])
    conversation = found.conversations[0]
    assert [turn.text for turn in conversation.turns][:3] == ["Sprint ends on March 29", "Noted.", "150 commits"]
    assert len({turn.id for turn in conversation.turns}) == 6
    assert conversation.turns[4].at == datetime(2024, 4, 2, tzinfo=UTC)
    assert [(each.category, set(each.evidence)) for each in conversation.questions] == [
        ("knowledge_update", {"2", "4"}),
        ("information_extraction", {"0"}),
    ]


@pytest.mark.parametrize(
    ("document", "says"),
    [
        ([], "no form that is known"),
        ({}, "no form that is known"),
        (5, "no form that is known"),
        ([5], "no form that is known"),
        ([{"haystack_sessions": []}], "haystack_dates"),
        ([{**LONGMEMEVAL[0], "haystack_dates": ["yesterday", "today"]}], "yesterday"),
        ([{**LONGMEMEVAL[0], "haystack_dates": []}], "not of the form"),
        ([{**LONGMEMEVAL[0], "haystack_sessions": [[{"role": "tool", "content": "x"}], []]}], "neither user nor"),
        ([{**LONGMEMEVAL[0], "question_id": "q_abs"}], "no question"),
        ([{**LOCOMO[0], "qa": 5}], "not of the form"),
        ([{**LOCOMO[0], "conversation": {}}], "speaker_a"),
        ({"session_1": [{"clean_text": "x"}], "qa": []}, "not of the form"),
        ({**REALTALK, "qa": [{"question": "x", "category": 77, "evidence": []}]}, "77"),
    ],
)
def test_what_is_of_no_form_is_refused(tmp_path: Path, document: Any, says: str) -> None:
    with pytest.raises(FormError, match=says):
        load(written(tmp_path / "data.json", document))


def test_what_cannot_be_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FormError, match="git clone"):
        load(tmp_path / "nowhere.json")
    with pytest.raises(FormError, match=r"no chat\.json"):
        load(tmp_path)
    (tmp_path / "broken.json").write_text('{"a":')
    (tmp_path / "bytes.json").write_bytes(b"\xff\xfe\x00")
    for name in ("broken.json", "bytes.json"):
        with pytest.raises(FormError, match="is no JSON"):
            load(tmp_path / name)
    written(tmp_path / "beam/1/chat.json", CHAT)
    with pytest.raises(FormError, match=r"probing_questions\.json is missing"):
        load(tmp_path / "beam")
    written(tmp_path / "beam/1/probing_questions/probing_questions.json", PROBING)
    written(tmp_path / "beam/1/chat.json", [{"plan-0": CHAT}])
    with pytest.raises(FormError, match="turns"):
        load(tmp_path / "beam")


def test_the_measures_of_a_ranking_in_the_units_of_others() -> None:
    at = datetime(2026, 5, 1, tzinfo=UTC)
    turns = [Turn(str(number), "user", f"turn {number}", number // 4, at) for number in range(48)]
    packer = Packer(Conversation("c", ("user", "assistant"), turns, []))
    question = Question("?", "", frozenset({"0", "20"}), "kind")

    def values(*ranked: int) -> dict[str, float]:
        return dict(zip(columns(), measured(packer, question, [(str(each),) for each in ranked]), strict=True))

    best = values(0, 20, *range(30, 40))
    assert (best["session@5"], best["r@5"], best["full@10"], best["ndcg@10"]) == (1, 1, 1, 1)
    assert (best["any@5"], best["all@5"], best["all@10"]) == (1, 1, 1)
    beside = values(30, 1, 31, 32, 33, 20)  # the session of one of them second, the other one sixth
    assert (beside["session@5"], beside["r@5"], beside["r@10"]) == (1, 0, 0.5)
    assert beside["ndcg@10"] == pytest.approx(1 / math.log2(7) / (1 + 1 / math.log2(3)))
    # Thirty to thirty-three are of two sessions: those of the evidence are the second and the fourth.
    assert (beside["any@5"], beside["all@5"]) == (1, 1)
    late = values(*range(44, 20, -4), 0, 20)  # six other sessions first
    assert (late["any@5"], late["any@10"], late["all@5"], late["all@10"]) == (0, 1, 0, 1)
    assert (late["session@5"], late["session@10"]) == (0, 1)
    none = values(*range(30, 42))
    assert (none["session@10"], none["ndcg@10"], none["mrr"]) == (0, 0, 0)


def test_conversations_that_were_tuned_on_are_apart() -> None:
    assert comparable.split("LoCoMo", "conv-26") == "tuned on"
    assert comparable.split("LoCoMo", "conv-41") == "held out"
    assert comparable.split("BEAM", "chats/100K/10") == comparable.split("BEAM", "100K/1") == "tuned on"
    assert comparable.split("BEAM", "100K/11") == comparable.split("BEAM", "1M/1") == "held out"
    assert comparable.split("LongMemEval", "conv-26") == "held out"

    at = datetime(2026, 5, 1, tzinfo=UTC)
    turns = [Turn(str(number), "user", f"turn {number}", number, at) for number in range(3)]
    asked = [Question("Who?", "", frozenset({"0"}), "one turn"), Question("Never?", "", frozenset({"1"}), ADVERSARIAL)]
    talks = [Conversation(name, ("user", "assistant"), turns, asked) for name in ("conv-26", "conv-41", "conv-44")]
    found = dict.fromkeys(columns(), 1.0)
    nothing = dict.fromkeys(columns(), 0.0)
    values = {"ours": np.array([[*each.values()] for each in (found, found, nothing, found, found, nothing)])}
    groups = comparable.by_split("LoCoMo", talks, values)
    assert {name: (each["questions"], each["sessions"]) for name, each in groups.items()} == {
        "tuned on": (1, 3),
        "tuned on, with adversarial ones": (2, 3),
        "held out": (2, 3),
        "held out, with adversarial ones": (4, 3),
    }
    means = {name: each["rankings"]["ours"]["any@5"]["mean"] for name, each in groups.items()}
    assert means == {
        "tuned on": 100,
        "tuned on, with adversarial ones": 100,
        "held out": 50,
        "held out, with adversarial ones": 50,
    }
    missed = comparable.missed("LoCoMo", talks, values)
    assert [(row["conversation"], row["category"], row["question"]) for row in missed] == [
        ("conv-41", "one turn", "Who?"),
        ("conv-44", ADVERSARIAL, "Never?"),
    ]
    kinds = [question.category for talk in talks for question in talk.questions]
    results = Results("LoCoMo", 3, 3, splits=groups, categories=kinds, missed=missed)
    measured_here, published, misses = results.tables("ours", "staged", ["ours"])
    assert [row[:4] for row in measured_here.rows] == [
        ["ours", name, str(each["questions"]), "3"] for name, each in groups.items()
    ]
    assert misses.rows == [["ours", ADVERSARIAL, "3", "0", "1", "1"], ["ours", "one turn", "3", "0", "1", "1"]]
    assert "ours" not in {row[0] for row in published.rows}


def test_published_rows_have_a_definition_and_an_address() -> None:
    rows = comparable.published()
    assert {each.data for each in rows} == {"LoCoMo", "LongMemEval", "BEAM"}
    for each in rows:
        assert each.metric in comparable.SHOWN
        assert 0 < each.value <= 100
        assert each.system
        assert each.definition
        assert each.address.startswith("https://")
        assert each.questions is None or each.questions > 0
    assert len({(each.data, each.system, each.metric) for each in rows}) == len(rows)
    table = comparable.published_table("LoCoMo")
    assert table is not None
    assert all(each.address in table.text() for each in rows if each.data == "LoCoMo")
    assert comparable.published_table("REALTALK") is None


def test_one_table_has_every_data_set() -> None:
    values = {name: {"mean": 50.0, "low": 45.0, "high": 55.0} for name in columns()}
    ranked = {"ours": {"all": {"questions": 7, **values}}}
    found = [Results(name, 1, 7, rankings=ranked) for name in ("LoCoMo", "BEAM")]
    table = together(found, ["ours", "not measured"])
    assert [row[:4] for row in table.rows] == [["LoCoMo", "ours", "7", "50.0 ±5.0"], ["BEAM", "ours", "7", "50.0 ±5.0"]]
    # Targets are those of one half of one data set.
    assert all("met " not in each.text() and "MISSED" not in each.text() for each in found[1].tables("ours", "staged"))


def test_targets_have_verdicts_and_questions_are_compared_one_by_one() -> None:
    kept = {budget: {"evidence": share} for budget, share in (("2000", 80.6), ("4000", 87.4), ("12000", 94.0))}
    for each in kept.values():
        each.update(grounded=50.0, anywhere=50.0)
    gains = {
        "r@10": {"mean": 1.0, "low": 0.1, "high": 2.0},
        "r@2000c": {"mean": 1.0, "low": -0.1, "high": 2.0},
        "r@4000c": {"mean": 1.0, "low": 0.1, "high": 2.0},
    }
    found = Results("LoCoMo", 5, 757, packs={"ours": kept, "staged": kept}, gains=gains)
    found.each = {"ours, r@10": [0.0, 1.0, 1.0], "new": [1.0], "other questions": [1.0, 1.0]}
    found.compare({"ours, r@10": [0.0, 1.0, 0.0], "other questions": [1.0]})
    notes = "\n".join(each.text() for each in found.tables("ours", "staged"))
    for said in (
        "met    ours: evidence in 2,000 characters: 80.60 >= 80.5",
        "MISSED ours: evidence in 4,000 characters: 87.40 >= 87.5",
        "MISSED staged: evidence in 2,000 characters: 80.60 >= 82.5",
        "MISSED r@2000c: lower end of the interval: -0.10 >= 0",
        "met    r@10: lower end of the interval: 0.10 >= 0",
    ):
        assert said in notes
    assert list(found.changes) == ["ours, r@10"]
    change = found.changes["ours, r@10"]
    assert (change["before"], change["now"], change["mean"]) == (33.33, 66.67, 33.33)
    assert change["low"] <= change["mean"] <= change["high"]


def test_the_benchmark_of_recall_needs_no_package_of_the_other_benchmarks() -> None:
    """Its environment has its own group and two extras; what it imports is checked where everything is installed."""
    others = ("psycopg_pool", "langmem", "fastapi", "fastmcp", "langgraph.checkpoint.postgres")
    code = f"import sys; sys.modules.update(dict.fromkeys({others!r})); import benchmarks.retrieval.__main__"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
