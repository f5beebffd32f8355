"""Validate numbers with check digits: payment cards (Luhn) and IBANs (modulo 97)."""

from __future__ import annotations

import re
from typing import Final

# SWIFT's IBAN registry: the length of an IBAN, by country.
IBAN_LENGTHS: Final = {
    country: int(length)
    for length, countries in {
        "15": "NO",
        "16": "BE",
        "18": "DK FO FI GL NL SD FK",
        "19": "MK SI",
        "20": "AT BA EE KZ LT LU XK MN",
        "21": "HR LV LI CH",
        "22": "BG BH CR DE GE IE ME RS GB VA",
        "23": "AE GI IL IQ OM SO TL",
        "24": "AD CZ MD PK RO SA SK ES SE TN VG",
        "25": "LY PT ST",
        "26": "IS TR",
        "27": "BI DJ FR GR IT MC MR SM",
        "28": "AL AZ BY CY DO SV GT HU LB NI PL",
        "29": "BR EG PS QA UA",
        "30": "JO KW MU YE",
        "31": "MT SC",
        "32": "LC",
        "33": "RU",
    }.items()
    for country in countries.split()
}
_ISSUED: Final = re.compile(
    r"2(?:014|131|149|20[0-5]|2[2-9]|[3-6]|7[01]|720)|3(?:0[0-59]|088|1[15]|33|4|5[2-8]|[6-9])|[456]"
)
"""The prefixes of issued card numbers."""

_DOUBLED: Final = str.maketrans("0123456789", "0246813579")


def is_card(digits: str) -> bool:
    """Return whether 13 to 19 digits can be a payment card number: its issuer exists, and its check digit is valid."""
    if not 13 <= len(digits) <= 19 or not _ISSUED.match(digits) or len(set(digits)) == 1:
        return False
    total = sum(map(int, digits[-1::-2])) + sum(map(int, digits[-2::-2].translate(_DOUBLED)))
    return total % 10 == 0


def is_iban(text: str) -> bool:
    """Return whether a text without spaces is an IBAN: its length fits its country, and its check digits are valid."""
    iban = text.upper()
    if IBAN_LENGTHS.get(iban[:2]) != len(iban) or not (iban.isascii() and iban.isalnum()):
        return False
    return int("".join(str(int(each, 36)) for each in iban[4:] + iban[:4])) % 97 == 1
