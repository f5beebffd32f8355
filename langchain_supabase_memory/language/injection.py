"""Recognize texts that would turn an assistant against its user once they are remembered.

The rule is small and only reads words: a text is refused that tells the assistant to set rules aside, to give a secret
away, or to use an address. It is one rule for all that is remembered of a user without their own hand: what rules or a
model find in conversations, and what an assistant wants to remember. English and Tagalog, the most common words of
Spanish, French and German; more is left to the person who is asked.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final

from langchain_supabase_memory.language.messages.invisible import visible
from langchain_supabase_memory.language.messages.redaction.confusables import ALIKE

_MAX: Final = 4_000
"""The most characters that are read; texts of a profile are shorter."""

_SETS_ASIDE: Final = re.compile(
    r"\b(?:ignor(?:e|es|a|ez|iere)|disregard|bypass|override|circumvent|disobey|violate|olvida|contourne|missachte|umgehe|"
    r"forget (?=all|any|your|the|every|previous)|"
    r"(?:do not|don t|never|stop|quit) (?:follow|follows|following|obey|obeying)|"
    r"(?:huwag|wag|never)(?: (?:mo|mong|na|nang|ka|kang|ng|po|kayo|kayong)){0,4} (?:sundin|sumunod)|"
    r"balewalain|suwayin|kalimutan)\b.{0,40}?"
    r"\b(?:instructions?|rules?|guidelines?|guardrails?|restrictions?|safety|policy|policies|prompts?|filters?|"
    r"patakaran|patakarang|tuntunin|panuntunan|utos|bilin|reglas|instrucciones|normas|règles|consignes|regeln|"
    r"anweisungen|vorgaben|richtlinien)\b"
)
_MODES: Final = re.compile(
    r"\b(?:developer|debug|god|dan|jailbreak|unrestricted|uncensored) mode\b|\bdo anything now\b|"
    r"\b(?:transfer|wire) (?:\w+ ){0,3}(?:money|funds|payments?)\b|\bjailbreak\b|\bexfiltrate\b"
)
_SECRET: Final = (
    r"(?:passwords?|passphrases?|passcodes?|credentials?|secrets?|card numbers?|credit cards?|cvv|private data|"
    r"system prompts?|hidden prompts?|hidden instructions|your (?:\w+ )?(?:prompts?|instructions|guidelines|rules)|"
    r"lihim|sikreto|(?:mga )?susi|contraseñas?|(?<!puntos )(?<!palabras )(?<!ideas )claves?|secretos?|mots? de passe|"
    r"(?<!points )(?<!mots )(?<!idées )clés?|passwort|passwörter|schlüssel|geheimnis|geheimnisse|"
    r"(?:api|secret|private|access|encryption|signing|ssh|service|role|license) keys?|"
    r"(?:access|api|auth|bearer|session|secret|refresh) tokens?|"
    r"(?:the|your|its|our|every|any|all|all the|that|ang) keys?\b(?! (?:of|to|points?|ideas?|takeaways?|facts?|"
    r"results?|terms?|words?|insights?|steps?|changes?|findings|figures|numbers?|messages?|details|parts?|questions?|dates?)\b))"
)
_GIVES: Final = (
    r"(?:answer|reply|respond|reveal|show|tell|say|print|output|send|give|share|leak|disclose|repeat|append|add|"
    r"include|write|post|forward|e ?mail|quote|expose|upload|start|begin|end|read|provide|paste|put|insert|mention|"
    r"encode|spell|sabihin|ibigay|ipakita|isama|ipadala|ipasa|i ?send|i ?forward|ibunyag|isiwalat|sagutin|sumagot|"
    r"isulat|ilagay|ilabas|responde|contesta|revela|muestra|dime|dame|incluye|envía|réponds|révèle|montre|donne|"
    r"ajoute|envoie|antworte|verrate|zeige?|gib|nenne|sende|schicke?)"
)
_GIVES_AWAY: Final = re.compile(rf"\b{_GIVES}\b.{{0,60}}?\b{_SECRET}\b")
_NEVER: Final = re.compile(r"\b(?:never|not|don t|avoid|without|huwag)(?: \w+){0,3} $")
_UNLESS: Final = re.compile(r"\b(?:refuse|hesitate|forget|fail|omit|stop)\b")
_ADDRESS: Final = re.compile(
    r"\b(?:send|forward|upload|submit|append|include|add|load|fetch|open|bcc|cc|use|visit|check|consult|cite|link|ask|"
    r"read|follow|click|browse|go to|get|download|post|report|share|copy|e-?mail (?!(?:address )?is)|ipadala|ipasa|"
    r"i-?send|i-?forward|gamitin|buksan|envía|envoie|sende|schicke?)\b"
    r".{0,60}?(?:https?://|\bwww\.|\S@\S)",
    re.IGNORECASE,
)
_BETWEEN: Final = re.compile(r"[^\w]+|_+")
_SENTENCE: Final = re.compile(r"[.!?;\n]+")


def is_injection(text: str) -> bool:
    """Return whether a text tells an assistant to set rules aside, give a secret away, or send things to an address.

    Args:
        text: The text. Letters that look like others, and what cannot be seen, do not hide anything.
    """
    seen = unicodedata.normalize("NFKC", visible(text[:_MAX])).translate(ALIKE)
    if _ADDRESS.search(" ".join(seen.split())):
        return True
    return any(
        _is_hostile(f" {_BETWEEN.sub(' ', sentence).strip().casefold()} ")
        for sentence in (*_SENTENCE.split(seen), seen)
    )


def _is_hostile(words: str) -> bool:
    if _SETS_ASIDE.search(words) or _MODES.search(words):
        return not _is_forbidden(words, _SETS_ASIDE)
    return _GIVES_AWAY.search(words) is not None and not _is_forbidden(words, _GIVES_AWAY)


def _is_forbidden(words: str, pattern: re.Pattern[str]) -> bool:
    """Return whether each place of the pattern is what the assistant is told not to do."""
    found = list(pattern.finditer(words))
    return bool(found) and all(_is_negated(words[: each.start()]) for each in found)


def _is_negated(before: str) -> bool:
    negated = _NEVER.search(before)
    return negated is not None and not _UNLESS.search(negated.group())
