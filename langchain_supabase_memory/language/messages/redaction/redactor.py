"""`Redactor`: remove everything that its rules find in texts, deterministically."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from langchain_supabase_memory.errors import ConfigurationError
from langchain_supabase_memory.language.messages.redaction.base64_text import runs
from langchain_supabase_memory.language.messages.redaction.normalized_views import views
from langchain_supabase_memory.language.messages.redaction.rules import RedactionRule, checked_name
from langchain_supabase_memory.language.messages.redaction.size_limit import CharacterLimit

if TYPE_CHECKING:
    from langchain_supabase_memory.language.messages.redaction.rules import Span

Replace: TypeAlias = Callable[[str, str], str]
"""Creates the replacement from the rule's name and the matched text."""

FILLER: Final = "\ufffc"
"""The character that rules see for each character of a mark."""

_DEEPEST: Final = 3
"""How many nested layers of base64 are searched."""

_ROUNDS: Final = 4
"""How often a text is searched again after a match; nearly always once."""


def redaction_mark(name: str, text: str) -> str:
    """Return the mark that replaces a match: `[redacted: email]`."""
    return f"[redacted: {name}]"


class Redactor:
    """Remove secrets and personal data from what is stored, before it leaves the process.

    It is deterministic: the same text always gives the same result, so a retry is idempotent, and a redacted text does
    not change again. If matches overlap, all of them are removed under the mark of the longest; of equal ones, of the
    earliest.

    It reads 1,000,000 characters of one message, or of one value of a store. Text beyond that limit is not searched: it
    is not stored, and a note gives its size in place. Texts of 1,000 characters are always read.

    Limitations: it knows forms and the words around them, not meanings. A secret in a form that no rule knows, or in a
    sentence that no rule expects ("it is swordfish"), is stored. So is one that is split over messages, spelled out,
    encrypted, compressed, or encoded in another way than base64. Names of people, street addresses, dates of birth and
    diagnoses require your own rules. Text in an image, a recording or any other nontext file is not read. Data stored
    earlier does not change, nor do the graph's own state, its checkpoints, or the data that a model, a tracer or a log
    has received. Sometimes it redacts harmless text. It makes leaks rarer; it is neither a guarantee nor a tool for
    compliance.

    Args:
        rules: The rules: `SECRETS` by default; `[*SECRETS, *PERSONAL_DATA, your_rule]` for more.
        replace: Creates the replacement from the rule's name and the matched text: `[redacted: email]` by default. The
            same text in one message always gets the same mark. It should have the form `[redacted: email]` or
            `[redacted: email 7f3a]` (1 to 16 letters and digits): such marks are not redacted again.

    Raises:
        ConfigurationError: An item is not a rule.

    Example:
        ```python
        memory = SupabaseMemory.from_conn_string(conn_string, redact=Redactor([*SECRETS, *PERSONAL_DATA]))
        ```
    """

    def __init__(self, rules: Iterable[RedactionRule] | None = None, replace: Replace = redaction_mark) -> None:
        if rules is None:  # dozens of expressions, which only who redacts compiles
            from langchain_supabase_memory.language.messages.redaction.secrets import SECRETS

            rules = SECRETS
        if isinstance(rules, (str, bytes)) or not isinstance(rules, Iterable):
            raise ConfigurationError("rules must be a list of redaction rules.", hint="Pass SECRETS, for example.")
        if not callable(replace):
            raise ConfigurationError(
                "replace must be a function.", hint="It receives the rule's name and the matched text."
            )
        self.rules: tuple[RedactionRule, ...] = tuple(rules)
        for rule in self.rules:
            if not isinstance(rule, RedactionRule) or isinstance(rule, type):
                raise ConfigurationError(
                    f"{type(rule).__name__} is not a redaction rule.", hint="Create one with pattern_rule(name, regex)."
                )
            checked_name(rule.name)
        self._replace = replace
        names = "|".join(sorted({re.escape(rule.name) for rule in self.rules}, reverse=True))
        label = f"(?:{names})" if replace is redaction_mark else f"(?:{names})(?: [A-Za-z0-9]{{1,16}})?"
        self._marks = re.compile(rf"\[redacted: {label}\]")

    def __repr__(self) -> str:
        """Return the names of the rules."""
        return f"Redactor({', '.join(dict.fromkeys(rule.name for rule in self.rules))})"

    def redact(self, text: str) -> str:
        """Remove the rules' matches and the text beyond the limit; return the same object if nothing changes.

        Args:
            text: Any text.

        Raises:
            ConfigurationError: A rule failed; the message names the rule and quotes none of the text.
        """
        places = Redaction(self).places
        made = Redaction(self).text(CharacterLimit(places).limit_value(text))
        return str(CharacterLimit(places).limit_value(made))


class Redaction:
    """The redaction of one message: the same text always gets the same mark.

    Args:
        redactor: The redactor.
    """

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._made: dict[tuple[str, str], str] = {}

    def text(self, text: str) -> str:
        """Remove everything that the rules find from a text."""
        return self.texts([text])[0]

    def texts(self, pieces: Sequence[str]) -> list[str]:
        """Redact adjacent texts, including matches that span them."""
        for _ in range(_ROUNDS):
            found = self._spans_to_redact("".join(pieces))
            if not found:
                break
            pieces = _cut(pieces, found)
        return list(pieces)

    def places(self, text: str) -> list[Span]:
        """Return the spans of matches and of existing marks in a text."""
        return [
            *((start, end) for start, end, _ in self._spans(text)),
            *(m.span() for m in self._redactor._marks.finditer(text)),
        ]

    def redact_all(self, name: str, text: str) -> str:
        """Return the mark for a whole text; the text itself if it is blank or only marks."""
        bare = self._redactor._marks.sub("", text)
        return self._mark(name, text) if bare.strip() else text

    def covering(self, key: str, item: Any) -> str | None:
        """Return the name of the first rule that covers everything under a mapping key, or the text there."""
        for rule in self._redactor.rules:
            covers, is_secret = getattr(rule, "covers", None), getattr(rule, "is_secret", None)
            for look in views(key):
                if covers is not None and _guarded(rule.name, covers, look.text):
                    return rule.name
                if is_secret is not None and isinstance(item, str) and _guarded(rule.name, is_secret, look.text, item):
                    return rule.name
        return None

    def _spans(self, text: str, depth: int = 0) -> list[tuple[int, int, str]]:
        """Return the spans to remove, in any order, each with the name of its rule.

        Args:
            text: A text.
            depth: The number of enclosing layers of base64.
        """
        shown = self._redactor._marks.sub(lambda match: FILLER * len(match[0]), text)
        spans: list[tuple[int, int, str]] = []
        for look in views(shown):
            found = [
                (rule.name, span)
                for rule in self._redactor.rules
                for span in _guarded(rule.name, _spans, rule, look.text)
            ]
            if depth < _DEEPEST:
                found += [
                    (name, span) for span, said in runs(look.text) if (name := self._telling_spans(said, depth + 1))
                ]
            for name, span in found:
                start, end = look.span(*span)
                if shown[start:end].replace(FILLER, "").strip():
                    spans.append((start, end, name))
        return spans

    def _telling_spans(self, text: str, depth: int) -> str | None:
        """Return the name of a rule that matches decoded base64, as it is or after JSON escapes are decoded."""
        spans = self._spans(text, depth)
        if spans:
            return min(spans)[2]
        try:
            left: list[tuple[str | None, Any]] = [(None, json.loads(text))] if text.lstrip()[:1] in ("{", "[") else []
        except (ValueError, RecursionError):
            return None
        while left:
            name, item = left.pop()
            if isinstance(item, dict):
                left += [(name or self.covering(key, each), each) for key, each in item.items()]
            elif isinstance(item, list):
                left += [(name, each) for each in item]
            elif isinstance(item, (str, int, float)) and not isinstance(item, bool):
                if name is not None and self._redactor._marks.sub("", str(item)).strip():
                    return name
                if found := self._spans(str(item), depth):
                    return found[0][2]
        return None

    def _spans_to_redact(self, text: str) -> list[tuple[Span, str]]:
        """Return the spans to remove, in order, each with its mark."""
        spans = self._spans(text)
        if not spans:
            return []
        # A mark is never cut: a span that reaches into one includes all of it.
        marks = [(*each.span(), "") for each in self._redactor._marks.finditer(text)]
        made = []
        for group in _clusters([*spans, *marks]):
            finds = [each for each in group if each[2]]
            if finds:
                start, end = group[0][0], max(each[1] for each in group)
                longest = max(finds, key=lambda each: (each[1] - each[0], -each[0]))
                made.append(((start, end), self._mark(longest[2], text[start:end])))
        return made

    def _mark(self, name: str, text: str) -> str:
        if (name, text) not in self._made:
            self._made[name, text] = _guarded(name, _replace, self._redactor._replace, name, text)
        return self._made[name, text]


def redactor(redact: Redactor | Iterable[RedactionRule] | None) -> Redactor | None:
    """Convert the `redact` argument of a memory to a redactor.

    Raises:
        ConfigurationError: It is not valid.
    """
    return redact if redact is None or isinstance(redact, Redactor) else Redactor(redact)


def _guarded(name: str, look: Callable[..., Any], *arguments: Any) -> Any:
    """Call a rule; if it fails, raise an error that reveals neither the text nor the rule's message."""
    try:
        return look(*arguments)
    except Exception as error:  # a custom rule may raise anything
        failed = type(error).__name__
    raise ConfigurationError(
        f"The redaction rule {name!r} failed ({failed}); nothing was stored.",
        hint="Fix or remove the rule, and store the messages again.",
    )


def _spans(rule: RedactionRule, text: str) -> list[Span]:
    listed = []
    for start, end in rule.spans(text):
        if not 0 <= start <= end <= len(text):
            raise IndexError
        if start < end:
            listed.append((int(start), int(end)))
    return listed


def _replace(replace: Replace, name: str, text: str) -> str:
    made = replace(name, text)
    if not isinstance(made, str):
        raise TypeError
    return made


def _clusters(spans: Sequence[tuple[int, int, str]]) -> list[list[tuple[int, int, str]]]:
    """Group overlapping spans, in order."""
    clusters: list[list[tuple[int, int, str]]] = []
    reached = -1
    for span in sorted(spans):
        if span[0] < reached:
            clusters[-1].append(span)
        else:
            clusters.append([span])
        reached = max(reached, span[1])
    return clusters


def _cut(pieces: Sequence[str], spans: Sequence[tuple[Span, str]]) -> list[str]:
    """Return the pieces without the matches; a mark goes into the piece where its match begins."""
    made = []
    place, at = 0, 0
    for piece in pieces:
        end, kept, position = place + len(piece), [], place
        while at < len(spans) and spans[at][0][0] < end:
            (start, stop), label = spans[at]
            if start >= place:
                kept += [piece[position - place : start - place], label]
            position = max(position, min(stop, end))
            if stop > end:
                break
            at += 1
        made.append("".join([*kept, piece[position - place :]]))
        place = end
    return made
