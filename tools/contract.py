"""Write the pages on the SQL functions from their comments; `--check` only lists the stale ones.

The comment of each function `public.memory_*` in `sql/functions` is its contract: what it does, each argument, each key
of the returned document, each SQLSTATE that it raises. A line indented by two spaces continues the line before:

```
langchain-supabase-memory: What it does, in a sentence or a few.

p_user_id: what it is, its unit, what null means.
p_rows: a list of objects.
- sequence: integer. What this key of each of them is.
Returns: object or null. When it is null.
- messages: object[]. What it holds.
- messages[].sequence: integer. What this key of each of them is.
Errors:
- PT400: when that is raised.
```

A type is one of `TYPES`; `(integer or null)[]` is a list with nulls, `object[] as memory_board.items` has the keys that
are described there, and an object without described keys is opaque. `tests/sql/test_contract.py` compares all this with
the database's answers. This script only reads files and needs no server.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass, field
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING

from langchain_supabase_memory.adapters.schema.script import with_lists

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[1]
PREFIX = "langchain-supabase-memory: "
TYPES = ("text", "uuid", "timestamp", "integer", "number", "boolean", "object", "json")
INDEX = "sql-functions.md"
LIST = "## All functions\n"
WIDEST_BLOCK = 80
"""In columns: a page of the site shows no more without scrolling."""
"""The index follows this heading."""

PAGES = {
    "messages": (
        "Storing messages",
        "Store messages.",
        "append reinstate",
    ),
    "unreadable": ("Unreadable messages", "Note messages that cannot be read, and list them.", "set_aside unreadable"),
    "reading": ("Reading", "Read messages and turns, and find words in them.", "read find count turns"),
    "conversations": ("Conversations", "List conversations, and set their titles.", "conversations update"),
    "retention": (
        "Retention and erasure",
        "Delete conversations, messages, and what retention does not keep.",
        "forget forget_message forget_expired",
    ),
    "context": ("Context", "Read what the next prompt is made of.", "context append_context"),
    "manifests": (
        "Manifests of prompts",
        "Read what stood in earlier prompts, in numbers and in words.",
        "manifests prompt",
    ),
    "summaries": (
        "Summaries",
        "Read summaries, say what they cover, and change them.",
        "summaries coverage edit_summary",
    ),
    "summarizing": (
        "Summarizing",
        "For who writes summaries: what is due, what to summarize, and what came of it.",
        "due pending commit_summary fail_summary",
    ),
    "complete-summaries": (
        "Complete summaries",
        "For who writes summaries of summaries, level by level, and what they are about.",
        "commit_parent describe_summary",
    ),
    "transfer": (
        "Transfer",
        "Take conversations along.",
        "export import",
    ),
    "edits": ("What people have set", "Take along what people have set, and put it back.", "edits restore"),
    "boards": ("Boards", "Read the board of a conversation, and change it as a person.", "board edit_board"),
    "revising": (
        "Revising boards",
        "For who writes boards: what to read into one, and what came of it.",
        "pending_board commit_board",
    ),
    "recall": ("Recall", "Find what was said, in messages and in summaries.", "recall recall_summaries"),
    "chunks": ("Chunks", "List what recall finds, and say how much it matters.", "chunks rate_chunk"),
    "signals": ("Signals", "List what a user's words tell about how a conversation goes.", "signals"),
    "indexing": (
        "Indexing",
        "For who makes chunks: what is due, what to index, and what came of it.",
        "index_due pending_chunks commit_chunks fail_index",
    ),
    "vectors": (
        "Vectors",
        "For who embeds: give vectors to chunks and to summaries that lack them.",
        "reembed unembedded_summaries embed_summaries",
    ),
    "store": ("The store", "Items of long-term memory by namespace and key.", "store store_sweep store_reindex"),
    "long-term": (
        "Long-term memory",
        "Move what a profile holds to a long-term memory elsewhere, and take back what it does not hold any more.",
        "promote withdrawn",
    ),
    "controls": (
        "Controls",
        "Say what is not to be remembered, and see who changed what.",
        "opt_out opt_in opt_outs control_changes",
    ),
    "work": ("Work", "Ask for a summary now, and see how far everything is.", "request status"),
    "workers": (
        "Workers",
        "For workers with a server's key: take due work, keep it, end it.",
        "worker_claim worker_heartbeat worker_keep_draft worker_finish worker_release",
    ),
    "operating": (
        "Operating",
        "For operators with a server's key: look after the queue and the database.",
        "worker_queue worker_users worker_doctor worker_revive",
    ),
    "chores": (
        "Chores",
        "For workers with a server's key: what is done from time to time for all conversations.",
        "worker_chore worker_rederive worker_idle worker_archive",
    ),
    "rollout": (
        "Rollout",
        "Which context an agent's users receive, and what the old and the new one come to.",
        "rollout worker_set_rollout worker_rollouts compare comparisons comparison_report",
    ),
    "spaces": (
        "Spaces",
        "Memory that several people share: create spaces, read who is in them, and erase them.",
        "create_space update_space spaces space forget_space",
    ),
    "contributions": (
        "Contributions to spaces",
        "Quote a private conversation on the board of a space, take that back, and see what spaces hold of you.",
        "contribute withdraw held",
    ),
    "profile": (
        "The profile",
        "What is known of a user, what they do with it, and what they allow to be derived.",
        "profile edit_profile consent consents",
    ),
    "topics": (
        "Topics",
        "What an owner's conversations are about, and what a person makes of that.",
        "topics topic_days edit_topic forget_topic",
    ),
    "topic-finding": (
        "Finding topics",
        "For who keeps topics up to date: find one for what was indexed, and find them anew.",
        "assign_topics topic_stretches commit_topics worker_topics",
    ),
    "usage": (
        "Usage",
        "What a user's conversations came to on each day, in numbers alone.",
        "usage recent_packs unread",
    ),
    "usage-counting": (
        "Counting usage",
        "For who keeps usage up to date, and counts over all users.",
        "worker_usage worker_count_usage worker_insights",
    ),
    "members": (
        "Members of spaces",
        "Invite people into a space, join one, and say who may read and write there.",
        "invite join set_member name_member",
    ),
    "database": ("The database", "What is installed, and what one call may bring.", "schema limits"),
}
"""The pages below `docs/sql`: title, purpose, and functions without the prefix `memory_`."""

_TYPE = (
    rf"(?:{'|'.join(TYPES)}|\((?:{'|'.join(TYPES)}) or null\))(?:\[\])*(?: as memory_\w+(?:\.[\w.\[\]]*\w(?:\[\])*)?)?"
    r"(?: or null)?"
)
_ARGUMENT = re.compile(r"(p_\w+): (.+)")
_FIELD = re.compile(rf"- ([\w.\[\]]+): ({_TYPE})\. (.+)")
_RETURNS = re.compile(rf"Returns: ({_TYPE})\.(?: (.+))?")
_ERROR = re.compile(r"- ([0-9A-Z]{5}): (.+)")


@dataclass(frozen=True)
class Field:
    """A key of a document.

    Attributes:
        path: Its path, such as `messages[].sequence`.
        type: Its type.
        meaning: Its description.
    """

    path: str
    type: str
    meaning: str


@dataclass
class Argument:
    """An argument, as its function's comment describes it.

    Attributes:
        name: Its name.
        meaning: Its description.
        fields: The keys of the document that it takes, if they are described.
    """

    name: str
    meaning: str
    fields: list[Field] = field(default_factory=list)


@dataclass
class Contract:
    """The contents of a function's comment.

    Attributes:
        name: The function.
        summary: What it does.
        arguments: Its arguments, in their order.
        returns: The type of its document.
        returned: The description of the document, in addition to its type and keys.
        keys: The keys of the document.
        errors: The condition of each SQLSTATE.
    """

    name: str
    summary: str
    arguments: list[Argument] = field(default_factory=list)
    returns: str = ""
    returned: str = ""
    keys: list[Field] = field(default_factory=list)
    errors: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Parameter:
    """A parameter of a signature; without a default it is required."""

    name: str
    type: str
    default: str | None


@dataclass(frozen=True)
class Function:
    """A function with its signature and contract, from its SQL file."""

    parameters: list[Parameter]
    returns: str
    contract: Contract


class FormError(ValueError):
    """A comment is malformed.

    Args:
        name: The function.
        line: The line that cannot be parsed.
    """

    def __init__(self, name: str, line: str) -> None:
        super().__init__(f"The comment on {name} has a line out of form: {line}")


def parse(name: str, comment: str) -> Contract:
    """Parse a function's comment into its contract.

    Args:
        name: The function.
        comment: Its comment.

    Raises:
        FormError: A line is malformed, or a part is missing.
    """
    head, _, rest = comment.replace("\n  ", " ").partition("\n\n")
    if not re.fullmatch(rf"{PREFIX}[A-Z][^\n]*\.", head):
        raise FormError(name, head)
    made = Contract(name, head.removeprefix(PREFIX))
    part = ""
    for line in rest.split("\n"):
        if found := _RETURNS.fullmatch(line):
            made.returns, made.returned, part = found[1], found[2] or "", "returns"
        elif line in ("Errors:", "Errors: none.") and part == "returns":
            part = line
        elif not line.endswith("."):
            raise FormError(name, line)
        elif (found := _ARGUMENT.fullmatch(line)) and part in ("", "arguments"):
            made.arguments.append(Argument(found[1], found[2]))
            part = "arguments"
        elif (found := _ERROR.fullmatch(line)) and part == "Errors:" and found[1] not in made.errors:
            made.errors[found[1]] = found[2]
        elif (found := _FIELD.fullmatch(line)) and part in ("arguments", "returns"):
            fields = made.keys if part == "returns" else made.arguments[-1].fields
            if found[1] in [each.path for each in fields]:
                raise FormError(name, line)
            fields.append(Field(found[1], found[2], found[3]))
        else:
            raise FormError(name, line)
    if (part == "Errors:" and not made.errors) or not part.startswith("Errors"):
        raise FormError(name, "Errors")
    return made


def functions(source: str) -> dict[str, Function]:
    """Return the public functions of an SQL file.

    Args:
        source: The text of the file.

    Raises:
        FormError: A comment is missing or malformed.
    """
    made = {}
    for found in re.finditer(r"create function public\.(memory_\w+)\((.*?)\)\s*returns (\w+)", source, re.DOTALL):
        name, inside, returns = found.groups()
        said = re.search(rf"comment on function public\.{name} is\s+'((?:[^']|'')*)';", source)
        if said is None:
            raise FormError(name, "it is missing")
        made[name] = Function([*_parameters(inside)], returns, parse(name, said[1].replace("''", "'")))
    return made


def _parameters(inside: str) -> Iterator[Parameter]:
    """Yield the parameters between the parentheses of a function's signature."""
    for each in re.split(r",(?=\s*p_)", re.sub(r"--[^\n]*", "", inside)):
        if each.strip():
            name, kind, *default = re.split(r"\s+", each.strip(), maxsplit=2)
            yield Parameter(name, kind, default[0].removeprefix("default ").strip() if default else None)


def every() -> dict[str, Function]:
    """Return all public functions, by name."""
    files = sorted((ROOT / "sql" / "functions").glob("*.sql"))
    return {
        name: each for file in files for name, each in functions(with_lists(file.read_text(encoding="utf-8"))).items()
    }


def pages(found: dict[str, Function], index: str) -> dict[str, str]:
    """Return the text of each page, by its path below `docs`.

    Args:
        found: The functions.
        index: The current index page: the part before the list is kept.
    """
    placed = {f"memory_{name}": page for page, (_, _, names) in PAGES.items() for name in names.split()}
    if strays := sorted(placed.keys() ^ found.keys()):
        raise SystemExit(f"In PAGES of tools/contract.py and not in sql/functions, or the other way: {strays}")
    made = {}
    listed = [index.partition(LIST)[0] + LIST, "\n| function | what it does | page |\n| --- | --- | --- |\n"]
    for page, (title, purpose, names) in PAGES.items():
        note = "From the comments in `sql/functions`, by `tools/contract.py`. How to call them: [SQL functions]"
        parts = [f"# {title}\n\n{purpose}\n\n{note}(../{INDEX}).\n"]
        for name in (f"memory_{each}" for each in names.split()):
            parts.append(_section(found[name]))
            first = re.split(r"(?<=\.) ", found[name].contract.summary)[0]
            listed.append(f"| [`{name}`](sql/{page}.md#{name}) | {_marked(first)} | [{title}](sql/{page}.md) |\n")
        made[f"sql/{page}.md"] = "\n".join(parts)
    return {INDEX: "".join(listed), **made}


def _section(function: Function) -> str:
    """Return a function's section of a page."""
    said = function.contract
    parameters = [
        f"{each.name} {each.type}" + (f" = {each.default}" if each.default else "") for each in function.parameters
    ]
    signature = _signature(said.name, parameters, function.returns)
    lines = [f"## {said.name}", "", *_wrapped(_marked(said.summary)), "", "```text", *signature, "```", ""]
    for each in said.arguments:
        lines.append(_item("", f"`{each.name}`: {_marked(each.meaning)}"))
        lines += [_key("  ", key) for key in each.fields]
    lines += [""] if said.arguments else []
    lines += _wrapped(f"**Returns** {_marked(said.returns)}. {_marked(said.returned)}".strip())
    lines += [""] if said.keys else []
    lines += [_key("", key) for key in said.keys]
    lines += ["", "**Errors**" + ("" if said.errors else ": none.")]
    lines += [""] if said.errors else []
    lines += [_item("", f"`{code}`: {_marked(when)}") for code, when in said.errors.items()]
    return "\n".join(lines) + "\n"


def _signature(name: str, parameters: list[str], returns: str) -> list[str]:
    """Return a signature on one line, or with its parameters on lines of their own where that is too wide."""
    line = f"{name}({', '.join(parameters)}) returns {returns}"
    if len(line) <= WIDEST_BLOCK:
        return [line]
    listed = ", ".join(each.replace(" ", "~") for each in parameters)  # break the line between parameters only
    broken = wrap(listed, WIDEST_BLOCK, initial_indent="  ", subsequent_indent="  ", break_long_words=False)
    return [f"{name}(", *(each.replace("~", " ") for each in broken), f") returns {returns}"]


def _key(indent: str, key: Field) -> str:
    return _item(indent, f"`{key.path}` ({_marked(key.type)}): {_marked(key.meaning)}")


def _item(indent: str, text: str) -> str:
    return "\n".join(_wrapped(text, f"{indent}- ", f"{indent}  "))


def _wrapped(text: str, first: str = "", rest: str = "") -> list[str]:
    return wrap(text, 118, initial_indent=first, subsequent_indent=rest, break_long_words=False, break_on_hyphens=False)


def _marked(text: str) -> str:
    """Return prose with code in backticks."""
    code = r"\{(?:[^{}]|\{[^{}]*\})*\}|\bp_\w+|\bmemory_[\w.\[\]]*\w(?:\[\])*|\$\w+|(?<= )\*(?= )"
    return re.sub(code, lambda found: f"`{found[0]}`", text)


def main() -> int:
    """Write the pages, or list the stale ones."""
    docs = ROOT / "docs"
    made = pages(every(), (docs / INDEX).read_text(encoding="utf-8"))
    strays = {path.relative_to(docs).as_posix() for path in (docs / "sql").glob("*.md")} - made.keys()
    stale = sorted(strays | {name for name, text in made.items() if not _is(docs / name, text)})
    if "--check" in sys.argv:
        if stale:
            sys.stderr.write(
                f"Not as tools/contract.py writes them: {', '.join(stale)}. Run python tools/contract.py.\n"
            )
        return int(bool(stale))
    (docs / "sql").mkdir(exist_ok=True)
    for name in stale:
        if name in strays:
            (docs / name).unlink()
        else:
            (docs / name).write_text(made[name], encoding="utf-8")
    return 0


def _is(path: Path, text: str) -> bool:
    return path.exists() and path.read_text(encoding="utf-8") == text


if __name__ == "__main__":
    sys.exit(main())
