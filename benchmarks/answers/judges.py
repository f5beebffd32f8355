"""Judge an answer: by a chat model with a prompt for each data set, or by words as a stand-in.

The prompts ask for what the data sets' own judges ask for, in this project's words:

- LoCoMo: one verdict; an answer is correct if it says what the reference says, in whatever form and at any length.
- LongMemEval: the same, stricter by the kind of question: the newest value counts, a number of days may be one off, a
  wish must be respected, and what cannot be answered must be declined.
- BEAM: each line of the rubric gets 1, 0.5 or 0; the score is their mean. The paper also scores the order of events by
  a rank correlation, which is left out.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, Protocol

from langchain_core.messages import HumanMessage, SystemMessage

from benchmarks.answers.questions import ABSTENTION
from langchain_supabase_memory.testing.quoting_model import NOTHING

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

    from benchmarks.answers.questions import AnswerQuestion

_VERDICT: Final = re.compile(r"\b(?:in)?correct\b|\bwrong\b", re.IGNORECASE)
_GRADE: Final = re.compile(r"(?<![\d.])(?:0\.5|[01](?:\.0)?)(?![\d.]*\d)")
_WORDS_NEEDED: Final = 0.5
"""The share of the expected words that the stand-in wants to see."""

_CORRECT: Final = """\
You grade an answer to a question about a long conversation. You get the question, the expected answer and the answer.
It is CORRECT if it says what the expected answer says. Other words, more detail and another form of the same date or
number do not matter. It is WRONG if the point is missing, contradicted, or one of several that exclude each other.
Reply with one word, CORRECT or WRONG."""
_BY_CATEGORY: Final = {
    "temporal-reasoning": "A number of days, weeks or months may be one off.",
    "knowledge-update": "The newest value must be given as the current one; an older one may stand beside it.",
    "single-session-preference": (
        "The expected answer describes what this user would want. CORRECT is what uses the user's own preferences; it "
        "need not cover each point."
    ),
    ABSTENTION: "The conversation does not answer the question. CORRECT is only what says that this is not known.",
}
_LINE: Final = """\
You grade an answer to a question about a long conversation against one line of a rubric. Reply with one number: 1 if
the answer does what the line asks for, 0.5 if it does so in part, 0 if it does not."""


class JudgeError(Exception):
    """The judge's reply holds no verdict. The message shows its beginning."""


class Judge(Protocol):
    """Says how right an answer is."""

    def score(self, question: AnswerQuestion, answer: str) -> tuple[float, list[str]]:
        """Return a number from 0 to 1, and the replies that it comes from."""


class ModelJudge:
    """A chat model as judge.

    Args:
        model: The model.
        has_rubrics: Whether each expected line is graded by itself, as in BEAM.
    """

    def __init__(self, model: BaseChatModel, *, has_rubrics: bool) -> None:
        self._model = model
        self._has_rubrics = has_rubrics

    def score(self, question: AnswerQuestion, answer: str) -> tuple[float, list[str]]:
        """Return the verdict, or the mean grade of the rubric's lines.

        Raises:
            JudgeError: A reply holds no verdict.
        """
        if self._has_rubrics:
            replies = [self._reply(_LINE, question, "Line of the rubric", line, answer) for line in question.expected]
            grades = [_grade(reply) for reply in replies]
            return sum(grades) / len(grades), replies
        rules = "\n".join(filter(None, [_CORRECT, _BY_CATEGORY.get(question.category)]))
        reply = self._reply(rules, question, "Expected answer", question.expected[0], answer)
        return _verdict(reply), [reply]

    def _reply(self, rules: str, question: AnswerQuestion, label: str, expected: str, answer: str) -> str:
        asked = f"Question: {question.text}\n\n{label}: {expected}\n\nAnswer: {answer}"
        return self._model.invoke([SystemMessage(rules), HumanMessage(asked)]).text


class WordJudge:
    """A stand-in without a model: an answer is right if it has half of the expected words. Its scores mean nothing."""

    def score(self, question: AnswerQuestion, answer: str) -> tuple[float, list[str]]:
        """Return the share of the expected lines of which the answer has enough words."""
        if question.category == ABSTENTION:
            return float(answer == NOTHING), []
        words = _words(answer)
        shares = [len(words & _words(line)) / max(1, len(_words(line))) for line in question.expected]
        return sum(share >= _WORDS_NEEDED for share in shares) / len(shares), []


def _verdict(reply: str) -> float:
    found = _VERDICT.findall(reply)
    if not found:
        raise JudgeError(f"the judge says neither CORRECT nor WRONG: {reply[:80]!r}")
    return float(found[-1].casefold() == "correct")


def _grade(reply: str) -> float:
    found = _GRADE.findall(reply)
    if not found:
        raise JudgeError(f"the judge says none of 1, 0.5 and 0: {reply[:80]!r}")
    return float(found[-1])


def _words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text.casefold()))
