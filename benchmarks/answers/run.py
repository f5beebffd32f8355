"""Ask every question that has no result yet, judge the answers, and add each to a file at once."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from langchain_core.messages import HumanMessage, SystemMessage

from benchmarks.retrieval.data import FormError
from langchain_supabase_memory import ContextBudget

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from langchain_core.language_models import BaseChatModel

    from benchmarks.answers.judges import Judge
    from benchmarks.answers.questions import AnswerQuestion, Interview
    from benchmarks.retrieval.package import Package

_TASK = (
    "Answer the last question from the conversation that you see, in as few words as it takes. "
    "If it does not hold the answer, say that you do not know."
)


@dataclass(frozen=True)
class RunSettings:
    """What a result depends on: a file holds results of one of these.

    Attributes:
        data: The name of the data set.
        model: The name of the answering model.
        judge: The name of the judging model.
        embeddings: The name of the embedder; `None` for words only.
        characters: The size of a context pack.
    """

    data: str
    model: str
    judge: str
    embeddings: str | None
    characters: int


@dataclass(frozen=True)
class Runner:
    """Asks and judges.

    Attributes:
        package: The memory.
        model: The answering model.
        judge: The judge.
        characters: The size of a context pack.
        at_once: The maximum number of questions that are asked at the same time.
    """

    package: Package
    model: BaseChatModel
    judge: Judge
    characters: int
    at_once: int = 1

    def run(self, interviews: Iterable[Interview], results: ResultsFile) -> list[str]:
        """Add a result for each question that has none.

        Args:
            interviews: The conversations with their questions.
            results: The file of the results.

        Returns:
            The errors of questions that still have none; a repeated run asks these again.
        """
        errors = []
        with ThreadPoolExecutor(self.at_once) as pool:
            for interview in interviews:
                open_questions = [each for each in interview.questions if each.id not in results.scores]
                if not open_questions:
                    continue
                self.package.store(interview.conversation)
                thread_id = interview.conversation.id
                jobs = {pool.submit(self._answer, thread_id, each): each for each in open_questions}
                for job in as_completed(jobs):
                    question = jobs[job]
                    try:
                        results.add(job.result())
                    except Exception as error:  # a provider's client raises its own types
                        errors.append(f"{question.id}: {type(error).__name__}: {error}")
        return errors

    def _answer(self, thread_id: str, question: AnswerQuestion) -> dict[str, Any]:
        budget = ContextBudget(characters=self.characters)
        pack = self.package.memory.conversation(thread_id).context(HumanMessage(question.text), budget=budget)
        task = f"{_TASK} Today is {question.today}." if question.today else _TASK
        answer = self.model.invoke([SystemMessage(task), *pack.prompt]).text
        score, replies = self.judge.score(question, answer)
        return {
            "id": question.id,
            "category": question.category,
            "question": question.text,
            "expected": list(question.expected),
            "answer": answer,
            "score": score,
            "judge_replies": replies,
            "prompt_characters": sum(len(message.text) for message in pack.prompt),
        }


class ResultsFile:
    """The results, one JSON object a line, after a first line with the settings.

    Args:
        path: The file; it is created if it does not exist. A last line that an interruption cut off is removed.
        settings: What the results depend on.

    Raises:
        FormError: It holds something else, or results of other settings.
    """

    def __init__(self, path: Path, settings: RunSettings) -> None:
        self._path = path
        self.scores: dict[str, tuple[str, float]] = {}
        """The category and the score by the question's id."""
        if not path.exists():
            self._append({"settings": asdict(settings)})
            return
        text = path.read_text()
        whole_lines = text[: text.rfind("\n") + 1]
        if whole_lines != text:
            path.write_text(whole_lines)
        try:
            first, *rows = [json.loads(line) for line in whole_lines.splitlines()] or [None]
            known = None if first is None else RunSettings(**first["settings"])
            self.scores = {row["id"]: (row["category"], row["score"]) for row in rows}
        except (KeyError, TypeError, ValueError):
            raise FormError(f"{path} is no file of results: name another one") from None
        if known is None:
            self._append({"settings": asdict(settings)})
        elif known != settings:
            raise FormError(f"{path} has results of other settings: {known}; name another file")

    def add(self, result: dict[str, Any]) -> None:
        """Add a result; it is in the file when this returns."""
        self._append(result)
        self.scores[result["id"]] = (result["category"], result["score"])

    def _append(self, row: dict[str, Any]) -> None:
        with self._path.open("a") as file:
            file.write(json.dumps(row, ensure_ascii=False) + "\n")
