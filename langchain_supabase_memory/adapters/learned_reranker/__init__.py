"""A learned second stage: logistic regression over signals of the candidates, whose coefficients stand in a file."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from langchain_supabase_memory.adapters.learned_reranker.signals import signals
from langchain_supabase_memory.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from langchain_core.documents import Document

KINDS: Final = ("words", "vectors")
"""The kinds of a first stage, each with its own coefficients: without and with vectors."""

_HINT: Final = "Pass a file that `python -m benchmarks.retrieval.fit` wrote, or nothing for the package's own."


@dataclass(frozen=True)
class _Coefficient:
    """The weight of one signal, in standard deviations from its mean."""

    coefficient: float
    mean: float
    deviation: float


class LearnedReranker:
    """Reranks by logistic regression over some forty signals of each candidate. It needs no model and no network.

    ```python
    SupabaseMemory.embedded("./memory", config=MemoryConfig(reranker=LearnedReranker()))
    ```

    Among the signals are the first stage's score and its parts, the question's words by their rarity, how well the talk
    around a candidate does, and whether a time, a number or a speaker that is asked for is there. The coefficients were
    fitted on English talk: LoCoMo, BEAM and Locomo-Plus. `python -m benchmarks.retrieval.fit` fits them on other data.

    Args:
        coefficients: A JSON file with coefficients, or its contents; by default the package's own. See
            `coefficients.json` beside this module for its form.

    Raises:
        ConfigurationError: The coefficients cannot be read, or are not of that form.
    """

    def __init__(self, coefficients: str | Path | Mapping[str, Any] | None = None) -> None:
        self._kinds = _checked(_packaged() if coefficients is None else _load(coefficients))

    def __call__(self, question: str, documents: Sequence[Document]) -> list[float]:
        """Return a number for each document, the higher the better; only their order means something.

        Args:
            question: The question; of a blank one the first stage's order stays.
            documents: The candidates as `RerankModel` passes them, the best first.
        """
        has_vectors = any("meaning" in (each.metadata.get("score_parts") or {}) for each in documents)
        fitted = self._kinds.get(KINDS[has_vectors])
        if fitted is None or not question.strip():
            return [float(-place) for place in range(len(documents))]
        totals = [0.0] * len(documents)
        for name, numbers in signals(question, documents).items():
            weight = fitted.get(name)
            if weight is None or not any(numbers):
                continue  # a constant moves nothing
            factor = weight.coefficient / weight.deviation
            totals = [total + factor * (number - weight.mean) for total, number in zip(totals, numbers, strict=True)]
        return totals

    def __repr__(self) -> str:
        """Return a description: the kinds of a first stage that it has coefficients for."""
        return f"LearnedReranker({', '.join(self._kinds)})"


def _packaged() -> Any:
    return json.loads(files(__package__).joinpath("coefficients.json").read_text(encoding="utf-8"))


def _load(coefficients: str | Path | Mapping[str, Any]) -> Any:
    if not isinstance(coefficients, (str, Path)):
        return coefficients
    try:
        return json.loads(Path(coefficients).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        kind = type(error).__name__
    raise ConfigurationError(f"The coefficients could not be read ({kind}).", hint=_HINT)


def _checked(document: Any) -> dict[str, dict[str, _Coefficient]]:
    """Return the coefficients of each kind.

    Raises:
        ConfigurationError: They are not of the form.
    """
    try:
        found = {
            kind: {
                name: _Coefficient(**{key: float(number) for key, number in each.items()}) for name, each in of.items()
            }
            for kind, of in document.items()
        }
    except (AttributeError, TypeError, ValueError) as error:
        raise ConfigurationError(f"The coefficients have a wrong form ({type(error).__name__}).", hint=_HINT) from None
    every = [each for of in found.values() for each in of.values()]
    if not every or not found.keys() <= {*KINDS}:
        raise ConfigurationError('The coefficients need a kind "words" or "vectors", and no other.', hint=_HINT)
    finite = (math.isfinite(each.coefficient) and math.isfinite(each.mean) for each in every)
    if not all(finite) or not all(0 < each.deviation < math.inf for each in every):
        raise ConfigurationError("A coefficient or a mean is not finite, or a deviation not above 0.", hint=_HINT)
    return found
