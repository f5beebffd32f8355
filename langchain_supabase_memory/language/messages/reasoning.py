"""Separate a model's reasoning from its answer, as local models write it if their server does not parse it.

| form | models |
| --- | --- |
| `<think>…</think>`, also `thinking`, `thought`, `reasoning`, `reflection`, `scratchpad`, `seed:think` | most |
| `…</think>` alone, where the prompt template opens the reasoning | DeepSeek, Qwen |
| a tag that is never closed, because the answer was cut off | all |
| `[THINK]`, `◁think▷`, `<|begin_of_thought|>`, `<|START_THINKING|>`, `<|channel>thought` | Magistral, Kimi, others |
| the channels of harmony, with or without their marks | gpt-oss |

A tag in code, in quotation marks or within a sentence is not reasoning, but text about it. The time is linear.
"""

from __future__ import annotations

import re
from typing import Final

_NAMES: Final = r"(?:\w{1,20}:)?(?:ant)?(?:think|thinking|thoughts?|reasoning|reflection|scratchpad|inner_monologue)"
# Opening and closing tags of each family; a thought is closed by the family that opened it.
_FAMILIES: Final = (
    (rf"<\s?{_NAMES}(?:\s[^<>\n]{{0,100}})?>", rf"<\s?/\s?{_NAMES}\s?>"),
    (r"\[THINK\]", r"\[/THINK\]"),
    ("◁think▷", "◁/think▷"),
    (r"<\|begin_of_thought\|>", r"<\|end_of_thought\|>"),
    (r"<\|start_thinking\|>", r"<\|end_thinking\|>"),
    (r"<\|channel>thought", r"<channel\|>"),
)
_OPENS: Final = [re.compile(opens, re.IGNORECASE) for opens, _ in _FAMILIES]
_CLOSES: Final = [re.compile(closes, re.IGNORECASE) for _, closes in _FAMILIES]
_TOKEN: Final = re.compile(
    r"(?P<code>```(?s:.*?)(?:```|\Z)|`[^`\n]*`)|"
    + "|".join(f"(?P<o{place}>{opens})|(?P<c{place}>{closes})" for place, (opens, closes) in enumerate(_FAMILIES)),
    re.IGNORECASE,
)
_HINT: Final = re.compile("|".join(each for pair in _FAMILIES for each in pair) + r"|<\|channel\|>", re.IGNORECASE)
_AROUND: Final = re.compile(r"<\|(?:begin|end)_of_solution\|>|<\|(?:start|end)_response\|>", re.IGNORECASE)
"""Tags that some models put around the answer itself."""

_CHANNEL: Final = re.compile(
    r"<\|channel\|>\s{0,9}(\w{1,20})((?:[^<\n]{0,200}(?:<\|constrain\|>[^<\n]{0,50})?<\|message\|>)?)"
)
_CHANNEL_END: Final = re.compile(r"<\|(?:end|return|call|start|channel)\|>")
_BARE: Final = re.compile(r"\s*(?:assistant)?analysis(?![a-z])")
_BARE_FINAL: Final = "assistantfinal"
_TAG_MARKS: Final = ("<", "[T", "[/T", "[t", "[/t", "◁")
MARKS: Final = (*_TAG_MARKS, _BARE_FINAL)
"""A text without any of these contains no reasoning."""

_QUOTES: Final = frozenset("\"'“”‘’«»„‚`()[]")
_ENDS: Final = frozenset(".!?…:。！？")
_GOES_ON: Final = frozenset(".,;:!?)…")


def has_reasoning_tags(text: str) -> bool:
    """Return whether a text may contain reasoning; a fast check, since most texts do not."""
    if any(mark in text for mark in _TAG_MARKS):
        return _HINT.search(text) is not None
    return _BARE_FINAL in text and _BARE.match(text) is not None


def split(text: str) -> tuple[str, str]:
    """Split a text into the answer and the reasoning.

    Args:
        text: A model's output.

    Returns:
        The answer and the reasoning; the text itself and an empty string if it contains no reasoning.
    """
    if not has_reasoning_tags(text):
        return text, ""
    said, thoughts = _channels(text)
    said, tagged = _tagged(said)
    thoughts += tagged
    return (_AROUND.sub("", said).strip(), "\n".join(thoughts)) if thoughts else (text, "")


def answer_text(text: str) -> str:
    """Return a text without its reasoning."""
    return split(text)[0]


def _channels(text: str) -> tuple[str, list[str]]:
    """Remove the channels of harmony that are not for the user."""
    first = next((each for each in _CHANNEL.finditer(text) if not _is_quoted(text, each.start(), each.end(1))), None)
    if first is None:
        if _BARE.match(text) and _BARE_FINAL in text:
            thought, _, rest = text.rpartition(_BARE_FINAL)
            return rest, [thought]
        return text, []
    before, mark, _ = text[: first.start()].partition("<|end|>")
    before = before.partition("<|start|>")[0]
    kept, thoughts = ([], [before]) if mark else ([before], [])
    header: re.Match[str] | None = first
    while header is not None:
        end = _CHANNEL_END.search(text, header.end())
        body = text[header.end() : len(text) if end is None else end.start()]
        is_shown = header[1] == "final" or (header[1] == "commentary" and "to=" not in header[2])
        (kept if is_shown else thoughts).append(body)
        header = None if end is None else _CHANNEL.search(text, end.start())
    return "\n".join(filter(str.strip, kept)), thoughts


def _tagged(text: str) -> tuple[str, list[str]]:
    """Remove the text between tags, or before a tag that closes what the prompt template opened."""
    kept: list[str] = []
    thoughts: list[str] = []
    unclosed: set[int] = set()  # families without a further closing tag, so that the search is not repeated
    start = at = 0  # where the retained text resumes, and where the search resumes
    has_closed = False
    length = len(text.rstrip())
    while (token := _TOKEN.search(text, at)) is not None:
        at = token.end()
        kind = token.lastgroup or ""
        if kind == "code" or _is_mention(text, token.start(), at):
            continue
        family = int(kind[1:])
        if kind[0] == "c":
            if has_closed and at >= length and "".join([*kept, text[start : token.start()]]).strip():
                kept.append(text[start : token.start()])  # closed twice
            else:
                thoughts += [*kept, text[start : token.start()]]
                kept = []
            start, has_closed = at, True
            continue
        closes = None if family in unclosed else _closing(text, at, family)
        if closes is not None:
            kept.append(text[start : token.start()])
            thoughts.append(text[at : closes.start()])
            start = at = closes.end()
            has_closed = True
            continue
        unclosed.add(family)
        if _begins(text, token.start()):
            kept.append(text[start : token.start()])
            thoughts.append(text[at:])
            start = at = len(text)
    return "".join([*kept, text[start:]]), [each for each in thoughts if each.strip()] or ([""] if start else [])


def _closing(text: str, index: int, family: int) -> re.Match[str] | None:
    """Return the tag that closes a thought: the first that the thought does not merely mention, else the last one."""
    found = None
    for found in _CLOSES[family].finditer(text, index):
        if not _is_mention(text, found.start(), found.end()):
            return found
    return found


def _is_quoted(text: str, start: int, end: int) -> bool:
    """Return whether a span is between quotation marks or brackets."""
    return start > 0 and text[start - 1] in _QUOTES and text[end : end + 1] in _QUOTES


def _is_mention(text: str, start: int, end: int) -> bool:
    """Return whether a tag is in quotation marks, or within a sentence that continues after it."""
    if _is_quoted(text, start, end):
        return True
    if start < 2 or text[start - 1] not in " \t" or not text[start - 2].isalnum():
        return False
    after = text[end : end + 2]
    return after[:1] in _GOES_ON if after[:1] != " " else after[1:] in _GOES_ON or after[1:].islower()


def _begins(text: str, start: int) -> bool:
    """Return whether a thought may begin here: on its own line, or after a sentence."""
    before = text[max(start - 50, 0) : start].rstrip(" \t")
    return not before or before[-1] == "\n" or before[-1] in _ENDS or before[-1] == ">"
