"""Characters of other scripts that look like Latin letters, such as a Cyrillic "a" in `password`.

These are Unicode's single-letter confusables in Cyrillic, Greek, Armenian, Cherokee and phonetic writing. Other forms
of a Latin letter, such as full-width ones, need no entry: normalization handles them.
"""

from __future__ import annotations

from typing import Final

_READ_AS: Final = {
    "a": "\u0430\u0251\u03b1",
    "b": "\u0185\u042c",
    "c": "\u0441\u03f2\u1d04",
    "d": "\u0501\u0257\u056a",
    "e": "\u0435\u04bd\u0454\u03b5",
    "g": "\u0261\u0581",
    "h": "\u04bb\u0570",
    "i": "\u0456\u0131\u0269\u03b9",
    "j": "\u0458\u03f3",
    "k": "\u043a\u03ba",
    "l": "\u04cf\u01c0",
    "m": "\u043c",
    "n": "\u043f\u0578\u03b7",
    "o": "\u043e\u03bf\u0585\u1d0f",
    "p": "\u0440\u03c1",
    "q": "\u051b\u0563",
    "r": "\u0433\u1d26",
    "s": "\u0455\ua731\u01bd",
    "t": "\u0442\u03c4\u1d1b",
    "u": "\u03c5\u057d\u1d1c\u028b",
    "v": "\u0475\u03bd\u1d20",
    "w": "\u051d\u03c9\u0448\u1d21\u0461",
    "x": "\u0445\u03c7",
    "y": "\u0443\u04af\u03b3\u028f",
    "z": "\u1d22",
    "A": "\u0410\u0391",
    "B": "\u0412\u0392",
    "C": "\u0421\u03f9",
    "D": "\u13a0",
    "E": "\u0415\u0395",
    "G": "\u050c",
    "H": "\u041d\u0397",
    "I": "\u0406\u0399\u04c0",
    "J": "\u0408",
    "K": "\u041a\u039a",
    "L": "\u13de",
    "M": "\u041c\u039c",
    "N": "\u039d",
    "O": "\u041e\u039f\u0555",
    "P": "\u0420\u03a1",
    "Q": "\u051a",
    "R": "\u13a1",
    "S": "\u0405\u054f",
    "T": "\u0422\u03a4",
    "U": "\u054d",
    "V": "\u0474",
    "W": "\u051c",
    "X": "\u0425\u03a7",
    "Y": "\u0423\u03a5\u04ae",
    "Z": "\u0396",
    ":": "\ua789\u02d0\u2236\u0589",
    "=": "\ua78a",
}
ALIKE: Final = {ord(each): ord(read) for read, listed in _READ_AS.items() for each in listed}
"""The Latin letter that each one looks like."""
