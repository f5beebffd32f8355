"""Names of secrets in code and in human languages: the words before a secret and the verb between."""

from __future__ import annotations

import re
from typing import Final

SURE: Final = (
    r"passw(?:or[dt]|d)|pwd|pass[_ -]?(?:phrase|code|wd)|rediscli_auth"
    r"|(?:client|app|shared|signing|jwt|webhook)[_ -]?secret"
    r"|(?:api|access|secret|private|service[_ -]?role|encryption|signing|auth|account|master)[_ -]?key"
    r"|secret[_ -]?access[_ -]?key"
    r"|(?:access|refresh|session|bearer|(?<![a-z])(?:auth|id|api|bot))[_ -]?token"
)
"""Names that always mean a secret."""

PARTS: Final = (
    "kennwort", "kennwört", "mot de passe", "mot_de_passe", "mot-de-passe", "contraseña", "contrasen\u0303a",
    "contrasena", "palavra-passe", "palavra passe", "wachtwoord", "lösenordet", "lösenord", "lo\u0308senord",
    "losenord", "adgangskoden", "adgangskode", "kodeordet", "kodeord", "passordet", "passord", "salasanani", "salasana",
    "jelszó", "jelszo", "hasło", "haslo", "lozinka",
    "şifrem", "şifreniz", "şifre", "parolă", "parolam", "kata sandi", "kata laluan", "mật khẩu", "пароль", "парола",
    "κωδικός πρόσβασης", "κωδικος προσβασης", "كلمة المرور", "كلمة السر", "סיסמה", "סיסמא", "पासवर्ड", "รหัสผ่าน", "密码",
    "密碼", "口令", "パスワード", "비밀번호", "패스워드",
)  # fmt: skip
"""Such names in other languages, also as a part of a longer word; the longer of two comes first."""

WHOLE: Final = ("mdp", "senha", "heslo", "sifrem", "sifreniz", "sifre")
"""Such names that must be the whole word."""

PHRASE: Final = r"(?:seed|recovery|mnemonic|backup)[_ -]phrase"
"""Names of secrets that consist of several words."""

VAGUE: Final = r"secrets?|(?<!page)(?<!page[_-])(?<!per[_-])token|credentials?"
"""Names that also occur in prose and ordinary data."""

SHORT: Final = r"pass(?![^\W_])|pw(?![^\W_])"
"""Abbreviations after the name of a service; "pw" also stands alone, and "pass" is also a verb and a result."""

_SERVICES: Final = (
    "db|database|smtp|e?mail|imap|user|usr|mysql|mariadb|pg|postgres|redis|mongo(?:db)?|s?ftp|ssh|admin|root|https?|proxy"
    "|auth|login|wifi|wlan|rabbitmq|basic|vnc|ldap|sudo|my|keystore|cert|zip|encryption|master"
)
SERVICE: Final = re.compile(rf"(?i)(?<![^\W_])(?:{_SERVICES})[_-]?\Z")
"""Names of services right before them."""

_OTHERS: Final = "|".join(map(re.escape, (*PARTS, *WHOLE)))
KEYS: Final = re.compile(
    rf"(?i)(?:[\w.-]{{0,60}}[_.-]|[a-z]{{0,20}})?(?:{SURE}|{PHRASE}|{_OTHERS}|(?:{_SERVICES})[_-]?pass)|(?:[\w-]{{1,60}}[_-])?(?:secrets?|(?<!page_)token)"
    r"|credentials?|(?:proxy-)?authorization|(?:set-)?cookie|pin|puk|cvv2?|cvc2?|otp|x-api-key|(?:[a-z]{0,20}pw)"
)
"""Mapping keys whose whole value is a secret."""

OWNER: Final = (
    r"(?:(?:ko|mo|niya|nya|namin|natin|nila|po|saya|anda|kami|ku|của[ ](?:tôi|bạn))"
    r"|(?:for|to|of|on|ng|sa|f(?:ü|ue?)r|zum|zur|vom|von|pour|du|de|del|do|da|para|per|di|van|voor|untuk)"
    r"[ \t](?:(?:the|my|our|your|das|die|den|dem|mein|la|le|el|il|mi|mon|het|de|ang)[ \t])?[\w.@-]{1,40}+)"
)
"""Words for its owner or purpose: "password *ko*", "password *for the wifi*"."""

NAMING: Final = (
    r"(?:lautet|luidt|brzmi|hei(?:ß|ss)t)(?:[ \t](?:wie[ \t]folgt|als[ \t]volgt|folgenderma(?:ß|ss)en)(?=[ \t]?:))?"
)
"""Verbs that are always followed by the secret."""

COPULA: Final = (
    r"(?:is|was|ist|war|est|es|era|é|e\u0301|è|e\u0300|e'|ay|är|er|jest|este|adalah|ialah|là|это|це|είναι|هو|هي"
    r"|(?<=has[łl]o[ ])to|(?<=heslo[ ])je|(?<=lozinka[ ])je|(?<=salasana[ ])on|(?<=salasanani[ ])on)"
)
"""Verbs followed by the secret or a statement about it: "is wrong"."""

JOINED: Final = r"(?:是|為|为|は|คือ|[는은](?=[ \t]))"
"""Verbs that are written without a space before them."""

PIN: Final = (
    r"(?<![^\W_])(?:pin(?:[ _-]?(?:code|number|no\.?|nummer))?|puk|otp|geheimzahl|暗証番号"
    r"|one[ -]time[ -](?:code|password|pin)|(?:verification|security|login|access|2fa|mfa|sms)[ -]code)"
)
CARD_CODE: Final = r"(?<![^\W_])(?:cvv2?|cvc2?)"
