"""`SECRETS`: rules for credentials. Keys are found by their issuers' formats, the rest by the text before them."""

from __future__ import annotations

import re
from bisect import bisect_right
from typing import TYPE_CHECKING, Final

from langchain_supabase_memory.language.messages.redaction.assignments import Assignments
from langchain_supabase_memory.language.messages.redaction.commands import Commands
from langchain_supabase_memory.language.messages.redaction.headers import Authorizations, Cookies
from langchain_supabase_memory.language.messages.redaction.rules import NamedRule, PatternRule
from langchain_supabase_memory.language.messages.redaction.urls import url_passwords

if TYPE_CHECKING:
    from collections.abc import Iterator

    from langchain_supabase_memory.language.messages.redaction.rules import RedactionRule, Span

# Every run is possessive (`+` after the count), so that the engine never backtracks over it.
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
_TELEGRAM: Final = re.compile(
    r"(?:(?<![A-Za-z0-9])|(?<=/bot)|(?<=\bbot))(?P<value>\d{8,10}:(?:AA[A-Za-z0-9_-]{32,38}+|[A-Za-z0-9_-]{35})(?![A-Za-z0-9_-]))"
)
_JWT: Final = re.compile(r"(?<![\w-])eyJ[\w-]{8,4096}+\.[\w-]{8,16384}+\.[\w-]*+")
_PEM: Final = re.compile(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_PEM_END: Final = re.compile(r"-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_PEM_BODY: Final = re.compile(r"(?:(?:\s|\\[rn])*+[A-Za-z0-9+/=]{32,}+)++(?:(?:\s|\\[rn])*+[A-Za-z0-9+/]{1,31}={0,2})?")
_LONGEST_PEM: Final = 40_000

_DIGIT_OR_UPPER: Final = re.compile(r"[0-9A-Z]")


class _PrivateKeys(NamedRule):
    """Find PEM blocks; one without an end, because it was cut, extends as far as its lines."""

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


class _UrlPasswords(NamedRule):
    """Find passwords in addresses such as `postgresql://user:password@host/database`; the rest stays readable."""

    name = "password"

    def spans(self, text: str) -> Iterator[Span]:
        return url_passwords(text)


def _has_digit_or_upper(match: re.Match[str]) -> bool:
    return _DIGIT_OR_UPPER.search(match[0][4:]) is not None


SECRETS: Final[tuple[RedactionRule, ...]] = (
    PatternRule("api key", [_API_KEY, _TELEGRAM], _has_digit_or_upper),
    PatternRule("webhook", _WEBHOOKS),
    _PrivateKeys(),
    PatternRule("jwt", [_JWT]),
    Authorizations(),
    Cookies(),
    _UrlPasswords(),
    Commands(),
    Assignments(),
)
"""Rules for credentials: API keys (OpenAI, Anthropic, GitHub, GitLab, AWS, Google, Slack, Stripe, Supabase, Telegram,
Hugging Face and more), webhook addresses, private keys, JWTs, `Authorization` and `Cookie` headers, passwords in
addresses and on command lines, values assigned to `password`, `api_key`, `token`, `PIN` and similar names in a text or
under such a mapping key, and text labeled as a password in some thirty languages ("das Passwort lautet …")."""
