"""Find secrets by the text before them: `password: …`, `api_key=…`, "das Passwort lautet …", "PIN: …"."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from langchain_supabase_memory.language.messages.redaction import labels
from langchain_supabase_memory.language.messages.redaction.base64_text import decode
from langchain_supabase_memory.language.messages.redaction.rules import NamedRule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from langchain_supabase_memory.language.messages.redaction.rules import Span

_QUOTED: Final = (
    r""""(?P<double>(?:[^"\\\n]|\\.){1,4096}+)"|'(?P<single>(?:[^'\\\n]|\\.){1,4096}+)'"""
    r"|`(?P<tick>(?![\s,.;:)])[^`\n]{1,4096}+)`"
)
_FIRST: Final = (
    rf"(?P<phrase>{labels.PHRASE})|(?P<sure>{labels.SURE})|(?P<vague>{labels.VAGUE})|(?P<short>{labels.SHORT})"
)
_LABEL: Final = re.compile(rf"(?i)(?=[pcasjwebimrt])(?:{_FIRST})")
_FOREIGN: Final = re.compile(
    rf"(?i){_FIRST}|(?P<other>{'|'.join(map(re.escape, labels.PARTS))}"
    rf"|(?<![^\W_])(?:{'|'.join(map(re.escape, labels.WHOLE))}))"
)
_SIGN: Final = (
    r"""\\?["'`]?\]?(?:[ \t]{1,4}(?P<owner>"""
    + labels.OWNER
    + r""")(?=[ \t:=]))?[ \t]{0,4}"""
    + rf"(?P<sign>:=|=>|[:=]{{1,2}}|(?<=[ \t])(?:(?P<naming>{labels.NAMING})|{labels.COPULA})(?=[ \t:])[ \t]?:?"
    + rf"|{labels.JOINED}[ \t]?:?)[ \t]{{0,4}}\\?"
)
_ASSIGNED: Final = re.compile(rf"""(?i){_SIGN}(?:{_QUOTED}|["'`]?(?P<bare>(?![\[{{(])[^\s"'`\\]++))""")
_IN_A_WORD: Final = re.compile(r"[^\W_]\Z")
_A_NUMBER: Final = re.compile(r"\d[ ]?\Z")
"""5 pW is a power."""

_IN_A_NAME: Final = re.compile(r"(?:[\w./]|(?<![ \t]-)(?<![ \t])-)\Z")
"""Part of a word, a path or a render pass; not of an option."""

_WORDS: Final = re.compile(
    rf"""(?i){_SIGN}["'`]?(?P<words>[a-z]{{2,12}}(?:[ -][a-z]{{2,12}}){{2,23}}+)(?=[ \t]*(?:["'`.,;!?\n]|\Z))"""
)
_PINS: Final = re.compile(
    rf"""(?i)(?:(?=[pog暗2vslam])(?:{labels.PIN}))\\?["'`]?(?:[ \t]{{1,4}}{labels.OWNER}(?=[ \t:=]))?[ \t]{{0,4}}"""
    rf"(?:[:=]{{1,2}}|(?<=[ \t])(?:{labels.NAMING}|{labels.COPULA})[ \t:]|{labels.JOINED})"
    r"""[ \t]{0,4}\\?["'`]?(?P<value>\d{3}[ -]\d{3}|\d{4,12})(?![\w%°]|[.,:/-]\d)"""
    rf"""|(?=c)(?:{labels.CARD_CODE})\\?["'`]?[ \t]{{0,4}}(?:[:=]|is[ \t]|)[ \t]{{0,4}}\\?["'`]?(?P<code>\d{{3,4}})"""
    r"(?![\w%]|[.,]\d)"
)
_BASIC: Final = re.compile(
    r"""(?i)(?<![^\W_])_?auth\\?["']?[ \t]{0,4}[:=][ \t]{0,4}\\?["']?(?P<value>[a-z0-9+/_-]{6,4096}+={0,2})(?![\w(.])"""
)
"""Docker's `"auth"`, npm's `_auth`: a name and a password in base64."""

_NAME_AND_PASSWORD: Final = re.compile(r"[^\s:]{1,200}:\S[^\r\n]{0,400}")

# Placeholders that stand where a secret would.
_NOTHING: Final = re.compile(
    r"(?i:none|null|nil|true|false|undefined|required|optional|string|str|text|hidden|empty|unset|incorrect|invalid|"
    r"(?:os\.environ|os\.getenv|process\.env|env|import\.meta\.env|deno\.env|settings|config|self)[.\[(].*)|"
    r"[*xX.•…_-]+|\$\{\w+\}?|\$[A-Z_][A-Z0-9_]*|\{\{?\s*[\w.]+\s*\}{0,2}|<[\w -]*>?|%[A-Z_]+%|"
    r"[A-Za-z_][\w.]*\((?:[^)]*\))?|[\[{(]+|(?i:your|my)[-_ ][A-Za-z_ -]{1,60}|[A-Z]{2,}(?:_[A-Z]+)+|"
    r"(?=[a-z_.]*(?:token|key|secret|passw|credential))[a-z]*(?:[._][a-z]+)+"
)
_TRAILING: Final = ".,;:!?)]}>"
_DELIMITER: Final = re.compile("[&;]")
_UNLIKE_WORDS: Final = re.compile(r"[^\w\s'’-]|\d")
_COUNTED: Final = re.compile(
    r"(?i)[ \t-]{1,2}(?:char(?:acter)?s?|digits?|letters?|symbols?|words?|bits?|zeichen|stellen|mots)\b"
)
_ALPHANUMERIC: Final = re.compile(r"[^\W_]")
_ITSELF: Final = re.compile(r"\w+[\[.(].*|pw", re.IGNORECASE)
_PATH: Final = re.compile(r"(?:[A-Za-z]:)?[/~\\].*")
# After a verb that introduces the secret: words that continue the sentence. After "pass": results of a test.
_GO_ON: Final = re.compile("auf|nicht|so|jetzt|auch|wie|immer|anders|also|nun|noch|weiterhin|niet|nie|tak|jak|dan")
_RESULTS: Final = re.compile("pass(?:ed)?|fail(?:ed)?|skip(?:ped)?|success|done|first|second|third|next|last|test")
_GRAMMAR: Final = re.compile(
    "an?|the|of|for|to|is|are|was|be|and|or|not|in|on|at|by|with|from|as|it|that|this|if|your|my|must|should|can|will|has"
    "|when|which|who|you|we|they|used|needed|required|stored|kept|set"
)
_MNEMONICS: Final = (12, 15, 18, 21, 24)
"""The possible word counts of a seed phrase, which may contain grammatical words."""

_MEASURE: Final = re.compile(r"[\d.,:/x×+-]+[A-Za-z%°]{0,3}")
_TESTED: Final = re.compile(r"(?i)test.*|.*(?:[/\\(]|::).*|.*\.[a-z]\w{0,3}")
_SECRETIVE: Final = re.compile(r"(?=.*\d)(?=.*[^\W\d_]).*|(?=.*\w).*[!@#$%^&*+=?~].*|\d{6,}")
_LONG: Final = 256
"""A longer value that is not a secret is not searched for labels."""


class Assignments(NamedRule):
    """Find values assigned to a name such as `password`, `api_key` or `token`, in prose, code, JSON and mappings."""

    name = "secret"

    def spans(self, text: str) -> Iterator[Span]:
        """Yield the spans of assigned values."""
        yield from _assigned(text)
        for match in _PINS.finditer(text):
            yield match.span("value" if match["value"] else "code")
        for match in _BASIC.finditer(text):
            if _is_basic(match["value"]):
                yield match.span("value")

    def covers(self, key: str) -> bool:
        """Return whether a mapping key is the name of a secret."""
        return labels.KEYS.fullmatch(key) is not None

    def is_secret(self, key: str, text: str) -> bool:
        """Return whether a text under an ambiguous key (`auth`, `pass`) is a secret."""
        if key.lower() in ("auth", "_auth"):
            return _is_basic(text)
        return key.lower() == "pass" and " " not in text.strip() and _is_secretive(text.strip())


def _assigned(text: str) -> Iterator[Span]:
    place = 0
    lower = text.lower()
    is_foreign = any(each in lower for each in labels.PARTS) or any(each in lower for each in labels.WHOLE)
    labeled = _FOREIGN if is_foreign else _LABEL
    while (label := labeled.search(text, place)) is not None:
        place = label.start() + 1
        kind = _kind(label)
        if kind is None:
            continue
        words = _WORDS.match(text, label.end()) if label[0].lower().endswith("phrase") else None
        if words is not None and _is_phrase(words["words"].lower()):
            yield words.span("words")
            place = words.end()
            continue
        match = None if kind == "phrase" else _ASSIGNED.match(text, label.end())
        if match is None:
            continue
        group = str(match.lastgroup)
        start, end = match.span(group)
        if group == "bare":
            # In a query string or a connection string another parameter follows.
            delimiter = _DELIMITER.search(match[group]) if match["sign"] == "=" else None
            end = end if delimiter is None else start + delimiter.start()
            while end > start + 1 and text[end - 1] in _TRAILING:
                end -= 1
        if start < end and _is_meant(label, kind, match, text[start:end]):
            yield start, end
            place = end
        elif end - start > _LONG:
            place = end


def _kind(label: re.Match[str]) -> str | None:
    """Return the kind of a label: `sure`, `phrase`, `vague`, `pass`; `None` if it is part of another word."""
    kind = str(label.lastgroup)
    if kind != "short":
        return "sure" if kind == "other" else kind
    before = label.string[max(0, label.start() - 20) : label.start()]
    if labels.SERVICE.search(before):
        return "sure"
    if label[0].lower() == "pw":
        return None if _IN_A_WORD.search(before) or _A_NUMBER.search(before) else "sure"
    return None if _IN_A_NAME.search(before) else "pass"


def _is_meant(label: re.Match[str], kind: str, match: re.Match[str], value: str) -> bool:
    if _NOTHING.fullmatch(value) or (len(value) < 3 and not _ALPHANUMERIC.search(value)):
        return False
    if label[0].lower() == "pwd" and _PATH.fullmatch(value):
        return False  # a shell's working directory
    if match.lastgroup == "bare" and _ITSELF.fullmatch(value) and value.lower().startswith(label[0].lower()):
        return False  # pw = pw[:-1]
    glued = match.lastgroup == "bare" and match["sign"] + value in match[0]
    if kind == "pass":
        if value.isalpha():
            return glued and match["sign"] == "=" and len(value) > 3 and not _RESULTS.fullmatch(value.lower())
        return _is_secretive(value)
    if match["naming"]:
        return _GO_ON.fullmatch(value.lower()) is None
    if match["sign"][0] not in ":=" or match["owner"]:
        # "The password is wrong" is not one: in a sentence a secret must contain a digit or a sign.
        if _COUNTED.match(match.string, match.end()):
            return False  # 8-20 characters
        return len(value) > 3 and _UNLIKE_WORDS.search(value) is not None
    return not (kind == "vague" and match.lastgroup == "bare" and value.isalpha() and not glued)


def _is_phrase(text: str) -> bool:
    """Return whether words after "passphrase" are a passphrase, and not a sentence about one."""
    words = re.split("[ -]", text)
    return len(words) in _MNEMONICS or not any(map(_GRAMMAR.fullmatch, words))


def _is_secretive(value: str) -> bool:
    """Return whether a value after "pass" can be a secret: not a word, an amount, a file, or the name of a test."""
    if len(value) < 4 or _RESULTS.fullmatch(value.lower()) or _NOTHING.fullmatch(value) or _TESTED.fullmatch(value):
        return False
    return _SECRETIVE.fullmatch(value) is not None and (value.isdigit() or not _MEASURE.fullmatch(value))


def _is_basic(value: str) -> bool:
    text = decode(value)
    return text is not None and _NAME_AND_PASSWORD.fullmatch(text) is not None
