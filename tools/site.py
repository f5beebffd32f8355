"""Write the pages of the API reference and `docs/llms.txt`; `--check` only lists the stale ones.

`--beside FOLDER` puts the Markdown of each page next to the built page, for readers of `llms.txt`.

A page of the reference lists public names with the first sentence of their docstrings, which also reads well as plain
Markdown; markers below it are replaced by signatures and docstrings on the site. `docs/llms.txt` lists each page of the
site with a sentence, as `docs/pages.md` does. This script only reads files: it does not import the package.
"""

from __future__ import annotations

import ast
import json
import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PACKAGE = "langchain_supabase_memory"
NOTEBOOKS = DOCS / "notebooks"
"""Pages that `tools/notebook_pages.py` writes for the site alone."""
NOTE = "From the docstrings, by `tools/site.py`."
REFERENCE = {"api/": "API reference:", "sql/": "SQL function:"}
"""What the search's results say of the folders of the reference."""

# Names by their module; a name without one is imported from the package itself.
API = {
    "memory": (
        "The memory",
        "What an application holds: the memory, and the handle of a conversation. `__version__` is the release.",
        "SupabaseMemory types.Conversation MemoryConfig transports.SupabaseTransport transports.PostgresTransport",
    ),
    "values": (
        "Values",
        "What the verbs return.",
        "types.AppendResult types.StoredMessage types.Turn types.Reference types.ConversationKey "
        "types.ConversationInfo types.ConversationPage types.ConversationStatus types.FoundMessage types.FoundPage "
        "types.Receipt types.Health types.Pause types.Queue types.UserPage types.UserSummary types.Space "
        "types.SpaceInfo types.Member types.Invitation types.OpenInvitation types.Contribution types.SharedData "
        "types.SharedInSpace types.ProfileItem types.ProfileEvidence types.Consent types.Signal types.FoundSignal"
        " types.Topic types.TopicQuote types.TopicDay types.TopicUpdate types.ForgottenTopic"
        " types.UsageDay types.Insights types.UserCount types.Advice",
    ),
    "context": (
        "The context pack",
        "What the next prompt receives, and what stood in earlier ones.",
        "types.ContextPack types.ContextReport types.PromptGrowth telemetry.prompt_growth types.Manifest "
        "types.ManifestPage types.ManifestDiff types.Explanation types.ExplanationPart types.RebuiltPrompt "
        "types.RebuiltPart types.Comparison types.Rollout types.RolloutReport",
    ),
    "settings": (
        "Settings",
        "What a memory is made with: budgets, policies, weights.",
        "ContextBudget SummaryPolicy ChunkPolicy BoardPolicy settings.ManifestPolicy settings.RecallWeights Retention "
        "settings.RetryPolicy settings.BreakerPolicy types.Perspective",
    ),
    "agents": (
        "Agents",
        "What a graph or a chain is composed from.",
        "SupabaseMemoryMiddleware SupabaseSummarizationNode LoadContextNode SaveTurnNode models.SupabaseSummarizer "
        "SupabaseChatMessageHistory agents.openai_session.SupabaseSession agents.deepagents_files.MemoryFiles "
        "SupabaseMemoryRetriever "
        "SupabaseMemoryToolkit tools.get_conversation_summary_tool "
        "tools.get_profile_tool tools.get_turn_tool tools.read_messages_tool tools.recall_context_tool "
        "tools.remember_tool tools.search_conversation_history_tool tools.share_with_team_tool "
        "record_stream arecord_stream testing.OfflineQuotingModel",
    ),
    "recall": (
        "Summaries and recall",
        "Summaries, coverage and chunks, and the models that write, embed, rerank and expand.",
        "types.Segment types.SummaryResult types.CompleteSummary types.RecalledSummary types.Coverage types.Chunk "
        "types.Repeats types.NewerFact types.Recall "
        "types.IndexResult ExtractiveSummarizer models.EmbeddingModel LocalEmbeddings "
        "models.MultilingualEmbeddings models.EdgeEmbeddings models.RerankModel models.LearnedReranker "
        "models.ExpandModel models.ToneModel",
    ),
    "boards": (
        "Boards and controls",
        "The board of a conversation, what people decide, and what is never stored.",
        "types.Board types.BoardItem types.BoardResult types.OptOut types.ControlChange Redactor "
        "redaction.RedactionRule redaction.pattern_rule SECRETS PERSONAL_DATA",
    ),
    "long-term": (
        "Long-term memory and transfer",
        "Memories that stay, LangGraph's store, import and export.",
        "SupabaseStore testing.check_store testing.acheck_store testing.STORE_CHECKS testing.StoreCheck "
        "long_term.LongTerm long_term.StoreLongTerm long_term.VectorStoreLongTerm long_term.Memory "
        "long_term.Remembered long_term.promote long_term.apromote "
        "long_term.forget_source long_term.aforget_source transfer.import_conversations "
        "transfer.aimport_conversations transfer.ImportReceipt transfer.export_conversations "
        "transfer.aexport_conversations transfer.ExportReceipt transfer.sources.chatgpt.chatgpt "
        "transfer.sources.claude.claude transfer.sources.histories.langchain_postgres "
        "transfer.sources.histories.langchain_sql transfer.sources.jsonl.jsonl transfer.sources.langgraph.langgraph "
        "transfer.sources.letta.letta transfer.sources.mem0.mem0 transfer.sources.openai_agents.openai_agents "
        "transfer.sources.zep.zep",
    ),
    "worker": (
        "The worker and operations",
        "Work in the background, cleaning up, metrics, logs, and the inspector.",
        "Worker WorkerPolicy worker.cleanup telemetry.Metrics telemetry.MetricsServer "
        "adapters.telemetry.logs.JsonFormatter adapters.telemetry.logs.PlainFormatter "
        "inspector.application.application",
    ),
    "errors": (
        "Errors",
        "Every error is a `SupabaseMemoryError` and says the next action.",
        "SupabaseMemoryError",
    ),
}

FACADES = ("types", "models", "transports", "redaction", "telemetry", "tools", "testing", "long_term", "transfer")
"""Public modules whose every name must be in the reference."""


def api() -> dict[str, str]:
    """Return the text of each page of the API reference, by its path below `docs`."""
    placed = [name for _, _, names in API.values() for name in names.split()]
    homes = _homes()
    for name in placed:
        if "." in name:
            module, _, word = f"{PACKAGE}.{name}".rpartition(".")
            homes[name] = _definition(module, word)
    listed = {name.rpartition(".")[2] for name in placed}
    if strays := sorted(({*placed} ^ homes.keys()) | (_facade_names() - listed)):
        raise SystemExit(f"In API of tools/site.py and not a public name, or the other way: {strays}")
    return {
        f"api/{page}.md": _page(title, purpose, {name: homes[name] for name in names.split()})
        for page, (title, purpose, names) in API.items()
    }


def _page(title: str, purpose: str, names: dict[str, str]) -> str:
    entries = {f"{home}.{name.rpartition('.')[2]}": name for name, home in names.items()}
    if "SupabaseMemoryError" in names:  # the other errors are imported from its module
        entries = {f"{names['SupabaseMemoryError']}.{name}": name for name in _errors()}
    words = {path: path.rpartition(".")[2] for path in entries}
    twins = {path for path, word in words.items() if word[:1] == "a" and word[1:] in words.values()}
    listed = []
    for path, name in entries.items():
        if path not in twins:
            shown = [f"`{name}`", *(f"`{words[twin]}`" for twin in twins if words[twin] == f"a{words[path]}")]
            listed.append(f"| {', '.join(shown)} | {_first_sentence(path)} |")
    marks = [f"::: {path}" for path in entries if path not in twins]
    lines = [f"# {title}", "", purpose, "", NOTE, "", "| name | what it is |", "| --- | --- |", *listed, "", *marks]
    return "\n".join(lines).replace("\n::: ", "\n\n::: ").replace("\n\n\n", "\n\n") + "\n"


def _tree(module: str) -> ast.Module:
    path = ROOT.joinpath(*module.split("."))
    file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    return ast.parse(file.read_text(encoding="utf-8"))


def _homes() -> dict[str, str]:
    """Return the module of each public name."""
    for node in _tree(PACKAGE).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "_HOMES":
            return {name: _definition(f"{PACKAGE}.{home}", name) for name, home in ast.literal_eval(node.value).items()}
    raise SystemExit(f"{PACKAGE} has no _HOMES.")


def _facade_names() -> set[str]:
    """Return the names in the public modules."""
    names: set[str] = set()
    for facade in FACADES:
        for node in _tree(f"{PACKAGE}.{facade}").body:
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
                names |= set(ast.literal_eval(node.value))
    return names


def _definition(module: str, name: str) -> str:
    """Return the module that defines a name, which another may import."""
    for node in ast.walk(_tree(module)):
        if isinstance(node, ast.ImportFrom) and node.module and name in {alias.name for alias in node.names}:
            return _definition(node.module, name)
    return module


def _errors() -> list[str]:
    found = [node.name for node in _tree(f"{PACKAGE}.errors").body if isinstance(node, ast.ClassDef)]
    return [name for name in found if not name.startswith("_")]


def _first_sentence(path: str) -> str:
    """Return the first sentence of a name's docstring, for a table cell."""
    module, _, name = path.rpartition(".")
    body = _tree(module).body
    for place, node in enumerate(body):
        said = None
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and node.name == name:
            said = ast.get_docstring(node)
        elif isinstance(node, ast.Assign | ast.AnnAssign) and _assigns(node, name):
            said = _said(body[place + 1])
        if said:
            return re.split(r"(?<=\.)\s", said.replace("\n", " "))[0].replace("|", "\\|")
    raise SystemExit(f"{path} has no docstring.")


def _assigns(node: ast.Assign | ast.AnnAssign, name: str) -> bool:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    return name in map(ast.unparse, targets)


def _said(node: ast.stmt) -> str | None:
    """Return the docstring after a constant."""
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
        return node.value.value
    return None


def llms(pages: str) -> str:
    """Return the list of the site's pages, each with a sentence.

    Args:
        pages: The text of `docs/pages.md`.
    """
    purpose, *groups = pages.partition("\n# ")[2].split("\n## ")
    parts = [f"# {PACKAGE.replace('_', '-')}", "> " + " ".join(purpose.split("\n\n")[1].split())]
    for group in groups:
        rows = re.findall(r"^\| \[([^\]]+)\]\(([^)]+)\) \| (.+) \|$", group, re.MULTILINE)
        if rows:
            listed = "\n".join(f"- [{name}]({link}): {said}" for name, link, said in rows)
            parts += [f"## {group.splitlines()[0]}", listed]
    return "\n\n".join(parts) + "\n"


def beside(built: Path) -> None:
    """Copy the Markdown of the pages into the built site, where `llms.txt` links to it.

    Args:
        built: The folder of the site, with its `llms.txt`.

    Raises:
        SystemExit: `llms.txt` links to a missing file.
    """
    for page in DOCS.rglob("*.md"):
        if page.is_relative_to(NOTEBOOKS):
            continue
        copy = built / page.relative_to(DOCS)
        copy.parent.mkdir(parents=True, exist_ok=True)
        # Drop the signature markers, which only the site generator understands.
        text = re.sub(r"\n::: \S+\n", "", page.read_text(encoding="utf-8"))
        copy.write_text(text, encoding="utf-8")
    links = re.findall(r"\]\(([^)#]+)", (built / "llms.txt").read_text(encoding="utf-8"))
    if dead := sorted(link for link in links if not (built / link).is_file()):
        raise SystemExit(f"llms.txt leads to what the site lacks: {', '.join(dead)}")


def guides_first(built: Path) -> None:
    """Name the reference in the titles of the search's index, so that of equal matches the guides come first.

    The search ranks a match in a title by the place of the word.

    Args:
        built: The folder of the site, with its `search.json`.
    """
    path = built / "search.json"
    index = json.loads(path.read_text(encoding="utf-8"))
    for item in index["items"]:
        for folder, kind in REFERENCE.items():
            if item["location"].startswith(folder) and not item["title"].startswith(kind):
                item["title"] = f"{kind} {item['title']}"
    path.write_text(json.dumps(index, ensure_ascii=False), encoding="utf-8")


def link_notebooks(built: Path) -> None:
    """Link each notebook that the page about them names to its page, which only the site has.

    Args:
        built: The folder of the site.
    """
    path = built / "notebooks.html"
    link = r'<a href="notebooks/\1.html"><code>notebooks/\1.ipynb</code></a>'
    text = re.sub(r"<code>notebooks/(\w+)\.ipynb</code>", link, path.read_text(encoding="utf-8"))
    path.write_text(text, encoding="utf-8")


def main() -> int:
    """Write the files, or list the stale ones."""
    if "--beside" in sys.argv:
        built = Path(sys.argv[sys.argv.index("--beside") + 1])
        beside(built)
        guides_first(built)
        link_notebooks(built)
        return 0
    made = {**api(), "llms.txt": llms((DOCS / "pages.md").read_text(encoding="utf-8"))}
    strays = {path.relative_to(DOCS).as_posix() for path in (DOCS / "api").glob("*.md")} - made.keys()
    stale = sorted(strays | {name for name, text in made.items() if not _is(DOCS / name, text)})
    if "--check" in sys.argv:
        if stale:
            sys.stderr.write(f"Not as tools/site.py writes them: {', '.join(stale)}. Run python tools/site.py.\n")
        return int(bool(stale))
    (DOCS / "api").mkdir(exist_ok=True)
    for name in stale:
        if name in strays:
            (DOCS / name).unlink()
        else:
            (DOCS / name).write_text(made[name], encoding="utf-8")
    return 0


def _is(path: Path, text: str) -> bool:
    return path.exists() and path.read_text(encoding="utf-8") == text


if __name__ == "__main__":
    sys.exit(main())
