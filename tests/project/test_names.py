"""Names are standard terms: no meaningless word, and no class name with two meanings."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "langchain_supabase_memory"
NOTHING_SAID = frozenset(
    [
        "alone",
        "answered",
        "asked",
        "beat",
        "beside",
        "came",
        "everybody",
        "found",
        "given",
        "gone",
        "heard",
        "held",
        "instead",
        "kept",
        "least",
        "listed",
        "looked",
        "looks",
        "made",
        "means",
        "meant",
        "most",
        "needed",
        "nobody",
        "noted",
        "opened",
        "said",
        "seen",
        "shown",
        "spoken",
        "taken",
        "told",
        "wanted",
        "went",
        "whole",
        "whose",
        "wish",
        "written",
    ]
)
"""Words that name no thing and no action: what was said, who asked, found where?"""

NO_NOUNS = frozenset(
    [
        "ahead",
        "alike",
        "alone",
        "apart",
        "asking",
        "away",
        "beside",
        "bound",
        "bounded",
        "by_name",
        "derived",
        "doors",
        "drawing",
        "ending",
        "exactly",
        "fitting",
        "forgetting",
        "guarding",
        "hits",
        "listening",
        "living",
        "look",
        "looks",
        "misuse",
        "moving",
        "opened",
        "outliving",
        "packed",
        "packing",
        "patience",
        "reading",
        "recalled",
        "said",
        "seen",
        "served",
        "sheet",
        "spoken",
        "staged",
        "storing",
        "told",
        "transferring",
        "visit",
        "watch",
        "writing",
    ]
)
"""What is no name of a module: a riddle, an adverb, a participle, a gerund."""


NOT_PLAIN = re.compile(
    r"\b(anew|alone|everybody|nobody|whole history|time line|no room|not there|is told|as it was said|words alone)\b",
    re.IGNORECASE,
)
"""Phrases that stop a reader of a page, a finding, an option or a tool."""


def modules() -> Iterator[tuple[Path, ast.Module]]:
    for path in sorted(PACKAGE.rglob("*.py")):
        yield path.relative_to(PACKAGE), ast.parse(path.read_text())


def test_no_function_class_or_parameter_has_a_name_that_says_nothing() -> None:
    wrong = []
    for path, tree in modules():
        for node in ast.walk(tree):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                if node.name.strip("_").lower() in NOTHING_SAID:
                    wrong.append(f"{path}: {node.name}")
            elif isinstance(node, ast.arg) and node.arg.strip("_") in NOTHING_SAID:
                wrong.append(f"{path}: the parameter {node.arg} in line {node.lineno}")
    assert not wrong, "\n".join(wrong)


def test_no_module_has_a_name_that_says_nothing() -> None:
    names = {str(path): path.stem for path, _ in modules()}
    assert not [path for path, name in names.items() if name in NO_NOUNS]


def test_no_public_class_has_its_name_in_two_modules() -> None:
    homes = defaultdict(list)
    for path, tree in modules():
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes[node.name].append(str(path))
    assert not {name: paths for name, paths in homes.items() if len(paths) > 1}


def test_texts_for_people_are_plain() -> None:
    """The inspector, the doctor, and what commands and tools say."""
    texts = [*PACKAGE.glob("inspector/templates/*.html"), PACKAGE / "inspector/static/inspector.js"]
    wrong = [f"{path.name}: {phrase}" for path in texts for phrase in NOT_PLAIN.findall(path.read_text())]
    for path, tree in modules():
        if path.parts[0] in ("cli", "mcp") or path.parts[:2] == ("memory", "doctor"):
            constants = (node.value for node in ast.walk(tree) if isinstance(node, ast.Constant))
            found = [phrase for text in constants if isinstance(text, str) for phrase in NOT_PLAIN.findall(text)]
            # The catalog describes a grant to PUBLIC so.
            wrong += [f"{path}: {phrase}" for phrase in found if (path.name, phrase) != ("database.py", "everybody")]
    assert not wrong, "\n".join(wrong)
