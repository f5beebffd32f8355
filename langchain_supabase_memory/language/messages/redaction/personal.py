"""`PERSONAL_DATA`: rules for data that identifies a person. Numbers with check digits are validated."""

from __future__ import annotations

import ipaddress
import re
from typing import TYPE_CHECKING, ClassVar, Final

from langchain_supabase_memory.language.messages.redaction.checksums import IBAN_LENGTHS, is_card, is_iban
from langchain_supabase_memory.language.messages.redaction.rules import NamedRule, PatternRule
from langchain_supabase_memory.language.messages.redaction.urls import url_passwords

if TYPE_CHECKING:
    from collections.abc import Iterator

    from langchain_supabase_memory.language.messages.redaction.rules import RedactionRule, Span

_EMAIL: Final = re.compile(
    r"(?<![\w.%+-])[\w.%+-]{1,256}+@(?:[\w-]{1,63}+\.(?=[\w-])){1,8}"
    r"(?!(?:png|jpe?g|gif|svg|webp|avif|ico|css|m?js|tsx?|json|html?)\b)[^\W\d_]{2,24}(?![\w-])"
)

_INTERNATIONAL: Final = re.compile(r"(?<![\w+])(?:\+|00(?=[1-9]\d{0,2}[ .-]))[ ]?\(?\d(?:[ ().\-/]{0,3}\d){7,14}(?!\d)")
_NATIONAL: Final = re.compile(
    r"""(?<![\w#+.,/$€£₱-])(?<!\#\ )(?:
      (?:1[ .-])?(?:\([2-9]\d\d\)[ ]?|[2-9]\d\d(?P<us>[ .-]))[2-9]\d\d(?(us)(?P=us)|[ .-])\d{4}          # North America
    | 09\d\d(?P<ph>[ -]?)\d{3}(?P=ph)\d{4} | \(0\d{1,2}\)[ ]?\d{3,4}[ -]?\d{4}                         # the Philippines
    | 0[1-9](?P<fr>[ .-])\d\d(?:(?P=fr)\d\d){3}                                                                # France
    | 07\d{3}[ ]?\d{3}[ ]?\d{3} | 0[12]\d{1,4}[ ]\d{3,4}[ ]\d{3,4}                                             # Britain
    | \(?0[1-9]\d{1,4}\)?[ ]?[/ -][ ]?\d{3,4}(?:[ -]?\d{2,5}){1,2}                                             # Germany
    | 0[2-478][ ]\d{4}[ ]\d{4} | 04\d\d[ ]\d{3}[ ]\d{3}                                                      # Australia
    | [6-9]\d{4}[ -]\d{5}                                                                                        # India
    )(?![\w-]|[.,/:]\d|[ ]?%)""",
    re.VERBOSE,
)
_NAMED: Final = re.compile(
    r"(?i)\b(?:tele)?(?:phone|mobile|cell|whatsapp|viber|tel)(?:[ ]?(?:number|no\.?|nr\.?))?[ ]?(?:is|[:#=.])?[ ]?"
    r"(?P<value>\+?\(?\d(?:[ ()./-]{0,2}\d){6,14})(?!\w)"
)
_PHONE_KEYS: Final = re.compile(
    r"(?i)(?:[a-z]{1,20}[_-]?)?(?:tele)?phone(?:[_-]?(?:number|no))?|(?:mobile|cell|whatsapp)[_-]?(?:number|no)|msisdn|tel"
)
_CARD: Final = re.compile(r"(?<![A-Za-z0-9])(?<!\d[.,-])[2-6](?=\d{3}(?:[ -]?\d){9})")
_CARD_FORMS: Final = (
    re.compile(r"\d{4}([ -])(?:\d{4}\1\d{4}\1\d{4}|\d{6}\1\d{4,5})(?![A-Za-z0-9])"),
    re.compile(r"\d(?:[ -]?\d){12,18}(?![A-Za-z0-9]|-\w|\.(?!0\b)\d)"),
)
_GROUPS: Final = re.compile(
    r"(?<![\w+])(?<!\d[^\w\n])(?<!\d[^\w\n] )[2-6]\d{0,5}(?P<sign>[ ]?[-./_|\u00b7\u2022,:][ ]?|[ \t]{1,3}|\r?\n)"
    r"\d{1,6}(?:(?P=sign)\d{1,6}){1,17}+(?!\w)(?!(?P=sign)\d)"
)
"""Digits in groups with one separator throughout, and no adjacent digits."""

_IBAN: Final = re.compile(r"(?i)(?<![a-z0-9])[a-z]{2}(?=\d{2}[ -]?[a-z0-9]{4})")
_NO_DIGIT: Final = re.compile(r"\D")
_NO_LETTER: Final = re.compile(r"[ -]")
_SSN: Final = re.compile(
    r"(?<![\w.-])(?!000|666|9)\d{3}(?P<sign>[ -])(?!00)\d\d(?P=sign)(?!0000)\d{4}(?![\w-])(?!\.\d)"
)
_IPV4: Final = re.compile(r"(?<![\w.-])(?:\d{1,3}\.){3}\d{1,3}(?![\w-]|\.\d)")
_IPV6: Final = re.compile(
    r"(?<![\w:.])(?=[0-9A-Fa-f]{0,4}:[0-9A-Fa-f]{0,4}:)[0-9A-Fa-f:]{3,39}(?:(?:\.\d{1,3}){3})?(?![\w:])"
)
_VERSION: Final = re.compile(
    r"(?i)(?:\b(?:v|ver\.?|version|release|build|firmware|driver)[\"']?(?:[ ]is)?|[=~<>!]=|\^|[a-z]/)[ :=\"']{0,4}\Z"
)
_SHORT: Final = re.compile(r"\d\.\d\.\d\.\d")
"""The form of version numbers; as an IP address it would be a name server at most."""

_ADDRESS: Final = re.compile(
    r"(?i)(?:\b(?:ip(?:v4)?|addr(?:ess)?|host|client|remote|peer|server|from|login)\b[\"']?(?:[ ]is)?[ :=(\"'\[]{0,4}"
    r"|//)\Z"
)


def _is_phone(match: re.Match[str]) -> bool:
    return 8 <= sum(map(str.isdigit, match[0])) <= 15


def _is_named_phone(match: re.Match[str]) -> bool:
    return 7 <= sum(map(str.isdigit, match["value"])) <= 15


def _is_ipv4(match: re.Match[str]) -> bool:
    before = match.string[max(0, match.start() - 20) : match.start()]
    if not _is_public(match[0]) or _VERSION.search(before):
        return False
    return not _SHORT.fullmatch(match[0]) or _ADDRESS.search(before) is not None


def _is_ipv6(match: re.Match[str]) -> bool:
    groups = [each for each in match[0].split(":") if each]
    is_slice = len(groups) < 3 and not any(len(each) > 2 for each in groups)
    return not is_slice and any(map(str.isdigit, match[0])) and _is_public(match[0])


def _is_public(text: str) -> bool:
    """Return whether an address can identify a person: not one of a private network, a test or a manual."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return False
    meant = getattr(address, "ipv4_mapped", None) or address
    return meant.is_global and not meant.is_multicast


class _Emails(NamedRule):
    """Find email addresses, but not the end of a password with the host that follows it."""

    name = "email"

    def spans(self, text: str) -> Iterator[Span]:
        found = [each.span() for each in _EMAIL.finditer(text)]
        if not found:
            return
        ends = {end for _, end in url_passwords(text)}
        for start, end in found:
            if text.index("@", start) not in ends:
                yield start, end


class _Cards(NamedRule):
    """Find payment cards, grouped or not, even next to other digits."""

    name = "card"

    def spans(self, text: str) -> Iterator[Span]:
        for start in _CARD.finditer(text):
            for form in _CARD_FORMS:
                found = form.match(text, start.start())
                if found is not None and is_card(_NO_DIGIT.sub("", found[0])):
                    yield found.span()
                    break
        for run in _GROUPS.finditer(text):
            if _is_regular(run[0].split(run["sign"]), run["sign"].strip()) and is_card(_NO_DIGIT.sub("", run[0])):
                yield run.span()


def _is_regular(groups: list[str], sign: str) -> bool:
    """Return whether groups have one length, but for a shorter last one; amounts, times and lists are excluded."""
    length = len(groups[0])
    if any(len(each) != length for each in groups[1:-1]) or len(groups[-1]) > length:
        return False
    if length == 3 and len(groups[-1]) == 3 and sign in ("", ".", ","):
        return False  # 411.111.111.111.111 is an amount
    return length == 4 or sign not in (",", ":")  # a list, a time


class _Ibans(NamedRule):
    """Find IBANs, grouped or not, with the length of their country's."""

    name = "iban"
    _forms: ClassVar = {
        length: re.compile(rf"[A-Za-z0-9](?:[ -]?[A-Za-z0-9]){{{length - 1}}}(?![A-Za-z0-9])")
        for length in set(IBAN_LENGTHS.values())
    }

    def spans(self, text: str) -> Iterator[Span]:
        for start in _IBAN.finditer(text):
            length = IBAN_LENGTHS.get(start[0].upper())
            found = None if length is None else self._forms[length].match(text, start.start())
            if found is not None and is_iban(_NO_LETTER.sub("", found[0])):
                yield found.span()


class _Phones(NamedRule):
    """Find phone numbers: international, in the formats of some countries, or after a word that announces one."""

    name = "phone"
    _rules = (
        PatternRule(name, [_INTERNATIONAL, _NATIONAL], _is_phone),
        PatternRule(name, [_NAMED], _is_named_phone),
    )

    def spans(self, text: str) -> Iterator[Span]:
        for rule in self._rules:
            yield from rule.spans(text)

    def covers(self, key: str) -> bool:
        """Return whether a mapping key is the name of a phone number."""
        return _PHONE_KEYS.fullmatch(key) is not None


PERSONAL_DATA: Final[tuple[RedactionRule, ...]] = (
    _Emails(),
    _Phones(),
    _Cards(),
    _Ibans(),
    PatternRule("ssn", [_SSN]),
    PatternRule("ip address", [_IPV4], _is_ipv4),
    PatternRule("ip address", [_IPV6], _is_ipv6),
)
"""Rules for data that identifies a person: email addresses, phone numbers, payment cards (by their check digit), IBANs
(by theirs), US social security numbers, public IP addresses (private, test and manual addresses identify nobody). Names
and street addresses require a model; add your own rule for them."""
