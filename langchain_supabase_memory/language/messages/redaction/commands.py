"""Find passwords on command lines and in `.netrc` files."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from langchain_supabase_memory.language.messages.redaction.rules import NamedRule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from langchain_supabase_memory.language.messages.redaction.rules import Span

_LONGEST: Final = "{1,512}+"
_VALUE: Final = (
    rf"""(?:'(?P<single>[^'\n]{_LONGEST})'|\\?"(?P<double>(?:[^"\\\n]|\\[^"\n]){_LONGEST})\\?\""""
    rf"""|(?!--?[a-z])(?P<bare>[^\s"'`|;&\\]{_LONGEST}))"""
)
_AFTER_NAME: Final = (
    rf"""(?:'[^'\s:]{{0,128}}:(?P<single>[^'\n]{_LONGEST})'"""
    rf"""|\\?"[^"\s:\\]{{0,128}}:(?P<double>(?:[^"\\\n]|\\[^"\n]){_LONGEST})\\?\""""
    rf"""|(?:[^\s"':\\-][^\s"':\\]{{0,127}})?:(?P<bare>[^\s"'`|;\\]{_LONGEST}))"""
)
_COOKIE: Final = (
    r"""(?:'(?P<single>[^'\n=]{1,128}=[^'\n]{1,4096}+)'|\\?"(?P<double>[^"\\\n=]{1,128}=[^"\\\n]{1,4096}+)\\?")"""
)
_BETWEEN: Final = r"""["'],[ \t]{0,4}|\\\n[ \t]{0,80}"""
_APART: Final = rf"(?:{_BETWEEN}|[ \t]{{1,4}})"
_NEXT: Final = rf"(?:{_BETWEEN}|[ \t]{{1,4}}|=)"
_ANYHOW: Final = rf"(?:{_BETWEEN}|[ \t]{{0,4}})"
"""The separator between an option and its value: in a shell, or in a list of arguments."""


def _option(form: str, value: str) -> re.Pattern[str]:
    return re.compile(rf"(?<=[\s\"',])(?:{form}){value}")


_OPTIONS: Final = {
    r"(?:curl|wget|https?|xh)": [
        _option(rf"-[A-Za-z#]{{0,8}}?[uU]{_ANYHOW}|--(?:proxy-)?user{_NEXT}|-a{_APART}|--auth{_NEXT}", _AFTER_NAME),
        _option(rf"-[A-Za-z#]{{0,8}}?b{_ANYHOW}|--cookie{_NEXT}", _COOKIE),
    ],
    r"(?:mysql(?:dump|admin|import|check|show|pump|sh)?|mycli|mariadb(?:-dump|-admin|-import|-check|-show)?)": [
        _option(rf"-p|--password{_NEXT}", _VALUE)
    ],
    r"redis-cli": [_option(rf"-a{_APART}|--pass{_NEXT}", _VALUE)],
    r"sshpass": [_option(rf"-p{_ANYHOW}", _VALUE)],
    r"(?:mongo(?:sh|dump|restore|export|import)?|cqlsh|(?:docker|podman)[ ]login)": [
        _option(rf"-p{_APART}|--password{_NEXT}", _VALUE)
    ],
    r"ldap(?:search|modify|add|whoami)": [_option(rf"-w{_ANYHOW}", _VALUE)],
    r"(?:sqlcmd|bcp)": [_option(rf"-P{_ANYHOW}", _VALUE)],
    r"(?:plink|pscp|psftp)": [_option(rf"-pw{_APART}", _VALUE)],
}
_COMMAND: Final = re.compile(
    rf"""(?<![\w.-])(?:{"|".join(f"({each})" for each in _OPTIONS)})(?:\.exe)?(?=[ \t]|\\\n|["'],)"""
)
_FORMS: Final = list(_OPTIONS.values())
_LINE: Final = re.compile(r"(?s)(?:[^\n\\]|\\.)++")
"""A line, with its continuation after a trailing backslash."""

_LONG_OPTION: Final = re.compile(
    rf"""(?<=[\s"',])--[a-z-]{{0,24}}?(?:password|passwd|passphrase|pass|token|secret|api-key){_APART}["']?"""
    r"""(?P<value>(?!-)(?=[^\s"']{0,200}[\d@#$%^&*+=!])[^\s"'`/|;\\]{4,512}+)(?![/\\])"""
)
_LOGIN: Final = re.compile(
    r"(?<![\w.-])(?P<machine>(?:machine\s{1,8}\S{1,256}|default)\s{1,8})?login\s{1,8}\S{1,256}\s{1,8}"
    r"(?:account\s{1,8}\S{1,256}\s{1,8})?password\s{1,8}(?P<value>(?![=:,(]|''|\"\")\S{1,512})"
)
"""A line of `.netrc`."""

_LEFT: Final = re.compile(r"[*xX.•…_-]+|\$\{?\w+\}?|\$\([^)]*\)?|\{\{?\s*[\w.]+\s*\}{0,2}|<[\w -]*>?|%\w+%|\[.*")
_UNLIKE_A_WORD: Final = re.compile(r"[\d_@#$%^&*+=!]")


class Commands(NamedRule):
    """Find passwords for `curl`, `mysql`, `redis-cli`, `sshpass` and others, and those in `.netrc`."""

    name = "password"

    def spans(self, text: str) -> Iterator[Span]:
        """Yield the spans of the passwords."""
        for login in _LOGIN.finditer(text):
            told = login["machine"] or _UNLIKE_A_WORD.search(login["value"])
            if told and not _LEFT.fullmatch(login["value"]):
                yield login.span("value")
        for option in _LONG_OPTION.finditer(text):
            if not _LEFT.fullmatch(option["value"]):
                yield option.span("value")
        if _COMMAND.search(text) is None:
            return
        for line in _LINE.finditer(text):
            commands = list(_COMMAND.finditer(text, *line.span()))
            ends = [*(each.start() for each in commands[1:]), line.end()]
            for command, end in zip(commands, ends, strict=False):  # a line may have no command
                for form in _FORMS[(command.lastindex or 1) - 1]:
                    yield from _option_values(form, text, command.end(), end)


def _option_values(form: re.Pattern[str], text: str, start: int, end: int) -> Iterator[Span]:
    for option in form.finditer(text, start, end):
        group = str(option.lastgroup)
        if not _LEFT.fullmatch(option[group]):
            yield option.span(group)
