"""Read the data sets, each in its module. None of them is part of this repository."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from benchmarks.retrieval.data import DataSet, FormError
from benchmarks.retrieval.data_sets import beam, locomo, longmemeval, realtalk

if TYPE_CHECKING:
    from pathlib import Path

HOW_TO_GET_THEM: Final = """\
the large data sets are not part of this repository. Get one, or several, and say where they are:

    git clone --depth 1 https://github.com/snap-research/locomo
    git clone --depth 1 https://github.com/danny911kr/REALTALK
    git clone --depth 1 https://github.com/mohammadtavakoli78/BEAM
    curl -LO https://huggingface.co/datasets/xiaowu0162/longmemeval-cleaned/resolve/main/longmemeval_s_cleaned.json
    make bench-retrieval DATA="locomo/data/locomo10.json longmemeval_s_cleaned.json REALTALK/data BEAM/chats/100K"
"""


def load(path: Path, limit: int | None = None) -> DataSet:
    """Load the data set at a path: a file of LoCoMo, LongMemEval or REALTALK, or a folder of REALTALK or BEAM.

    Args:
        path: A file or a folder.
        limit: The maximum number of conversations.

    Raises:
        FormError: The path does not exist, or its form is unknown.
    """
    if not path.exists():
        raise FormError(f"{path}: {HOW_TO_GET_THEM}")
    try:
        found = _found(path, limit)
    except OSError as error:
        raise FormError(f"{path} cannot be read: {error.strerror}") from None
    except json.JSONDecodeError as error:
        raise FormError(f"{path} is no JSON: {error.msg} in line {error.lineno}") from None
    except UnicodeDecodeError:
        raise FormError(f"{path} is no JSON: it is not UTF-8") from None
    except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
        what = f"{error} is missing" if isinstance(error, KeyError) else str(error)
        raise FormError(f"{path} is not of the form of its data set: {what}") from None
    if not any(each.questions for each in found.conversations):
        raise FormError(f"{path} has no question whose evidence is marked; {found.name} was expected to have some")
    return found


def _found(path: Path, limit: int | None) -> DataSet:
    if path.is_dir():
        chats = sorted(path.rglob(beam.CHAT), key=lambda each: [(len(part), part) for part in each.parts])
        if chats:
            return DataSet("BEAM", [beam.conversation(each, path) for each in chats[:limit]])
        files = sorted(path.glob("*.json"))
        if not files:
            raise FormError(f"{path} has no {beam.CHAT} in it, as BEAM has, and no *.json, as REALTALK has")
        return DataSet(
            "REALTALK", [realtalk.conversation(json.loads(each.read_text()), each) for each in files[:limit]]
        )
    raw = json.loads(path.read_text())
    if isinstance(raw, dict) and "session_1" in raw:
        return DataSet("REALTALK", [realtalk.conversation(raw, path)])
    if isinstance(raw, list) and raw and isinstance(raw[0], dict):
        if "haystack_sessions" in raw[0]:
            return DataSet("LongMemEval", [*map(longmemeval.conversation, raw[:limit])])
        if "conversation" in raw[0]:
            # Locomo-Plus puts statements that hint at a turn into LoCoMo's conversations, in LoCoMo's form.
            name = "Locomo-Plus" if str(raw[0].get("sample_id")).startswith("plus") else "LoCoMo"
            return DataSet(name, [locomo.conversation(each, number) for number, each in enumerate(raw[:limit])])
    raise FormError(
        f"{path} is of no form that is known: LoCoMo has a list of objects with `conversation`, LongMemEval one with "
        "`haystack_sessions`, REALTALK an object with `session_1`, and BEAM is a folder"
    )
