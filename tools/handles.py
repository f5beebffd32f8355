"""Write the public classes from the functions behind them: `python tools/handles.py`; `--check` only compares.

A verb is written once, as a function that returns a flow, with its docstring. This script writes the public classes:
for each verb a sync method that drives the flow, and an async one with LangChain's prefix `a`.

- The caller does not pass what a handle knows: `INJECTED` gives the source of a parameter by its name, and `SCOPES`
  gives the ids of the caller from which a memory derives it.
- A caller may override the memory's value of parameters in `Verb.public`.
- `Verb.fixed` gives the code that is passed for a parameter; parameters in `Verb.hidden` are not passed.
- What a verb needs is imported when it is first called, by an async one in a thread: an application pays for what it
  calls.
- A parameter that is a dataclass of keywords (`settings: Settings`, `filters: Filters`) becomes one keyword for each of
  its fields.

It also rewrites, in place, every async twin elsewhere whose docstring is "The async twin of `name`.": the text of the
sync function, with `await` and the prefix before the calls of `AWAITED`. A twin with another docstring is not changed.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from textwrap import dedent, indent, wrap
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

PACKAGE = "langchain_supabase_memory"
ROOT = Path(__file__).parents[1]
KEYWORDS = {"Settings", "Filters"}
"""The dataclasses whose fields become keywords."""

INJECTED = {
    "services": "{memory}",
    "retention": "{memory}.settings.retention",
    "redactor": "{memory}.redactor",
    "time_zone": "{memory}.config.time_zone",
    "zone": "{memory}.config.time_zone",
    "profile": "{memory}.config.profile",
    "capabilities": "{memory}.capabilities",
    "summarizer": "{memory}.summarizer_name",
    "chunking": "{memory}.chunking()",
    "policy: SummaryPolicy": "{memory}.summary_policy()",
    "policy: BoardPolicy": "{memory}.config.board_policy",
    "embedder": "{memory}.embedder_name",
    "tone": "{memory}.rates_tone",
    "embedder: str": "{memory}.require_embedder()",
}
"""The source of a parameter: by its name, or by its name and type."""

PUBLIC = {"retention": "{name} or {memory}.settings.retention", "chunking": "{memory}.chunking({name})"}
"""The code for parameters that a caller may override: the caller's value, or the memory's."""

SCOPES = {
    "key": "{memory}.key(thread_id, None, agent_id)",
    "scope": "{memory}.scope(agent_id=agent_id)",
    "owner": "{memory}.owner()",
    "user_id": "{memory}.served_user_id",
    "agent_id": "{memory}.agent(agent_id)",
    "space": "{memory}.space_id",
    "member": "{memory}.member",
}
"""What a memory derives from the caller's ids, for a function's first, positional parameters."""

IDS = {
    "key": {
        "thread_id": "The conversation's thread.",
        "agent_id": "The agent; the memory's by default.",
    },
    "scope": {
        "agent_id": "Only with this agent; by default with all.",
    },
    "owner": {},
    "user_id": {},
    "agent_id": {"agent_id": "The agent; the memory's by default."},
    "space": {},
    "member": {},
}
"""These ids, with their descriptions in the docstring of a memory's verb."""


AWAITED = {"run", "_run", "perform", "batch", "remember", "forget", "answer", "embed_documents", "load_observer"}
"""The functions that a twin awaits, under their names with the prefix; their arguments do not change."""


@dataclass(frozen=True)
class Verb:
    """The function of a verb.

    Attributes:
        function: The function, by its dotted name below the package.
        public: Parameters that the memory supplies and a caller may override.
        fixed: The code to pass for a parameter that callers do not see.
        hidden: Parameters that callers do not see, left at their default.
    """

    function: str
    public: tuple[str, ...] = ()
    fixed: dict[str, str] = field(default_factory=dict)
    hidden: tuple[str, ...] = ()


@dataclass(frozen=True)
class Handle:
    """A generated class.

    Attributes:
        module: Its module, below `memory`.
        name: Its name.
        about: What it holds: a `conversation`, or a `memory`.
        summary: The module's docstring.
        doc: Its docstring.
        verbs: Its verbs by their names.
        base: Its base class, and the module of that.
        parts: The handles that it returns, by the names of its properties.
    """

    module: str
    name: str
    about: str
    summary: str
    doc: str
    verbs: dict[str, Verb]
    base: tuple[str, str]
    parts: dict[str, str] = field(default_factory=dict)


CONVERSATION = ("ConversationHandle", "memory.handle")
CONVERSATION_PART = ("ConversationPartHandle", "memory.handle")
MEMORY = ("MemoryHandle", "memory.handle")

HANDLES = (
    Handle(
        "conversation",
        "Conversation",
        "conversation",
        "Operations on one conversation.",
        """One conversation of a memory: `memory.conversation("studio")`. It only holds ids, so creating one is free.

Each method has an async twin with LangChain's prefix `a`: `append` and `aappend`. `actor` is the name of the person
who makes a change; it is recorded with the change and its time.
""",
        {
            "append": Verb("memory.messages.append", public=("retention",)),
            "add_turn": Verb("memory.messages.add_turn", public=("retention",)),
            "read": Verb("operations.conversations.read", public=("retention",), hidden=("superseded",)),
            "find": Verb("operations.recall.exact_search.find"),
            "count": Verb("operations.conversations.count"),
            "info": Verb("operations.listing.info"),
            "update": Verb("operations.listing.update"),
            "forget": Verb("memory.messages.forget"),
            "forget_message": Verb("memory.messages.forget_message"),
            "resolve": Verb("operations.turns.resolve"),
            "context": Verb("memory.context_defaults.context", public=("retention",)),
            "manifests": Verb("operations.manifests.listing.manifests"),
            "prompt": Verb("context.read_past_prompt.prompt"),
            "why": Verb("context.read_explanation.why"),
            "coverage": Verb("memory.context_defaults.coverage"),
            "recall": Verb("operations.recall.search.recall"),
            "index": Verb(
                "operations.recall.indexing.index_messages",
                public=("chunking",),
                fixed={"respect_backoff": "False"},
                hidden=("max_batches", "seconds"),
            ),
            "opt_out": Verb("operations.controls.opt_out"),
            "opt_in": Verb("operations.controls.opt_in"),
            "contribute": Verb("operations.contributions.contribute"),
        },
        CONVERSATION,
        {
            "board": "ConversationBoard",
            "summaries": "ConversationSummaries",
            "turns": "ConversationTurns",
            "chunks": "ConversationChunks",
            "superseded": "SupersededMessages",
            "privacy": "ConversationPrivacy",
            "work": "ConversationWork",
        },
    ),
    Handle(
        "conversation_board",
        "ConversationBoard",
        "conversation",
        "Operations on a conversation's board.",
        """A conversation's board: a summary, and items of each kind that `operations.boards.kinds` lists.

Changes by a person survive every regeneration: no model changes items that a person wrote, supersedes pinned
items, or restores deleted ones.
""",
        {
            "read": Verb("operations.boards.board.read_board", hidden=("limit", "version")),
            "add": Verb("operations.boards.editing.add_item"),
            "edit": Verb("operations.boards.editing.edit_item"),
            "pin": Verb("operations.boards.editing.pin_item"),
            "delete": Verb("operations.boards.editing.delete_item"),
            "edit_summary": Verb("operations.boards.editing.edit_summary"),
            "revise": Verb("operations.boards.revise.revise_board", hidden=("if_due", "max_revisions")),
            "regenerate": Verb("operations.boards.revise.regenerate_board"),
        },
        CONVERSATION_PART,
    ),
    Handle(
        "conversation_summaries",
        "ConversationSummaries",
        "conversation",
        "Operations on a conversation's summaries.",
        """A conversation's summaries: the segments of the rolling one, and the complete one.
""",
        {
            "make": Verb("memory.summaries.summarize"),
            "complete": Verb("memory.summaries.complete_summary"),
            "list": Verb("operations.summaries.rolling.list_segments", hidden=("level",)),
            "edit": Verb("operations.controls.edit_segment"),
            "delete": Verb("operations.controls.delete_segment"),
            "regenerate": Verb("operations.controls.regenerate_summaries"),
            "request": Verb("operations.work.request"),
            "index": Verb("operations.recall.summaries.index_summaries"),
        },
        CONVERSATION_PART,
    ),
    Handle(
        "conversation_turns",
        "ConversationTurns",
        "conversation",
        "Operations on a conversation's turns.",
        """A conversation's complete turns: the user's message and the final answer.
""",
        {
            "list": Verb("operations.turns.list_turns", public=("retention",)),
            "get": Verb("operations.turns.read_turn"),
            "as_text": Verb("operations.turns.turns_as_text", public=("retention",)),
            "signals": Verb("operations.signals.signals", public=("retention",)),
        },
        CONVERSATION_PART,
    ),
    Handle(
        "conversation_chunks",
        "ConversationChunks",
        "conversation",
        "Operations on a conversation's chunks.",
        """A conversation's chunks, which recall searches.
""",
        {
            "list": Verb("operations.recall.indexing.chunks"),
            "reembed": Verb("operations.recall.indexing.reembed"),
        },
        CONVERSATION_PART,
    ),
    Handle(
        "superseded_messages",
        "SupersededMessages",
        "conversation",
        "Operations on messages that a graph has left.",
        """The messages that a graph has left, because it was forked or they were removed from its state.
""",
        {
            "list": Verb("operations.conversations.read_superseded", public=("retention",)),
            "reinstate": Verb("operations.conversations.reinstate"),
        },
        CONVERSATION_PART,
    ),
    Handle(
        "conversation_privacy",
        "ConversationPrivacy",
        "conversation",
        "A person's overrides for one conversation.",
        """A person's overrides for one conversation: opt-outs, ratings and edits.
""",
        {
            "opt_outs": Verb("operations.controls.opt_outs"),
            "changes": Verb("operations.controls.changes"),
        },
        CONVERSATION_PART,
    ),
    Handle(
        "conversation_work",
        "ConversationWork",
        "conversation",
        "Background work on one conversation.",
        """Background work on one conversation.
""",
        {
            "status": Verb("operations.work.status_of"),
            "retry": Verb("operations.work.retry_one"),
        },
        CONVERSATION_PART,
    ),
    Handle(
        "privacy",
        "Privacy",
        "memory",
        "A person's overrides for all of a user's conversations.",
        """A person's overrides for all of a user's conversations, and their history: `memory.privacy`.
""",
        {
            "opt_out": Verb("operations.controls.opt_out"),
            "opt_in": Verb("operations.controls.opt_in"),
            "opt_outs": Verb("operations.controls.opt_outs"),
            "changes": Verb("operations.controls.changes"),
            "rate": Verb("operations.controls.rate"),
            "consent": Verb("operations.profile.consent"),
            "consents": Verb("operations.profile.consents"),
        },
        MEMORY,
    ),
    Handle(
        "profile",
        "Profile",
        "memory",
        "What is known of a user.",
        """What is known of a user, from all of their conversations and from themself: `memory.profile`.

`actor` is the name of the person who makes a change, the user by default; it is recorded with the change.
""",
        {
            "read": Verb("operations.profile.read"),
            "history": Verb("operations.profile.history"),
            "remember": Verb("operations.profile.remember"),
            "confirm": Verb("operations.profile.confirm"),
            "correct": Verb("operations.profile.correct"),
            "delete": Verb("operations.profile.delete"),
            "pin": Verb("operations.profile.pin"),
        },
        MEMORY,
    ),
    Handle(
        "topics",
        "Topics",
        "memory",
        "What a user's conversations are about.",
        """What a user's conversations are about, found without a model: `memory.topics`.

`actor` is the name of the person who makes a change; it is recorded with the change.
""",
        {
            "read": Verb("operations.topics.read"),
            "get": Verb("operations.topics.get"),
            "days": Verb("operations.topics.days"),
            "rename": Verb("operations.topics.rename"),
            "merge": Verb("operations.topics.merge"),
            "hide": Verb("operations.topics.hide"),
            "forget": Verb("operations.topics.forget"),
            "recluster": Verb("operations.topics.recluster"),
            "update": Verb("operations.topics.update"),
        },
        MEMORY,
    ),
    Handle(
        "usage",
        "DailyUsage",
        "memory",
        "What a user's conversations came to on each day, in numbers.",
        """What conversations came to on each day, in numbers alone: `memory.usage`.
""",
        {
            "by_day": Verb("operations.usage.by_day"),
            "update": Verb("operations.usage.update"),
            "insights": Verb("operations.usage.insights"),
        },
        MEMORY,
    ),
    Handle(
        "work",
        "Work",
        "memory",
        "Operations on due work, over all conversations that a memory may access.",
        """Due, running, waiting and dead work: `memory.work`.

The methods cover the memory's user; without one, all users that the memory may access.
""",
        {
            "status": Verb("operations.work.status"),
            "queue": Verb("operations.work.queue", hidden=("user_id",)),
            "retry": Verb("operations.work.retry"),
            "unreadable": Verb("operations.unreadable.unreadable"),
            "users": Verb("operations.users.list_users"),
            "summarize_due": Verb("memory.summaries.summarize_due"),
            "index_due": Verb("operations.due.index_due"),
        },
        MEMORY,
    ),
    Handle(
        "spaces",
        "Spaces",
        "memory",
        "The spaces of a user.",
        """The spaces that a user is in: `memory.spaces`. `memory.space(space_id)` is the handle of one.
""",
        {
            "create": Verb("operations.spaces.create"),
            "list": Verb("operations.spaces.spaces"),
            "join": Verb("operations.spaces.join"),
            "shared_data": Verb("operations.contributions.shared_data"),
        },
        MEMORY,
    ),
    Handle(
        "space",
        "Space",
        "memory",
        "Operations on one space.",
        """One space: `memory.space(space_id)`. Memory that several people share; `space.memory` reads and writes in it.

A space is an owner: all that a memory does for a user it does in a space, for whoever the role allows it. Members
read, append, edit their own messages and forget them. Summaries, boards and chunks are made by a server.
""",
        {
            "info": Verb("operations.spaces.info"),
            "update": Verb("operations.spaces.update"),
            "invite": Verb("operations.spaces.invite"),
            "withdraw_invitations": Verb("operations.spaces.withdraw_invitations"),
            "set_member": Verb("operations.spaces.set_member"),
            "set_name": Verb("operations.spaces.set_name"),
            "leave": Verb("operations.spaces.leave"),
            "withdraw": Verb("operations.contributions.withdraw"),
            "forget": Verb("operations.spaces.forget"),
        },
        ("SpaceHandle", "memory.handle"),
    ),
    Handle(
        "rollouts",
        "Rollouts",
        "memory",
        "Operations on a rollout.",
        """The rollout of the memory to agents in stages, and comparisons of old and new context: `memory.rollout`.

See `Rollout` for the stages.
""",
        {
            "set": Verb("operations.rollout.stages.set_stage"),
            "stage": Verb("operations.rollout.stages.stage"),
            "history": Verb("operations.rollout.stages.history"),
            "comparisons": Verb("operations.rollout.comparison.comparisons"),
            "report": Verb("operations.rollout.comparison.report", fixed={"user_id": "self._services.scope_text()"}),
        },
        MEMORY,
    ),
    Handle(
        "memory",
        "SupabaseMemory",
        "memory",
        "Operations on all conversations of a user, and on the memory itself.",
        """A memory on Supabase, or on any Postgres. It opens connections at the first call, not when it is created.

Create one with `from_url`, `from_client`, `from_conn_string` or `embedded`, share it in the whole process, and
close it at the end. Methods for one conversation are on its handle, `memory.conversation("studio")`; methods for
all of a user's conversations are here. Each method has an async twin with LangChain's prefix `a`: `recall` and
`arecall`.
""",
        {
            "conversations": Verb("operations.listing.conversations"),
            "recall": Verb("operations.recall.search.recall"),
            "find": Verb("operations.recall.exact_search.find"),
            "recall_summaries": Verb("operations.recall.summaries.recall_summaries", public=("time_zone",)),
            "forget_user": Verb("memory.messages.forget_user"),
            "forget_expired": Verb("memory.messages.forget_expired", public=("retention",)),
            "flush": Verb("memory.outbox_delivery.flush"),
            "doctor": Verb("memory.doctor.checks.doctor"),
            "advice": Verb("operations.advice.advice"),
        },
        ("Constructors", "memory.constructors"),
        {
            "privacy": "Privacy",
            "work": "Work",
            "rollout": "Rollouts",
            "spaces": "Spaces",
            "profile": "Profile",
            "topics": "Topics",
            "usage": "DailyUsage",
        },
    ),
)


class Module:
    """The names in a module of the package.

    Args:
        name: Its dotted name below the package.
    """

    def __init__(self, name: str) -> None:
        self.name = f"{PACKAGE}.{name}"
        self.source = (ROOT / PACKAGE / f"{name.replace('.', '/')}.py").read_text(encoding="utf-8")
        self.tree = ast.parse(self.source)
        self.imports: dict[str, str] = {}
        for node in ast.walk(self.tree):
            if isinstance(node, ast.ImportFrom):
                for each in node.names:
                    self.imports[each.asname or each.name] = f"from {node.module} import {ast.unparse(each)}"
        for node in self.tree.body:
            for name in _defined(node):
                self.imports[name] = f"from {self.name} import {name}"

    def cls(self, name: str) -> ast.ClassDef:
        """Return a class of the module."""
        return next(node for node in self.tree.body if isinstance(node, ast.ClassDef) and node.name == name)

    def function(self, name: str) -> ast.FunctionDef:
        """Return a function of the module."""
        return next(node for node in self.tree.body if isinstance(node, ast.FunctionDef) and node.name == name)

    def home(self, name: str) -> Module:
        """Return the module that defines an imported name."""
        words = self.imports[name].split()
        return self if words[1] == self.name else Module(words[1].removeprefix(f"{PACKAGE}."))


def _defined(node: ast.stmt) -> list[str]:
    if isinstance(node, (ast.ClassDef, ast.FunctionDef)):
        return [node.name]
    if isinstance(node, ast.Assign):
        return [each.id for each in node.targets if isinstance(each, ast.Name)]
    return [node.target.id] if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) else []


class Writer:
    """Writes one class.

    Args:
        handle: The class.
    """

    def __init__(self, handle: Handle) -> None:
        self.handle = handle
        self.memory = "self._services"
        self.names: dict[str, str] = {}  # the import for each name in the generated code

    def text(self) -> str:
        """Return the whole module."""
        handle = self.handle
        methods = self._constructors() if handle.base[0] == "Constructors" else []
        for name, verb in handle.verbs.items():
            methods += [self._verb(name, verb, ""), self._verb(name, verb, "a")]
        methods += [self._part(name, part) for name, part in handle.parts.items()]
        doc = indent(f'"""{handle.doc}"""', "    ")
        body = f"class {handle.name}({handle.base[0]}):\n{doc}\n\n" + indent("\n\n".join(methods), "    ")
        base = f"from {PACKAGE}.{handle.base[1]} import {handle.base[0]}"
        head = f'"""{handle.summary}"""\n\nfrom __future__ import annotations\n\n'
        note = "# Written by tools/handles.py. Do not edit.\n"
        if "list" in handle.verbs:  # the method's name shadows it within the class
            self.names["builtins"] = "import builtins"
            body = re.sub(r"(?<![\w.])list\[", "builtins.list[", body)
        return _tidied(note + head + "\n".join(sorted({*self.names.values(), base})) + "\n\n\n" + body + "\n")

    def _constructors(self) -> list[str]:
        """Return the constructors of a memory, with each setting as a keyword."""
        module, made = Module(self.handle.base[1]), []
        for node in module.cls(self.handle.base[0]).body:
            if not isinstance(node, ast.FunctionDef) or not any(
                each.arg == "settings" for each in node.args.kwonlyargs
            ):
                continue
            first, *positional = node.args.args
            shown, passed = self._parameters(module, node, positional)
            doc = self._doc(module, node, {})
            signature = ", ".join([first.arg, *shown])
            if node.name == "__init__":
                end = f"    super().__init__({', '.join(passed)})"
                made.append(f"def __init__({signature}) -> None:\n{doc}\n{end}")
            else:
                end = f"    return cls.{node.name}({', '.join(passed)})"
                self._uses(module, "Self")
                made.append(f"@classmethod\ndef {node.name.removeprefix('_')}({signature}) -> Self:\n{doc}\n{end}")
        return made

    def _part(self, name: str, part: str) -> str:
        """Return a property for a nested handle."""
        handle = next(each for each in HANDLES if each.name == part)
        self.names[part] = f"from {PACKAGE}.memory.{handle.module} import {part}"
        given = "self._services, self._key" if handle.about == "conversation" else "self._services"
        doc = handle.doc.partition("\n")[0]
        return f'@property\ndef {name}(self) -> {part}:\n    """{doc}"""\n    return {part}({given})'

    def _verb(self, name: str, verb: Verb, prefix: str) -> str:
        """Return the sync or async method of a verb."""
        path, _, function = verb.function.rpartition(".")
        module = Module(path)
        node = module.function(function)
        assert isinstance(node.returns, ast.Subscript)
        self._names_in(module, node.returns.slice)
        before, ids, positional = self._known(node)
        shown, passed = self._parameters(module, node, positional, verb, ids)
        passed = [*before, *passed]
        returns = ast.unparse(node.returns.slice)
        run = f"{self.memory}.run" if not prefix else f"await {self.memory}.arun"
        doc = self._doc(module, node, ids, verb) if not prefix else f'    """The async twin of `{name}`."""'
        gives = "" if returns == "None" else "return "
        start = f"{'async ' if prefix else ''}def {prefix}{name}({', '.join(['self', *shown])}) -> {returns}:"
        imported = module.imports[function]
        if prefix:
            self.names["load"] = f"from {PACKAGE}.memory.handle import load"
            imported = f'await load("{imported.split()[1]}")\n    {imported}'
        call = f"    {imported}\n\n    {gives}{run}({function}({', '.join(passed)}))"
        return f"{start}\n{doc}\n{call}"

    def _known(self, node: ast.FunctionDef) -> tuple[list[str], dict[str, str], list[ast.arg]]:
        """Return what a handle passes first, the caller's ids with descriptions, and other positional parameters.

        A memory's ids are keywords, except a thread.
        """
        passed: list[str] = []
        ids: dict[str, str] = {}
        rest = list(node.args.args)
        while rest:
            each = rest[0].arg
            kind = "" if rest[0].annotation is None else f"{each}: {ast.unparse(rest[0].annotation)}"
            if each in SCOPES and self.handle.about == "memory":
                passed.append(SCOPES[each].format(memory=self.memory))
                ids |= IDS[each]
            elif each in ("key", "scope"):
                passed.append("self._key" if each == "key" else "Scope.of(self._key)")
                if each == "scope":
                    self.names["Scope"] = f"from {PACKAGE}.values import Scope"
            elif each == "services":
                passed.append(self.memory)
            elif kind in ("policy: SummaryPolicy", "policy: BoardPolicy"):
                passed.append(INJECTED[kind].format(memory=self.memory))
            else:
                break
            rest.pop(0)
        return passed, ids, rest

    def _parameters(
        self,
        module: Module,
        node: ast.FunctionDef,
        positional: list[ast.arg],
        verb: Verb | None = None,
        ids: dict[str, str] | None = None,
    ) -> tuple[list[str], list[str]]:
        """Return the parameters that a caller sees, and the arguments that pass everything on."""
        args = node.args
        count = len(args.args)
        defaults = dict(zip((each.arg for each in args.args[count - len(args.defaults) :]), args.defaults, strict=True))
        shown = ["thread_id: str"] if "thread_id" in (ids or {}) else []
        keywords = [f"{name}: str | None = None" for name in ids or {} if name != "thread_id"]
        passed: list[str] = []
        for each in positional:
            given = self._given(each, verb)
            if given is None:
                shown.append(self._parameter(module, each, defaults.get(each.arg)))
                passed.append(each.arg)
            else:
                keywords += self._chosen(module, each, verb)
                passed.append(f"{each.arg}={given}")
        if args.vararg:
            shown.append("*" + self._parameter(module, args.vararg, None))
            passed.append("*" + args.vararg.arg)
        for each, default in zip(args.kwonlyargs, args.kw_defaults, strict=True):
            kind = ast.unparse(each.annotation) if each.annotation else ""
            given = self._given(each, verb)
            if verb is not None and each.arg in verb.hidden:
                continue
            if given is not None:
                keywords += self._chosen(module, each, verb)
                passed.append(f"{each.arg}={given}")
            elif kind in KEYWORDS:
                self._uses(module, kind)
                home = module.home(kind)
                fields = _fields(home.cls(kind))
                keywords += [self._field(home, each) for each in fields]
                passed.append(f"{each.arg}={kind}({', '.join(f'{name}={name}' for name in map(_name, fields))})")
            else:
                keywords.append(self._parameter(module, each, default))
                passed.append(f"{each.arg}={each.arg}")
        return [*shown, *(["*"] if keywords and not args.vararg else []), *keywords], passed

    def _given(self, each: ast.arg, verb: Verb | None) -> str | None:
        """Return the code for a parameter that the memory supplies; `None` if only the caller does."""
        if verb is None:
            return None
        if each.arg in verb.fixed:
            return verb.fixed[each.arg]
        if each.arg in verb.public:
            given = PUBLIC.get(each.arg, "{name}")
        else:
            kind = "" if each.annotation is None else f"{each.arg}: {ast.unparse(each.annotation)}"
            given = INJECTED.get(kind) or INJECTED.get(each.arg, "")
        return given.format(name=each.arg, memory=self.memory) or None

    def _chosen(self, module: Module, each: ast.arg, verb: Verb | None) -> list[str]:
        """Return the keyword of a parameter that a caller may override."""
        if verb is None or each.arg not in verb.public:
            return []
        assert each.annotation is not None
        self._names_in(module, each.annotation)
        kind = ast.unparse(each.annotation).removesuffix(" | None")
        return [f"{each.arg}: {kind} | None = None"]

    def _field(self, module: Module, field: ast.AnnAssign) -> str:
        assert field.value is not None
        self._names_in(module, field.annotation)
        self._names_in(module, field.value)
        return f"{_name(field)}: {ast.unparse(field.annotation)} = {ast.unparse(field.value)}"

    def _parameter(self, module: Module, each: ast.arg, default: ast.expr | None) -> str:
        assert each.annotation is not None
        self._names_in(module, each.annotation)
        if default is None:
            return f"{each.arg}: {ast.unparse(each.annotation)}"
        self._names_in(module, default)
        return f"{each.arg}: {ast.unparse(each.annotation)} = {ast.unparse(default)}"

    def _doc(self, module: Module, node: ast.FunctionDef, ids: dict[str, str], verb: Verb | None = None) -> str:
        """Return the docstring for the caller's parameters, with those of a dataclass of keywords."""
        before, entries, after = _sections(ast.get_docstring(node) or "")
        kinds = {each.arg: ast.unparse(each.annotation) for each in node.args.kwonlyargs if each.annotation}
        params = {each.arg: each for each in [*node.args.args, *node.args.kwonlyargs]}
        lines: list[str] = []
        known = set(SCOPES) | {"services"} if verb is not None else set()
        positional = {each.arg for each in node.args.args}
        said = {name: _wrapped(f"{name}: {text}") for name, text in ids.items()}
        for name, text in {**said, **entries}.items():
            if verb is not None and name not in ids:
                each = params.get(name)
                is_known = name in known and name in positional
                is_given = each is not None and name not in verb.public and self._given(each, verb) is not None
                if is_known or is_given or name in verb.hidden:
                    continue
            lines += _described(module.home(kinds[name]).cls(kinds[name])) if kinds.get(name) in KEYWORDS else text
        sections = [before, *(["Args:\n" + "\n".join(lines)] if lines else []), *([after] if after else [])]
        doc = "\n\n".join(sections)
        return indent(f'"""{doc}\n"""' if "\n" in doc else f'"""{doc}"""', "    ")

    def _names_in(self, module: Module, node: ast.expr) -> None:
        for each in ast.walk(node):
            if isinstance(each, ast.Name):
                self._uses(module, each.id)

    def _uses(self, module: Module, name: str) -> None:
        if name in module.imports:
            given = self.names.setdefault(name, module.imports[name])
            if given != module.imports[name]:
                raise SystemExit(f"{name} means two things: {given}, and {module.imports[name]}")


def _sections(doc: str) -> tuple[str, dict[str, list[str]], str]:
    """Return the text before the arguments, the lines of each argument, and the text after them."""
    lines = doc.splitlines()
    if "Args:" not in lines:
        index = next((index for index, line in enumerate(lines) if line in ("Returns:", "Raises:", "Example:")), None)
        if index is None:
            return doc, {}, ""
        return "\n".join(lines[:index]).rstrip(), {}, "\n".join(lines[index:])
    start = lines.index("Args:")
    entries: dict[str, list[str]] = {}
    index = start + 1
    while index < len(lines) and lines[index]:
        if not lines[index].startswith("     "):
            name = lines[index].strip().partition(":")[0]
            entries[name] = []
        entries[name].append(lines[index])
        index += 1
    return "\n".join(lines[:start]).rstrip(), entries, "\n".join(lines[index:]).strip("\n")


def _name(field: ast.AnnAssign) -> str:
    assert isinstance(field.target, ast.Name)
    return field.target.id


def _fields(cls: ast.ClassDef) -> list[ast.AnnAssign]:
    return [node for node in cls.body if isinstance(node, ast.AnnAssign)]


def _wrapped(entry: str) -> list[str]:
    return wrap(entry, 108, initial_indent="    ", subsequent_indent="        ", break_on_hyphens=False)


def _described(cls: ast.ClassDef) -> list[str]:
    """Return a dataclass's field descriptions as arguments of a function."""
    section = (ast.get_docstring(cls) or "").split("Attributes:\n")[1].split("\n\n")[0]
    made: list[str] = []
    for entry in dedent(section).replace("\n    ", " ").splitlines():
        made += _wrapped(entry)
    return made


def _tidied(text: str) -> str:
    """Apply the linter: sort imports, and separate those for types."""
    for command in (["check", "--fix", "--select", "I,TC,F401", "--unsafe-fixes", "--quiet"], ["format"]):
        name = ["--stdin-filename", str(ROOT / PACKAGE / "memory/x.py"), "-"]
        ruff = [sys.executable, "-m", "ruff", *command, *name]
        text = subprocess.run(ruff, input=text, capture_output=True, text=True, check=False).stdout
    return text


def _with_twins(text: str) -> str:
    """Return a module's text with generated async twins."""
    lines, tree = text.splitlines(keepends=True), ast.parse(text)
    made: list[tuple[slice, str]] = []
    for scope in ast.walk(tree):
        if not isinstance(scope, (ast.Module, ast.ClassDef)):
            continue
        sync = {_twin_name(node.name): node for node in scope.body if isinstance(node, ast.FunctionDef)}
        for node in scope.body:
            if not isinstance(node, ast.AsyncFunctionDef) or node.name not in sync:
                continue
            original = sync[node.name]
            if ast.get_docstring(node) == f"The async twin of `{original.name}`.":
                made.append((_place(node), _twin("".join(lines[_place(original)]))))
    for place, twin in sorted(made, key=lambda each: each[0].start, reverse=True):
        lines[place] = [twin]
    return "".join(lines) if made else text


def _place(node: ast.FunctionDef | ast.AsyncFunctionDef) -> slice:
    """Return the lines of a function, including decorators."""
    return slice(min(each.lineno for each in (node, *node.decorator_list)) - 1, node.end_lineno)


def _twin(text: str) -> str:
    """Return the async twin of a function."""
    source = dedent(text).encode()
    (node,) = ast.parse(source).body
    assert isinstance(node, ast.FunctionDef)
    starts = [0, *(found.end() for found in re.finditer(b"\n", source))]

    def span(part: ast.stmt | ast.expr) -> tuple[int, int]:
        assert part.end_lineno is not None
        assert part.end_col_offset is not None
        return starts[part.lineno - 1] + part.col_offset, starts[part.end_lineno - 1] + part.end_col_offset

    (begin, _), (first, end), doc = span(node), span(node.body[0]), f'"""The async twin of `{node.name}`."""'
    if ast.get_docstring(node) is None:
        end, doc = first, f"{doc}\n{' ' * node.body[0].col_offset}"
    changes = [(begin, begin + len(f"def {node.name}"), f"async def {_twin_name(node.name)}"), (first, end, doc)]
    flows: set[int] = set()  # arguments of a driver are not calls of the twin itself
    held = {id(each.value) for each in ast.walk(node) if isinstance(each, (ast.Subscript, ast.Attribute))}
    for call in ast.walk(node):
        if not isinstance(call, ast.Call) or id(call) in flows:
            continue
        name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
        if name in AWAITED:
            flows |= {id(each) for given in call.args for each in ast.walk(given)}
            (begin, end), (_, named) = span(call), span(call.func)
            before, after = ("(await ", ")") if id(call) in held else ("await ", "")
            changes += [(begin, begin, before), (named - len(name), named, _twin_name(name)), (end, end, after)]
    for begin, end, word in sorted(changes, reverse=True):
        source = source[:begin] + word.encode() + source[end:]
    return indent(source.decode(), text[: len(text) - len(text.lstrip())])


def _twin_name(name: str) -> str:
    """Return the name of the async twin: LangChain's prefix, after any underscores."""
    return re.sub("^_*", r"\g<0>a", name)


def _written() -> Iterator[tuple[Path, str]]:
    """Yield each module that is generated in whole or in part, with its text."""
    for handle in HANDLES:
        yield ROOT / PACKAGE / "memory" / f"{handle.module}.py", Writer(handle).text()
    handles = {f"{handle.module}.py" for handle in HANDLES}
    for path in sorted((ROOT / PACKAGE).rglob("*.py")):
        if path.parent.name != "memory" or path.name not in handles:
            text = path.read_text(encoding="utf-8")
            made = _with_twins(text) if "The async twin of" in text else text
            yield path, made if made == text else _tidied(made)


def main() -> int:
    """Write the modules, or list the stale ones."""
    stale = []
    for path, text in _written():
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            stale.append(str(path.relative_to(ROOT)))
            if "--check" not in sys.argv:
                path.write_text(text, encoding="utf-8")
    if stale and "--check" in sys.argv:
        sys.stderr.write(f"Not as tools/handles.py writes them: {', '.join(stale)}. Run python tools/handles.py.\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
