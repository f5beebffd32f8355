"""`SECRETS`: what opens something. Keys by the forms that their issuers gave them, passwords by what stands before."""

from __future__ import annotations

import re
from bisect import bisect_right
from typing import TYPE_CHECKING, Final

from langchain_supabase_memory.messages.redaction.rules import PatternRule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from langchain_supabase_memory.messages.redaction.rules import RedactionRule, Span

# Every run is possessive (`+` after the count), so that the engine never goes back over it.
_API_KEY: Final = re.compile(
    r"""(?<![A-Za-z0-9])(?:
      sk-[A-Za-z0-9_-]{16,}+                                      # OpenAI, Anthropic, OpenRouter, DeepSeek, Langfuse
    | (?:sk|rk)_(?:live|test)_[A-Za-z0-9]{10,}+ | whsec_[A-Za-z0-9+/=]{16,}+                                  # Stripe
    | gh[pousr]_[A-Za-z0-9]{20,}+ | github_pat_[A-Za-z0-9_]{20,}+
    | gl(?:pat|dt|rt|cbt|ptt|ft|soat|agent|imt)-[A-Za-z0-9_.=-]{16,}+
    | (?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}(?![A-Za-z0-9])
    | xox[a-z](?:\.xox[a-z])?-[A-Za-z0-9-]{10,}+ | xapp-[A-Za-z0-9-]{16,}+
    | sb_secret_[A-Za-z0-9_-]{10,}+ | sbp_(?:v0_|oauth_)?[a-f0-9]{32,}+                                     # Supabase
    | AIza[A-Za-z0-9_-]{30,}+ | ya29\.[A-Za-z0-9_-]{20,}+ | GOCSPX-[A-Za-z0-9_-]{20,}+                        # Google
    | hf_[A-Za-z0-9]{30,}+ | npm_[A-Za-z0-9]{30,}+ | pypi-[A-Za-z0-9_-]{50,}+ | dop_v1_[a-f0-9]{40,}+
    | SG\.[A-Za-z0-9_-]{16,64}+\.[A-Za-z0-9_-]{16,}+                                                        # SendGrid
    | gsk_[A-Za-z0-9]{30,}+ | xai-[A-Za-z0-9]{30,}+ | r8_[A-Za-z0-9]{30,}+ | nvapi-[A-Za-z0-9_-]{30,}+
    | pplx-[A-Za-z0-9]{30,}+ | lsv2_[a-z]{2}_[A-Za-z0-9_]{30,}+ | tvly-[A-Za-z0-9-]{20,}+ | pcsk_[A-Za-z0-9_]{30,}+
    )""",
    re.VERBOSE,
)
_WEBHOOKS: Final = [
    re.compile(r"hooks\.slack\.com/(?P<value>(?:services|workflows|triggers)/[A-Za-z0-9/_-]{20,}+)"),
    re.compile(r"discord(?:app)?\.com/api/webhooks/(?P<value>\d{10,20}/[A-Za-z0-9_-]{30,}+)"),
]
_JWT: Final = re.compile(r"(?<![\w-])eyJ[\w-]{8,4096}+\.[\w-]{8,16384}+\.[\w-]*+")
_AUTHORIZATION: Final = [
    re.compile(r"(?i)\b(?:bearer|basic)[ \t]{1,4}(?P<value>[A-Za-z0-9._~+/-]{12,}+={0,2})"),
    re.compile(
        r"""(?i)authorization\\?["']?[ \t]{0,4}[:=][ \t]{0,4}\\?["']?(?:[a-z]{1,20} )?(?P<value>[^\s"'\\]{8,}+)"""
    ),
]
_URL_PASSWORD: Final = re.compile(
    r"://[^\s:/@?\#\"'<>]{0,128}+:(?!\d{1,5}[/?\#])"
    r"(?P<value>[^\s\"'<>/?\#]{1,256}(?=@)|[^\s\"'<>@]{1,256}+(?=@))"
)
_PEM: Final = re.compile(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_PEM_END: Final = re.compile(r"-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_PEM_BODY: Final = re.compile(r"(?:(?:\s|\\[rn])*+[A-Za-z0-9+/=]{32,}+)++(?:(?:\s|\\[rn])*+[A-Za-z0-9+/]{1,31}={0,2})?")
_LONGEST_PEM: Final = 40_000

# What a secret is called; the last words alone are also those of prose and of ordinary data.
_STRONG: Final = (
    r"passw(?:or[dt]|d)|pwd|pass[_ -]?(?:phrase|code|wd)|(?:client|app|shared|signing|jwt|webhook)[_ -]?secret"
    r"|(?:api|access|secret|private|service[_ -]?role|encryption|signing|auth|account|master)[_ -]?key"
    r"|secret[_ -]?access[_ -]?key"
    r"|(?:access|refresh|session|bearer|(?<![a-z])(?:auth|id|api|bot))[_ -]?token"
)
_WEAK: Final = r"secrets?|(?<!page)(?<!page[_-])(?<!per[_-])token|credentials?|senha|contrase(?:ñ|n)a"
_KEYS: Final = re.compile(
    rf"(?i)(?:[\w.-]{{0,60}}[_.-]|[a-z]{{0,20}})?(?:{_STRONG})|(?:[\w-]{{1,60}}[_-])?(?:secrets?|(?<!page_)token)"
    r"|credentials?|authorization|(?:set-)?cookie|pin|cvv|cvc|otp|x-api-key|(?:[a-z]{0,20}pw)"
)
_QUOTED: Final = (
    r""""(?P<double>(?:[^"\\\n]|\\.){1,4096}+)"|'(?P<single>(?:[^'\\\n]|\\.){1,4096}+)'|`(?P<tick>[^`\n]{1,4096}+)`"""
)
_ASSIGNED: Final = re.compile(
    rf"""(?i)(?=[pcasjwebimrt])(?P<key>{_STRONG}|{_WEAK})\\?["'`]?\]?[ \t]{{0,4}}"""
    r"""(?P<sign>:=|=>|[:=]{1,2}|(?<=[ \t])(?:is|ist|es|ay)(?=[ :])[ \t]?:?)[ \t]{0,4}\\?"""
    rf"""(?:{_QUOTED}|["'`]?(?P<bare>(?![\[{{(])[^\s"'`\\]++))"""
)
# What stands there where no secret does.
_NOTHING: Final = re.compile(
    r"(?i:none|null|nil|true|false|undefined|required|optional|string|str|text|hidden|empty|unset|incorrect|invalid|"
    r"(?:os\.environ|os\.getenv|process\.env|env|import\.meta\.env|deno\.env|settings|config|self)[.\[(].*)|"
    r"[*xX.•…_-]+|\$\{\w+\}?|\$[A-Z_][A-Z0-9_]*|\{\{?\s*[\w.]+\s*\}{0,2}|<[\w -]*>?|%[A-Z_]+%|"
    r"[A-Za-z_][\w.]*\((?:[^)]*\))?|[\[{(]+|(?i:your|my)[-_ ][A-Za-z_ -]{1,60}|[A-Z]{2,}(?:_[A-Z]+)+|"
    r"(?=[a-z_.]*(?:token|key|secret|passw|credential))[a-z]*(?:[._][a-z]+)+"
)
_TRAILING: Final = ".,;:!?)]}>"
_DELIMITER: Final = re.compile("[&;]")
_DIGIT_OR_UPPER: Final = re.compile(r"[0-9A-Z]")
_UNLIKE_WORDS: Final = re.compile(r"[^\w\s'’-]|\d")
_WEAK_KEY: Final = re.compile(_WEAK, re.IGNORECASE)


class _PrivateKeys:
    """PEM blocks; one that has no end, because it was cut, goes as far as its lines do."""

    name = "private key"

    def spans(self, text: str) -> Iterator[Span]:
        ends = [match.end() for match in _PEM_END.finditer(text)]
        place = 0
        while (begun := _PEM.search(text, place)) is not None:
            ended = next(iter(ends[bisect_right(ends, begun.end()) :][:1]), None)
            body = _PEM_BODY.match(text, begun.end())
            place = begun.end() if body is None else body.end()
            if ended is not None and ended - begun.end() <= _LONGEST_PEM:
                place = ended
            if place > begun.end():
                yield begun.start(), place

    def __repr__(self) -> str:
        return f"<redaction rule {self.name!r}>"


class _Assignments:
    """What is assigned to a name such as `password`, `api_key` or `token`, in prose, code, JSON and mappings."""

    name = "secret"

    def spans(self, text: str) -> Iterator[Span]:
        for match in _ASSIGNED.finditer(text):
            group = str(match.lastgroup)
            start, end = match.span(group)
            if group == "bare":
                # In a query string or a connection string another one follows.
                delimiter = _DELIMITER.search(match[group]) if match["sign"] == "=" else None
                end = end if delimiter is None else start + delimiter.start()
                while end > start + 1 and text[end - 1] in _TRAILING:
                    end -= 1
            if start < end and self._is_meant(match, text[start:end]):
                yield start, end

    def covers(self, key: str) -> bool:
        """Whether a key of a mapping is the name of a secret."""
        return _KEYS.fullmatch(key) is not None

    def _is_meant(self, match: re.Match[str], value: str) -> bool:
        if _NOTHING.fullmatch(value):
            return False
        if match["sign"][0] not in ":=":
            # "The password is wrong" tells none: in a sentence it takes a digit or a sign.
            return len(value) > 3 and _UNLIKE_WORDS.search(value) is not None
        is_word = match.lastgroup == "bare" and value.isalpha() and match["sign"] + value not in match[0]
        return not (is_word and _WEAK_KEY.fullmatch(match["key"]))

    def __repr__(self) -> str:
        return f"<redaction rule {self.name!r}>"


SECRETS: Final[tuple[RedactionRule, ...]] = (
    PatternRule("api key", [_API_KEY], lambda match: _DIGIT_OR_UPPER.search(match[0][4:]) is not None),
    PatternRule("webhook", _WEBHOOKS),
    _PrivateKeys(),
    PatternRule("jwt", [_JWT]),
    PatternRule("credentials", _AUTHORIZATION, lambda match: _DIGIT_OR_UPPER.search(match["value"]) is not None),
    PatternRule("password", [_URL_PASSWORD]),
    _Assignments(),
)
"""Rules for what opens something: API keys (OpenAI, Anthropic, GitHub, GitLab, AWS, Google, Slack, Stripe, Supabase,
Hugging Face and more), webhook addresses, private keys, JWTs, authorization headers, passwords in connection strings,
and what is assigned to `password`, `api_key`, `token` and the like, in a text or under such a key of a mapping."""
