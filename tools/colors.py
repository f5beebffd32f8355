"""Write both colors of every verb from its flow: `python tools/colors.py`; with `--check` only say what is not so.

A verb is written once, as a method of a class in `memory/flows` that returns a flow, with its docstring. This script
writes the class that people hold: for each verb a sync method that drives the flow, and an async one with LangChain's
prefix `a`. A parameter that is a dataclass of keywords (`settings: Settings`, `filters: Filters`) becomes one keyword
for each of its fields, so that a new setting is added in one place.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent, indent, wrap

PACKAGE = "langchain_supabase_memory"
ROOT = Path(__file__).parents[1]
KEYWORDS = {"Settings", "Filters"}
"""The dataclasses whose fields are written out as keywords."""


@dataclass(frozen=True)
class Written:
    """A class that is written.

    Attributes:
        module: Its module, below `memory`.
        name: Its name.
        flows: The class of its flows, and the module of that.
        base: What it derives from, and the module of that; one that is `Unpicklable` alone holds its flows itself.
    """

    module: str
    name: str
    flows: tuple[str, str]
    base: tuple[str, str] = ("Unpicklable", "unpicklable")


ALL = (
    Written(
        "conversation", "Conversation", ("ConversationFlows", "memory.flows.conversation"), ("Handle", "memory.handle")
    ),
    Written("work", "Work", ("WorkFlows", "memory.flows.work")),
    Written("rollouts", "Rollouts", ("RolloutFlows", "memory.flows.rollout")),
    Written(
        "memory", "SupabaseMemory", ("MemoryFlows", "memory.flows.memory"), ("Constructors", "memory.constructors")
    ),
)


class Module:
    """A module of the package, as far as names go.

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
        """A class of it."""
        return next(node for node in self.tree.body if isinstance(node, ast.ClassDef) and node.name == name)

    def home(self, name: str) -> Module:
        """The module that defines a name which this one imports."""
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
        written: Which.
    """

    def __init__(self, written: Written) -> None:
        self.written = written
        self.module = Module(written.flows[1])
        self.flows = self.module.cls(written.flows[0])
        self.names: dict[str, str] = {}  # of names in what is written: the import that gives them

    def text(self) -> str:
        """The whole module."""
        match self.written.base[0]:
            case "Constructors":
                methods = self._constructors()
            case "Unpicklable":
                methods = [self._init()]
            case _:
                methods = []
        for node in self.flows.body:
            if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
                methods += [self._verb(node, ""), self._verb(node, "a")]
        doc = indent(f'"""{ast.get_docstring(self.flows)}\n"""', "    ")
        body = f"class {self.written.name}({self.written.base[0]}):\n{doc}\n\n" + indent("\n\n".join(methods), "    ")
        head = f'"""{ast.get_docstring(self.module.tree)}"""\n\n' + "from __future__ import annotations\n\n"
        source = self.written.flows[1].replace(".", "/")
        note = f"# Written by tools/colors.py from {PACKAGE}/{source}.py. Do not edit.\n"
        return _tidied(note + head + "\n".join(sorted({*self.names.values(), *self._own()})) + "\n\n\n" + body + "\n")

    def _own(self) -> list[str]:
        name, module = self.written.base
        own = [f"from {PACKAGE}.{module} import {name}"]
        return [*own, f"from {PACKAGE}.{self.written.flows[1]} import {self.written.flows[0]}"]

    def _init(self) -> str:
        self._uses(self.module, "Services")
        lines = (
            "def __init__(self, memory: Services) -> None:",
            "    self._memory = memory",
            f"    self._flows = {self.flows.name}(memory)",
        )
        return "\n".join(lines)

    def _constructors(self) -> list[str]:
        """The ways to make a memory, with each setting as a keyword."""
        constructors, made = Module(self.written.base[1]), []
        for node in constructors.cls(self.written.base[0]).body:
            if not isinstance(node, ast.FunctionDef) or not any(
                each.arg == "settings" for each in node.args.kwonlyargs
            ):
                continue
            signature, call = self._signature(constructors, node)
            doc = self._doc(constructors, node)
            if node.name == "__init__":
                end = f"    super().__init__({call})\n    self._flows = {self.flows.name}(self)"
                made.append(f"def __init__({signature}) -> None:\n{doc}\n{end}")
            else:
                name = node.name.removeprefix("_")
                end = f"    return cls.{node.name}({call})"
                self._uses(constructors, "Self")
                made.append(f"@classmethod\ndef {name}({signature}) -> Self:\n{doc}\n{end}")
        return made

    def _verb(self, node: ast.FunctionDef, prefix: str) -> str:
        """A verb in one color."""
        assert isinstance(node.returns, ast.Subscript)
        signature, call = self._signature(self.module, node)
        self._names_in(self.module, node.returns.slice)
        returns = ast.unparse(node.returns.slice)
        memory = "self" if self.written.name == "SupabaseMemory" else "self._memory"
        run = f"{memory}.run" if not prefix else f"await {memory}.arun"
        doc = self._doc(self.module, node) if not prefix else f'    """The async twin of `{node.name}`."""'
        gives = "" if returns == "None" else "return "
        start = f"{'async ' if prefix else ''}def {prefix}{node.name}({signature}) -> {returns}:"
        return f"{start}\n{doc}\n    {gives}{run}(self._flows.{node.name}({call}))"

    def _signature(self, module: Module, node: ast.FunctionDef) -> tuple[str, str]:
        """The parameters, and the arguments by which they are passed on."""
        args = node.args
        first, *positional = args.args
        shown, passed = [first.arg], []
        defaults: list[ast.expr | None] = [None] * (len(positional) - len(args.defaults)) + [*args.defaults]
        for each, default in zip(positional, defaults, strict=True):
            shown.append(self._parameter(module, each, default))
            passed.append(each.arg)
        if args.vararg:
            shown.append("*" + self._parameter(module, args.vararg, None))
            passed.append("*" + args.vararg.arg)
        elif args.kwonlyargs:
            shown.append("*")
        for each, default in zip(args.kwonlyargs, args.kw_defaults, strict=True):
            kind = ast.unparse(each.annotation) if each.annotation else ""
            if kind not in KEYWORDS:
                shown.append(self._parameter(module, each, default))
                passed.append(f"{each.arg}={each.arg}")
                continue
            self._uses(module, kind)
            home = module.home(kind)
            fields = _fields(home.cls(kind))
            shown += [self._field(home, field) for field in fields]
            passed.append(f"{each.arg}={kind}({', '.join(f'{name}={name}' for name in map(_name, fields))})")
        return ", ".join(shown), ", ".join(passed)

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

    def _doc(self, module: Module, node: ast.FunctionDef) -> str:
        """The docstring, with what a dataclass of keywords says of each."""
        lines = (ast.get_docstring(node) or "").splitlines()
        made: list[str] = []
        for line in lines:
            name = line.strip().partition(":")[0]
            given = next((each for each in node.args.kwonlyargs if each.arg == name and line.startswith("    ")), None)
            kind = ast.unparse(given.annotation) if given is not None and given.annotation is not None else ""
            made += _described(module.home(kind).cls(kind)) if kind in KEYWORDS else [line]
        text = "\n".join(made)
        return indent(f'"""{text}\n"""' if "\n" in text else f'"""{text}"""', "    ")

    def _names_in(self, module: Module, node: ast.expr) -> None:
        for each in ast.walk(node):
            if isinstance(each, ast.Name):
                self._uses(module, each.id)

    def _uses(self, module: Module, name: str) -> None:
        if name in module.imports:
            given = self.names.setdefault(name, module.imports[name])
            if given != module.imports[name]:
                raise SystemExit(f"{name} means two things: {given}, and {module.imports[name]}")


def _name(field: ast.AnnAssign) -> str:
    assert isinstance(field.target, ast.Name)
    return field.target.id


def _fields(cls: ast.ClassDef) -> list[ast.AnnAssign]:
    return [node for node in cls.body if isinstance(node, ast.AnnAssign)]


def _described(cls: ast.ClassDef) -> list[str]:
    """What a dataclass says of its fields, as arguments of a function."""
    section = (ast.get_docstring(cls) or "").split("Attributes:\n")[1].split("\n\n")[0]
    made: list[str] = []
    for entry in dedent(section).replace("\n    ", " ").splitlines():
        made += wrap(entry, 108, initial_indent="    ", subsequent_indent="        ", break_on_hyphens=False)
    return made


def _tidied(text: str) -> str:
    """As the linter wants it: imports sorted, and those for types alone apart."""
    for command in (["check", "--fix", "--select", "I,TC,F401", "--unsafe-fixes", "--quiet"], ["format"]):
        name = ["--stdin-filename", str(ROOT / PACKAGE / "memory/x.py"), "-"]
        ruff = [sys.executable, "-m", "ruff", *command, *name]
        text = subprocess.run(ruff, input=text, capture_output=True, text=True, check=False).stdout
    return text


def main() -> int:
    """Write the modules, or say which are not as they would be written."""
    stale = []
    for written in ALL:
        path = ROOT / PACKAGE / "memory" / f"{written.module}.py"
        text = Writer(written).text()
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            stale.append(str(path.relative_to(ROOT)))
            if "--check" not in sys.argv:
                path.write_text(text, encoding="utf-8")
    if stale and "--check" in sys.argv:
        sys.stderr.write(f"Not as tools/colors.py writes them: {', '.join(stale)}. Run python tools/colors.py.\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
