"""The harness for answers: its readers, its judges, and runs with stand-ins that are cut off and continued."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from langchain_core.language_models import FakeListChatModel

from benchmarks.answers.__main__ import main
from benchmarks.answers.judges import JudgeError, ModelJudge, WordJudge
from benchmarks.answers.questions import ABSTENTION, AnswerQuestion, load
from benchmarks.answers.run import ResultsFile, Runner, RunSettings
from benchmarks.retrieval.data import FormError
from benchmarks.retrieval.package import Package
from langchain_supabase_memory.testing import OfflineQuotingModel
from tests.project.test_retrieval_data import CHAT, LOCOMO, LONGMEMEVAL, PROBING, written
from tests.services.postgres import Cluster

KILN: list[dict[str, Any]] = [
    {
        "sample_id": "conv-1",
        "conversation": {
            "speaker_a": "Ana",
            "speaker_b": "Ben",
            "session_1_date_time": "9:01 am on 7 May, 2023",
            "session_1": [
                {"dia_id": "D1:1", "speaker": "Ana", "text": "My kiln shows the code E-47."},
                {"dia_id": "D1:2", "speaker": "Ben", "text": "My dog is called Bruno."},
            ],
        },
        "qa": [
            {"question": "Which code does the kiln show?", "answer": "E-47", "evidence": ["D1:1"], "category": 4},
            {"question": "How is the dog called?", "answer": "Bruno", "evidence": ["D1:2"], "category": 4},
            {"question": "Why a dog?", "answer": "For company in the long nights", "evidence": [], "category": 3},
            {"question": "Whose cat is it?", "adversarial_answer": "Ana", "evidence": ["D1:2"], "category": 5},
        ],
    }
]
SETTINGS = RunSettings("locomo", "stand-in", "stand-in", None, 12_000)


def rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_each_set_says_what_a_right_answer_is(tmp_path: Path) -> None:
    (locomo,) = load("locomo", written(tmp_path / "locomo.json", LOCOMO))
    assert [(each.text, each.category, each.expected) for each in locomo.questions] == [
        ("Which pet?", "one turn", ("A dog",)),
        ("Lost?", "several turns", ("x",)),
        ("None?", "with world knowledge", ("5",)),
    ]
    unanswered = {**LONGMEMEVAL[0], "question_id": "q1_abs"}
    first, second = load("longmemeval-s", written(tmp_path / "s.json", [*LONGMEMEVAL, unanswered]))
    assert first.questions == [
        AnswerQuestion(
            "q1", "Which kiln do I have?", "single-session-user", ("A Rohde",), today="2023/06/01 (Thu) 10:00"
        )
    ]
    assert (second.questions[0].id, second.questions[0].category) == ("q1_abs", ABSTENTION)

    rubrics = {
        "abstention": [{"question": "My past?", "rubric": ["it is not known"]}],
        "event_ordering": [{"question": "In order?", "rubric": "['first', 'second']"}],
    }
    written(tmp_path / "100K/1/chat.json", CHAT)
    written(tmp_path / "100K/1/probing_questions/probing_questions.json", rubrics)
    (beam,) = load("beam", tmp_path / "100K")
    assert [(each.id, each.expected) for each in beam.questions] == [
        ("100K/1/abstention/0", ("it is not known",)),
        ("100K/1/event_ordering/0", ("first", "second")),
    ]
    written(tmp_path / "100K/1/probing_questions/probing_questions.json", PROBING)
    with pytest.raises(FormError, match="rubric"):
        list(load("beam", tmp_path / "100K"))
    with pytest.raises(FormError, match=r"chat\.json"):
        list(load("beam", tmp_path / "nowhere"))
    with pytest.raises(FormError, match="cannot be read"):
        list(load("locomo", tmp_path / "nowhere.json"))


@pytest.mark.parametrize(
    ("reply", "score"), [("CORRECT", 1), ("wrong.", 0), ("INCORRECT", 0), ("Not wrong at all: CORRECT", 1)]
)
def test_a_model_as_judge_gives_one_verdict(reply: str, score: float) -> None:
    judge = ModelJudge(FakeListChatModel(responses=[reply]), has_rubrics=False)
    assert judge.score(AnswerQuestion("1", "?", "time", ("x",)), "y") == (score, [reply])


def test_a_model_as_judge_grades_each_line_of_a_rubric() -> None:
    judge = ModelJudge(FakeListChatModel(responses=["1", "0.5", "The grade is 0."]), has_rubrics=True)
    question = AnswerQuestion("1", "?", "summarization", ("a", "b", "c"))
    assert judge.score(question, "y") == (0.5, ["1", "0.5", "The grade is 0."])


@pytest.mark.parametrize(("reply", "has_rubrics"), [("Perhaps", False), ("", False), ("Perhaps 7", True), ("10", True)])
def test_a_reply_without_a_verdict_is_no_score(reply: str, has_rubrics: bool) -> None:
    judge = ModelJudge(FakeListChatModel(responses=[reply]), has_rubrics=has_rubrics)
    with pytest.raises(JudgeError, match="judge says n"):
        judge.score(AnswerQuestion("1", "?", "time", ("x",)), "y")


def test_the_stand_in_counts_words() -> None:
    judge = WordJudge()
    assert judge.score(AnswerQuestion("1", "?", "time", ("7 May 2023",)), "On 7 May")[0] == 1
    assert judge.score(AnswerQuestion("1", "?", "time", ("7 May 2023",)), "In May")[0] == 0
    assert judge.score(AnswerQuestion("1", "?", "summarization", ("one", "two")), "one")[0] == 0.5
    assert judge.score(AnswerQuestion("1", "?", ABSTENTION, ("one",)), "one")[0] == 0
    assert judge.score(AnswerQuestion("1", "?", ABSTENTION, ("one",)), "I can see nothing about that.")[0] == 1


def test_a_file_of_results_belongs_to_its_settings(tmp_path: Path) -> None:
    path = tmp_path / "answers.jsonl"
    ResultsFile(path, SETTINGS).add({"id": "1", "category": "time", "score": 1.0})
    assert ResultsFile(path, SETTINGS).scores == {"1": ("time", 1.0)}
    with pytest.raises(FormError, match="other settings"):
        ResultsFile(path, RunSettings("locomo", "stand-in", "stand-in", None, 4_000))
    for text in ('{"id": "1"}\n', "[]\n", "no JSON\n"):
        path.write_text(text)
        with pytest.raises(FormError, match="no file of results"):
            ResultsFile(path, SETTINGS)
    path.write_text('{"settings": {"da')  # cut off within the first line
    assert ResultsFile(path, SETTINGS).scores == {}
    assert [*rows(path)[0]] == ["settings"]


@pytest.mark.postgres
def test_a_run_with_stand_ins_is_deterministic_and_continues(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data, output = written(tmp_path / "locomo.json", KILN), tmp_path / "answers.jsonl"
    arguments = ["--set", "locomo", "--data", str(data), "--model", "stand-in", "--judge", "stand-in"]
    arguments += ["--output", str(output), "--at-once", "1"]
    main(arguments)
    shown = capsys.readouterr().out
    settings, *results = rows(output)
    assert settings == {"settings": SETTINGS.__dict__}
    assert {row["id"]: row["score"] for row in results} == {"conv-1/0": 1, "conv-1/1": 1, "conv-1/2": 0}
    assert "E-47" in results[0]["answer"]
    assert results[0]["prompt_characters"] > 0
    assert "66.7" in shown
    assert "nothing about answers" in shown

    whole = output.read_text()
    first, second, third, _ = whole.splitlines(keepends=True)
    output.write_text(first + second + third[:20])  # as a killed process leaves it
    main(arguments)
    assert sorted(output.read_text().splitlines()) == sorted(whole.splitlines())
    again = output.read_text()
    main(arguments)
    assert output.read_text() == again

    with pytest.raises(SystemExit, match="other settings"):
        main([*arguments, "--characters", "4000"])
    with pytest.raises(SystemExit, match="not the name of a model|is no|model"):
        main([*arguments[:4], "--model", "nobody:none", *arguments[6:], "--output", str(tmp_path / "other.jsonl")])


@pytest.mark.postgres
def test_a_question_that_fails_has_no_result_and_is_asked_again(tmp_path: Path, cluster: Cluster) -> None:
    conn_string = cluster.conn_string(cluster.migrated_database())
    data = written(tmp_path / "locomo.json", KILN)
    for at_once, replies, missing in ((1, ["CORRECT", "Perhaps", "WRONG"], 1), (3, ["CORRECT"], 0)):
        results = ResultsFile(tmp_path / "answers.jsonl", SETTINGS)
        with Package(conn_string, None, f"answers-{at_once}") as package:
            judge = ModelJudge(FakeListChatModel(responses=replies), has_rubrics=False)
            runner = Runner(package, OfflineQuotingModel(), judge, 12_000, at_once)
            errors = runner.run(load("locomo", data), results)
        assert len(errors) == missing
        assert all("JudgeError: the judge says neither" in error for error in errors)
        assert len(results.scores) == 3 - missing
    assert len(rows(tmp_path / "answers.jsonl")) == 4
