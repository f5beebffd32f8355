"""Find credentials in request headers: `Authorization` in every scheme, `Cookie` and `Set-Cookie`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from langchain_supabase_memory.language.messages.redaction.rules import NamedRule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from langchain_supabase_memory.language.messages.redaction.rules import Span

_STARTS: Final = r"""(?P<closed>\\?["']|)[ \t]{0,4}(?:[:=]|=>|,(?=[ \t]{0,4}\\?["']))[ \t]{0,4}(?P<quote>\\?["']|)"""
_BARE: Final = re.compile(r"(?i)\b(?:bearer|basic)[ \t]{1,4}(?P<value>[A-Za-z0-9._~+/-]{12,}+={0,2})")
_AUTHORIZATION: Final = re.compile(rf"""(?i)(?P<around>\\?["']|)(?:proxy-)?authori[sz]ation{_STARTS}""")
_PARAMETERS: Final = re.compile(
    r"(?i)(?:digest|oauth|hawk|aws4-[a-z0-9-]{1,40}|signature|vapid|mac|scram-[a-z0-9-]{1,20}|mutual|hoba|edgegrid"
    r"|eg1-[a-z0-9-]{1,20}|token|apikey|gnap|httpsig)[ \t]{1,4}(?P<value>[\w-]{1,60}[ \t]?=[^\r\n]{1,8192})"
)
_TOKEN: Final = re.compile(
    r"""(?i)(?P<scheme>(?:[a-z][a-z0-9_-]{0,30}[ \t:]{1,4})?)(?P<value>[^\s"'\\,;]{4,}+)(?P<more>[ \t]+[a-z])?"""
)
_SCHEMES: Final = re.compile(
    r"(?i)(?:basic|bearer|token|negotiate|ntlm|kerberos|api-?key|key|dpop|bot|ssws|splunk|geniekey|client-id|gnap|oauth"
    r"|zoho-oauthtoken|privatetoken)"
)
_COOKIES: Final = re.compile(rf"(?i)(?<![a-z0-9_])(?P<set>set-)?cookies?{_STARTS}")
_COOKIE: Final = re.compile(
    r"""[ \t]{0,4}(?P<name>[\w!#$%&*+.^|~-]{1,256}+)=(?P<value>\\?"[^"\\\r\n]{1,4096}+|[^;\s"'\\]{1,8192}+)\\?"?"""
)
_ATTRIBUTES: Final = re.compile("(?i)path|domain|expires|max-age|samesite|priority|version|comment")
_NEXT: Final = re.compile(r";(?:[ \t]*[\w-]{1,20}[ \t]*;)?")
"""The separator between two cookies, possibly with a flag."""

_TELLING: Final = re.compile(r"[0-9]|(?<=.)[A-Z]")
_PLACEHOLDER: Final = re.compile(
    r"[*xX.•…_-]+|\$\{?\w+\}?|\{\{?\s*[\w.]+\s*\}{0,2}|<[\w -]*>?|%[A-Z_]+%|[A-Z]{2,}(?:_[A-Z]+)*"
    r"|(?i:your|my)[-_][A-Za-z_-]{1,60}"
)
_SURE: Final = 8
_LONG: Final = 16


class Authorizations(NamedRule):
    """Find credentials in `Authorization` and `Proxy-Authorization` headers, or after `Bearer` and `Basic` anywhere."""

    name = "credentials"

    def spans(self, text: str) -> Iterator[Span]:
        """Yield the spans of the credentials."""
        for match in _BARE.finditer(text):
            if _TELLING.search(match["value"]):
                yield match.span("value")
        for header in _AUTHORIZATION.finditer(text):
            found = _PARAMETERS.match(text, header.end())
            if found is not None:
                quote = header["quote"] or ("" if header["closed"] else header["around"])
                yield found.start("value"), _end(quote, found)
                continue
            token = _TOKEN.match(text, header.end())
            if token is not None and _is_token(token):
                yield token.span("value")


def _end(quote: str, parameters: re.Match[str]) -> int:
    """Return where parameters end: at the closing quote of the header, or at the end of the line."""
    closing = (
        re.compile(rf"(?<!\\){re.escape(quote)}").search(parameters.string, *parameters.span("value"))
        if quote
        else None
    )
    return parameters.end() if closing is None else closing.start()


def _is_token(token: re.Match[str]) -> bool:
    value, scheme = token["value"], token["scheme"].rstrip(" \t:")
    is_known = _SCHEMES.fullmatch(scheme) is not None
    if _PLACEHOLDER.fullmatch(value) or _SCHEMES.fullmatch(value) or (scheme and not is_known and token["more"]):
        return False
    telling = _TELLING.search(value) is not None
    if is_known:
        return telling or len(value) >= _LONG or (len(value) >= _SURE and not token["more"])
    return telling and len(value) >= _SURE


class Cookies(NamedRule):
    """Find the values of cookies, not their names, in `Cookie` and `Set-Cookie`."""

    name = "cookie"

    def spans(self, text: str) -> Iterator[Span]:
        """Yield the spans of the values."""
        place = 0
        while (header := _COOKIES.search(text, place)) is not None:
            place = header.end()
            while (pair := _COOKIE.match(text, place)) is not None:
                place = pair.end()
                value = pair["value"]
                if not _ATTRIBUTES.fullmatch(pair["name"]) and not _PLACEHOLDER.fullmatch(value.strip()):
                    start = pair.start("value") + len(value) - len(value.lstrip('\\"'))
                    yield start, pair.start("value") + len(value.rstrip())
                following = _NEXT.match(text, place)
                if following is None:
                    break
                place = following.end()
