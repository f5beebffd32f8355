"""The forms of secrets: command lines, headers, addresses, languages, other scripts, base64; and look-alikes that are
not secrets."""

from __future__ import annotations

import base64
import ipaddress
import json
import random
from collections.abc import Callable

import psycopg
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from langchain_supabase_memory import PERSONAL_DATA, SECRETS, Redactor, SupabaseMemory
from langchain_supabase_memory.language.messages import codec
from langchain_supabase_memory.language.messages.encoded_data import LONGEST
from langchain_supabase_memory.language.messages.redaction import size_limit
from langchain_supabase_memory.language.messages.redaction.checksums import is_card
from langchain_supabase_memory.language.messages.redaction.confusables import ALIKE
from langchain_supabase_memory.language.messages.redaction.payload import redact_value
from tests.each_case import each_case
from tests.fuzzing import examples

ALL = Redactor([*SECRETS, *PERSONAL_DATA])
BOT = "123456789:AAhunter2cvCH1vGWJxfSeofSAs0K5PALDsx"

# What is left of each, to the letter.
EXACTLY = {
    "postgres://u:p@hunter2/w0rd@host:5432/db": "postgres://u:[redacted: password]@host:5432/db",
    "postgres://u:hunter2%40x%2Fy@host:5432/db": "postgres://u:[redacted: password]@host:5432/db",
    "mysql://u:hunter2/@db/x": "mysql://u:[redacted: password]@db/x",
    "postgresql+psycopg://me@x.org:hunter2@db.example.com/app": "postgresql+psycopg://[redacted: email]:[redacted: password]@db.example.com/app",
    "mongodb://u:hunter2@h1:27017,h2:27017/db?authSource=a@b": "mongodb://u:[redacted: password]@h1:27017,h2:27017/db?authSource=a@b",
    "amqp://u:a?hunter2#b@rabbit:5672/vhost": "amqp://u:[redacted: password]@rabbit:5672/vhost",
    "https://u:hunter2@npm.pkg.github.com/@scope/pkg@1.2.3": "https://u:[redacted: password]@npm.pkg.github.com/@scope/pkg@1.2.3",
    "https://u:a@hunter2/b@host.example.com/x": "https://u:[redacted: password]@host.example.com/x",
    "URL=postgres://u:hunter2@h/db,postgres://u:hunter2@h2/db": "URL=postgres://u:[redacted: password]@h/db,postgres://u:[redacted: password]@h2/db",
    "smtp://me@x.org:hunter2@mail.x.org:587, maya@x.org": "smtp://[redacted: email]:[redacted: password]@mail.x.org:587, [redacted: email]",
    "http://x.org:80/?to=maya@x.org": "http://x.org:80/?to=[redacted: email]",
    f"https://api.telegram.org/bot{BOT}/getMe": "https://api.telegram.org/bot[redacted: api key]/getMe",
    f"bot {BOT}.": "bot [redacted: api key].",
    "curl -u maya:hunter2 https://x.org": "curl -u maya:[redacted: password] https://x.org",
    "curl -umaya:hunter2 x": "curl -umaya:[redacted: password] x",
    "curl --user 'maya:hunter2 x' y": "curl --user 'maya:[redacted: password]' y",
    "curl https://x.org \\\n  -X POST \\\n  -u maya:hunter2\nls": "curl https://x.org \\\n  -X POST \\\n  -u maya:[redacted: password]\nls",
    "mysql -uroot -phunter2 shop": "mysql -uroot -p[redacted: password] shop",
    'run(["mysqldump", "-phunter2"])': 'run(["mysqldump", "-p[redacted: password]"])',
    'run(["sshpass", "-p", "hunter2", "ssh"])': 'run(["sshpass", "-p", "[redacted: password]", "ssh"])',
    "redis-cli -h h -a hunter2 ping": "redis-cli -h h -a [redacted: password] ping",
    "PGPASSWORD=hunter2 psql": "PGPASSWORD=[redacted: secret] psql",
    "machine x.org login maya password hunter2": "machine x.org login maya password [redacted: password]",
    "Cookie: sid=hunter2; b=hunter2, and": "Cookie: sid=[redacted: cookie]; b=[redacted: cookie] and",
    "Set-Cookie: sid=hunter2; Path=/; HttpOnly": "Set-Cookie: sid=[redacted: cookie]; Path=/; HttpOnly",
    "set-cookie: __Host-a=hunter2; Secure; Path=/": "set-cookie: __Host-a=[redacted: cookie]; Secure; Path=/",
    "Authorization: Basic bWF5YTpodW50ZXIy": "Authorization: Basic [redacted: credentials]",
    "Authorization: Basic bWF5": "Authorization: Basic [redacted: credentials]",
    'Authorization: Digest username="maya", response="hunter2"\nA: b': "Authorization: Digest [redacted: credentials]\nA: b",
    r'-H "Authorization: Digest username=\"maya\", response=\"hunter2\"" x': r'-H "Authorization: Digest [redacted: credentials]" x',
    '{"auths": {"x": {"auth": "bWF5YTpodW50ZXIy"}}': '{"auths": {"x": {"auth": "[redacted: secret]"}}',
    "//npm.x.org/:_authToken=hunter2": "//npm.x.org/:_authToken=[redacted: secret]",
    "_auth = bWF5YTpodW50ZXIy": "_auth = [redacted: secret]",
    "my PIN is 4821.": "my PIN is [redacted: secret].",
    "OTP: 482 193": "OTP: [redacted: secret]",
    "CVV: 123, 12/28": "CVV: [redacted: secret], 12/28",
    "user maya, pass: hunter2!": "user maya, pass: [redacted: secret]!",
    "passphrase: correct horse battery staple.": "passphrase: [redacted: secret].",
    "Das Passwort lautet wie folgt: geheim.": "Das Passwort lautet wie folgt: [redacted: secret].",
    "41 11 11 11 11 11 11 11": "[redacted: card]",
    "41 11 11 11 11 11 11 11, 12/28": "[redacted: card], 12/28",
    "pаsswоrd: hunter2": "pаsswоrd: [redacted: secret]",
    "ip 5.6.7.8": "ip [redacted: ip address]",
}  # fmt: skip

# The secret is `hunter2`.
FORMS = {
    "labels": """pw: hunter2|pw=hunter2|PW:hunter2|db_pw=hunter2|pwd: hunter2|passwd: hunter2|MYSQL_PWD=hunter2|pass: hunter2
        pass=hunter2|"pass": "hunter2"|pass: 'hunter2'|my pass is hunter2|DB_PASS=hunter2|SMTP_PASS: hunter2
        passphrase is hunter2|passcode = hunter2|password for the wifi is hunter2|password for wifi: hunter2
        the password is password: hunter2|REDISCLI_AUTH=hunter2""",
    "commands": """curl -su maya:hunter2 x|curl -u "maya:hunter2" x|curl --user=maya:hunter2 x|curl -U p:hunter2 x|curl -u :hunter2 x
        wget --user=a --password=hunter2 x|wget --http-password hunter2|http -a maya:hunter2 GET x|curl -b 'sid=hunter2' x
        mysql -p'hunter2 x' db|mysqladmin --password hunter2 ping|mariadb -phunter2|mysqldump -u root --password=hunter2 db
        sshpass -phunter2 ssh x|sshpass -p 'hunter2' ssh|PGPASSWORD='hunter2' psql|redis-cli --pass hunter2
        docker login -u a -p hunter2|mongosh -u a -p hunter2|sqlcmd -S x -U sa -P hunter2|plink -pw hunter2 x
        echo a; mysql -phunter2 < x|`mysql -phunter2`|default login maya password hunter2|login maya password hunter2
        deploy --db-password hunter2""",
    "headers": """-H 'Cookie: sid=hunter2; x=y'|"Cookie": "sid=hunter2"|document.cookie = "sid=hunter2"|Authorization: hunter2hunter2
        Authorization: Token hunter2|Authorization: Bot hunter2.abc|Authorization: ApiKey hunter2|authorization=Bearer hunter2
        ("Authorization", "Bearer hunter2")|Authorization: OAuth realm="x", oauth_token="hunter2"|Proxy-Authorization: Key hunter2
        Authorization: AWS4-HMAC-SHA256 Credential=hunter2/2024, Signature=hunter2""",
    "languages": """Passwort lautet hunter2|Das Passwort lautet: hunter2|Passwort heißt hunter2|WLAN-Kennwort ist hunter2|Kennwort: hunter2
        Benutzerkennwort: hunter2|Passwort für das WLAN ist hunter2|Le mot de passe est hunter2|mot de passe : hunter2
        mdp: hunter2|Le mot de passe du wifi est hunter2|Mi contraseña es: hunter2|La contraseña del wifi es hunter2
        contrasena = hunter2|Minha senha é hunter2|a senha do wifi é hunter2|palavra-passe: hunter2|la mia password è hunter2
        La password del router è: hunter2|la password e' hunter2|het wachtwoord is hunter2|wachtwoord luidt hunter2
        Lösenordet är hunter2|adgangskode: hunter2|passordet er hunter2|salasanani on hunter2|hasło to hunter2|heslo je hunter2
        jelszó: hunter2|şifre: hunter2|kata sandi saya adalah hunter2|mật khẩu là hunter2|пароль: hunter2|мой пароль это hunter2
        密码是hunter2|密码：hunter2|パスワードはhunter2です|비밀번호는 hunter2|كلمة المرور: hunter2|ang password ay hunter2
        password ko ay hunter2|ang password namin ay hunter2|password ng wifi ay hunter2|password sa router: hunter2""",
    "look-alikes": """ΡΑSSWORD: hunter2|ｐａｓｓｗｏｒｄ：hunter2|раѕѕwоrd＝hunter2|tоken=hunter2|passwοrd꞉ hunter2|аpi_kеy=hunter2
        p\u200ba\u200bs\u200bs\u200bw\u200bo\u200br\u200bd: hunter2|pass\u00adword: hunter2|p\u2060аss\ufeffword: hunter2""",
}  # fmt: skip
VARIANTS = {name: [each.strip(" ") for each in listed.replace("\n", "|").split("|")] for name, listed in FORMS.items()}

# None of it holds a secret, nor leads to a person.
ORDINARY = r"""
my password is hard to remember|the password is wrong, try again|The password must be 8-20 characters.|password for the wifi is missing
password is 12 characters long|password is 1024 bits of entropy|the password of the admin is unknown|Password reset sent to 3 people
reset password on server1|passwordless login|password manager: 1Password|login and password fields|login page password reset
machine learning password manager|pass the salt|pass: the salt|the first pass: parsing|pass: 12, fail: 3|pass: 2nd|pass: 100%
PASS: tests/test_redaction.py|--- PASS: TestFoo2 (0.00s)|render_pass=shadow|first_pass=True|bypass: none|compass: north-east
boarding pass is A12|The pass is 12km away|pass is 10:30am|except: pass|if a: pass  # noqa|passphrase: required for all users.
seed phrase: keep it safe and never share it with anyone.|the passphrase is optional|mnemonic: ADD|PIN 13 of the board|pin: 13
GPIO pin = 21|the pin is bent|pinned: 2024 posts|PIN: none|one-time code: expires soon|CVV is on the back|cvc: three digits
P = 5 pW = 5e-12 W|5 pW: tiny|pwd: /var/lib/postgres|export PWD=/home/maya|Das Passwort ist falsch|Das Passwort lautet anders
Le mot de passe est oublié|La contraseña es incorrecta|A senha é obrigatória|Ang password ay mali|De wachtwoord is vergeten
desenha: flores1|hasło dnia|кот: рыжий1|рост: 180|token: a small unit|the token bucket is full|a secret recipe: flour
Cookie: is a treat|cookie: two cups of flour|cookies: 24 pieces|Set-Cookie is a header|Cookie: sid=<session>|Set the cookie = null
Authorization: required|Authorization: Required for every call|Authorization is a topic|Basic Authentication|Authorization: Bearer your-publishable-key|("authorization", "PLACEHOLDER")
`pw:`, `curl` and others|pw = pw[:-1]|login = account = password = ''|basic Understanding of it
bearer of good news|auth: true|"auth": "oauth2"|"auth": {"type": "bearer"}|auth = get_auth(user)|auth=supabase.auth|basic auth: yes
curl https://example.com/a:b|use curl -u to log in|curl -o out.txt https://x.org|curl -X POST -H 'Accept: a/b' x|curl -u user:$TOKEN x
curl -u "$USER:$PASS" x|docker run --user 1000:1000 -p 8080:80 nginx|docker run -p 8080:80 mysql|mysql -u root -p|mysql -P 3306 -h db
mysql -p$PASS|mysql -p"${PASS}"|mkdir -p /tmp/x|ssh -p 2222 me@host|redis-cli -h cache ping|redis-cli -a "$REDIS" ping
sshpass is a program|sshpass -p $PASS ssh x|--password-file /run/x1|pip install --user a:b|use the --password option|--token
https://medium.com/@maya/a-story-1a2b3c|https://x.org:443/a@b|http://localhost:8080/a/user@x|https://x.org/@scope/pkg/-/pkg-1.2.3.tgz
http://example.com/?q=a:b@c|12:30:00@gate|Telegram bot 123456789: hello|chat 123456789:some-slug|12345678:00
ISBN 978-3-16-148410-0|ISBN-10 3-16-148410-X|978 3 16 148410 0|2024-01-15 10:30:00|order 100-200-3000|order number 4012888888
lottery: 4 8 15 16 23 42|2 3 5 7 11 13 17 19 23 29 31|1, 2, 3, 4, 5, 6, 7, 8, 9, 10|41,111,111,111,111,111|4.111.111.111.111.111
411 111 111 111 111|2000 2004 2008 2012|3.14159265358979323846|1 1 2 3 5 8 13 21 34 55 89|€ 4.111,50|4111.11 + 1111.11 = 5222.22
41 11 11 11 11 11 11 12|41 11 11 11 11 11 11 11 11 11|550e8400-e29b-41d4-a716-446655440000|b5ad16c|10:20:30:40:50:60
9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08|b5ad16cb5ad16cb5ad16cb5ad16cb5ad16cb5ad1|aa:bb:cc:dd:ee:ff
internationalization of HTTPResponseHeaders|aHR0cHM6Ly9leGFtcGxlLm9yZy9wYXRo|SGVsbG8sIHdvcmxkISBUaGlzIGlzIGEgdGVzdC4=
eyJuYW1lIjogIk1heWEiLCAiYWdlIjogMzB9|eyJjdXJzb3IiOiAxMjM0NX0=|1.2.3.4|2.0.0.1|8.8.8.8|version 13.1.1.3|SKU 4111-2222
""".strip().replace("\n", "|").split("|")  # fmt: skip


@each_case(("text", "expected"), EXACTLY.items())
def test_of_every_form_the_secret_goes_and_the_rest_stays(text: str, expected: str) -> None:
    assert ALL.redact(text) == expected
    around = "Look, maybe: {}\n(see above)"
    assert ALL.redact(around.format(text)) == around.format(expected)
    assert ALL.redact(expected) == expected


@each_case("name", FORMS)
def test_every_variant_is_found(name: str) -> None:
    assert len(VARIANTS[name]) >= 9
    for text in VARIANTS[name]:
        assert "hunter2" in text
        for said in (text, f"I said:\n{text}\nand left."):
            made = ALL.redact(said)
            assert "hunter2" not in made, text
            assert ALL.redact(made) == made, text


def test_what_looks_like_a_secret_and_is_none_stays() -> None:
    assert len(ORDINARY) > 140
    for text in ORDINARY:
        for said in (text, f"We said {text}", f"> {text}\n\nThanks."):
            assert ALL.redact(said) == said
            assert redact_value({"note": said}, ALL) == {"note": said}


def base64_of(text: str, encoding: str = "utf-8") -> str:
    return base64.b64encode(text.encode(encoding)).decode()


CARRIERS: dict[str, Callable[[str], BaseMessage]] = {
    "content": lambda said: HumanMessage(said, id="m"),
    "block": lambda said: HumanMessage([{"type": "text", "text": said}], id="m"),
    "call": lambda said: AIMessage("", id="m", tool_calls=[{"name": "run", "args": {"n": 1, "command": [said]}, "id": "call_1"}]),
    "arguments": lambda said: AIMessage("", id="m", additional_kwargs={
        "tool_calls": [{"id": "call_1", "type": "function", "function": {"name": "run", "arguments": json.dumps({"command": said})}}]
    }),
    "result": lambda said: ToolMessage(json.dumps({"out": json.dumps({"lines": [said]})}), id="m", tool_call_id="call_1", name="run"),
    "artifact": lambda said: ToolMessage("done", id="m", tool_call_id="call_1", artifact={"raw": said.encode(), "text": said}),
    "base64": lambda said: HumanMessage(f"Here: {base64_of(said)}", id="m"),
    "base64 of JSON": lambda said: HumanMessage(base64_of(json.dumps({"a": [{"b": said}]})), id="m"),
}  # fmt: skip


def decodings(text: str) -> str:
    """A text, and what every run of base64 in it says."""
    said = [text]
    for run in text.replace('"', " ").replace("\\", " ").split():
        try:
            said.append(base64.b64decode(run + "==").decode("utf-8", "replace"))
        except ValueError:
            continue
    return "\n".join(said)


@each_case("carrier", CARRIERS)
def test_no_payload_holds_it_and_every_payload_keeps_its_shape(carrier: str) -> None:
    for text in [*EXACTLY, *(each for listed in VARIANTS.values() for each in listed)]:
        if "hunter2" not in text:
            continue
        message = CARRIERS[carrier](text)
        row = codec.to_row(message, ALL)
        assert "hunter2" not in decodings(json.dumps(row, ensure_ascii=False)), text
        restored = codec.from_payload(row["payload"])
        assert (type(restored), restored.id) == (type(message), "m")
        assert codec.to_row(restored, ALL) == row
        if isinstance(message, AIMessage) and isinstance(restored, AIMessage):
            assert [each["id"] for each in restored.tool_calls] == [each["id"] for each in message.tool_calls]
        if isinstance(restored, ToolMessage):
            assert restored.tool_call_id == "call_1"


def test_where_a_key_alone_does_not_tell_the_text_does() -> None:
    told = {
        "auth": base64_of("maya:hunter2"),
        "pass": "hunter2",
        "db_pass": "swordfish",
        "user": "maya",
        "contraseña": "verano",
        "pаssword": "x",
    }
    kept = {
        "auth": "oauth2",
        "pass": "yes",
        "fail": 3,
        "auths": {"auth": {"type": "none"}},
        "Auth": True,
        "pwd": None,
        "bypass": "swordfish2",
    }
    made = redact_value({**told, "nested": [kept]}, ALL)
    secret = "[redacted: secret]"
    assert made == {"auth": secret, "pass": secret, "db_pass": secret, "user": "maya", "contraseña": secret, "pаssword": secret, "nested": [kept]}  # fmt: skip


# -- base64

TELLING = [{"password": "x1"}, {"user": "a", "deep": [{"api_key": "k"}]}, {"pin": 4821}, {"to": "maya@x.org"}, {"a": json.dumps({"password": "x"})},
           {"password": {"value": "x"}}, {"auth": base64_of("maya:hunter2")}, {"card": 4111111111111111}]  # fmt: skip


@each_case("around", ["{}", "see {} ok", "x={}&y=1", "https://x.org/a/{}", "token-{}", '"{}"', "/a/{}/b", "a\u200b{}"])
def test_json_in_base64_that_holds_a_secret_goes(around: str) -> None:
    for value in TELLING:
        for indent in (None, 1):
            data = json.dumps(value, indent=indent).encode()
            for encoded in (base64.b64encode(data).decode(), base64.urlsafe_b64encode(data).decode()):
                for run in (encoded, encoded.rstrip("=")):
                    made = ALL.redact(around.format(run))
                    assert run[:-4] not in made, value
                    assert "[redacted: " in made
                    assert ALL.redact(made) == made


def test_base64_is_looked_through_to_a_depth_and_a_length() -> None:
    said = "my password: hunter2"
    for text in (said, said + " and so on" * 20, "é" * 40 + said):
        layers = [base64_of(text)]
        for _ in range(3):
            layers.append(base64_of(layers[-1]))
        for layer in layers[:3]:
            assert "[redacted: " in ALL.redact(layer)
        assert ALL.redact(layers[3]) == layers[3]
    assert "[redacted: " in ALL.redact(base64_of(said, "utf-16-le"))
    assert "[redacted: " in ALL.redact(base64.encodebytes((" " * 300 + said).encode()).decode())
    image = base64.b64encode(random.Random(3).randbytes(50_000)).decode()
    assert ALL.redact(image) == image


LONG = {
    "words": "the kiln is cold ",
    "log": "2026-11-25 10:00:12 INFO worker 7 took 313 ms for /api/v1/7\n",
    "chinese": "记忆是对话中最重要的东西。\n",
    "emoji": "\U0001f600\U0001f44d\U0001f3fd ",
    "marks": "maya@x.org ",
    "one line": "x",
}


@pytest.mark.parametrize(
    "kind", ["log", *(pytest.param(kind, marks=pytest.mark.slow) for kind in LONG if kind != "log")]
)
def test_no_more_of_a_message_is_stored_than_was_read(kind: str) -> None:
    read = 0

    class Reader:
        name = "reader"

        def spans(self, text: str) -> list[tuple[int, int]]:
            nonlocal read
            read += len(text)
            return []

    redactor = Redactor([*SECRETS, *PERSONAL_DATA, Reader()])
    text = LONG[kind] * (2_500_000 // len(LONG[kind])) + " password: hunter2hunter2"
    made = codec.to_row(HumanMessage(text, id="1"), redactor)
    assert "hunter2" not in json.dumps(made)
    assert len(made["text"]) <= LONGEST
    assert "left out: more than is redacted" in made["text"][-80:]
    assert read <= 8 * LONGEST, "each look and each round reads it once"
    again = codec.to_row(HumanMessage(made["text"], id="1"), redactor)
    assert again["text"] == made["text"]


@pytest.mark.parametrize(
    "secret",
    [
        "password: 'hunter2hunter2hunter2'",
        "sk-ant-api03-hunter2hunter2hunter2A1",
        "-----BEGIN PRIVATE KEY-----\n" + "hunter2AhunterA2" * 20 + "\n-----END PRIVATE KEY-----",
        "passphrase: correct hunterless horse battery staple.",
        base64.b64encode(b'{"password": "hunter2hunter2"}' * 3).decode(),
    ],
)
def test_a_secret_that_stands_where_a_text_is_cut_goes(secret: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(size_limit, "LONGEST", 2_000)
    for before in range(0, len(secret) + 60, 3):
        text = "x " * ((2_000 - before) // 2) + secret + " y" * 1_000
        made = Redactor().redact(text)
        rest = made[made.rindex("x") + 1 :]
        assert not any(part in rest for part in ("hunter", "correct", secret[:24])), before


def test_a_document_or_a_file_that_is_not_read_to_its_end_is_left_out_and_short_fields_stay() -> None:
    document = json.dumps({"a": "x " * LONGEST, "password": "hunter2"})
    held = base64.b64encode(f"{'x ' * LONGEST} password: hunter2".encode()).decode()
    image = base64.b64encode(random.Random(1).randbytes(1_500_000)).decode()
    file = {"type": "file", "base64": held, "mime_type": "text/plain"}
    shown = {"type": "image", "base64": image, "mime_type": "image/png"}
    url = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{image}"}}
    message = AIMessage(
        [{"type": "text", "text": document}, file, shown, url, {"type": "text", "text": "short"}],
        tool_calls=[{"name": "fire", "args": {"cone": "6", "data": held}, "id": "1"}],
        response_metadata={"model_name": "gpt"},
        id="1",
    )
    data = codec.to_row(message, ALL)["payload"]["data"]
    first, second, *same = data["content"]
    assert first["text"].startswith("[… ")
    assert (second["type"], second["text"][:3]) == ("text", "[… ")
    assert same == [shown, url, {"type": "text", "text": "short"}]
    assert (data["tool_calls"][0]["name"], data["tool_calls"][0]["args"]["cone"]) == ("fire", "6")
    assert data["tool_calls"][0]["args"]["data"].startswith("[… ")
    assert data["response_metadata"] == {"model_name": "gpt"}


def test_what_was_redacted_within_base64_is_left() -> None:
    once = redact_value(
        {"type": "file", "mime_type": "text/plain", "base64": base64_of("my key: pw: hunter2 " * 9)}, ALL
    )
    assert b"[redacted: secret]" in base64.b64decode(once["base64"])
    assert redact_value(once, ALL) == once
    assert ALL.redact(once["base64"]) == once["base64"]


# -- at random

LETTERS = "abcdefghijkmnpqrtuvwyzABCDEFGHJKLMNPQRTUVWYZ23456789"
SECRET = st.text(alphabet=LETTERS, min_size=7, max_size=16).map(lambda text: f"k7{text}")
ODD = st.text(alphabet=LETTERS + "@/!%^*-_+~", min_size=7, max_size=16).map(lambda text: f"k7{text}4z")
AROUND = st.sampled_from(
    [
        "{}",
        "Hi, please run {} and tell me.",
        "1. {}\n2. done",
        "> {}\n",
        "`{}`",
        "Zoë – „ok“: {} …",
        "{} (see above)",
        "кот {} кот",
        "{}\r\n{}",
    ]
)
PLAIN = ["pw: {}", "pass={}", "passwd: {}", "my password is {}", "Passwort lautet {}", "mot de passe est {}", "senha é {}", "password ko ay {}",
         "Cookie: sid={}", "Authorization: Token {}", "curl -u maya:{} x.org", "mysql -p{} db", "sshpass -p {} ssh", "redis-cli -a {} ping",
         "PGPASSWORD={} psql", "login maya password {}", '{{"password": "{}"}}', "la password è {}", "het wachtwoord is {}"]  # fmt: skip


@given(st.sampled_from(PLAIN), SECRET, AROUND, st.sampled_from(sorted(CARRIERS)))
@settings(max_examples=examples(250), deadline=None)
def test_any_secret_in_any_form_in_any_place_goes(form: str, secret: str, around: str, carrier: str) -> None:
    said = form.format(secret)
    message = CARRIERS[carrier](around.replace("{}", said))
    row = codec.to_row(message, ALL)
    assert secret not in decodings(json.dumps(row, ensure_ascii=False))
    assert codec.to_row(codec.from_payload(row["payload"]), ALL) == row


@given(st.sampled_from(["postgres", "mysql", "redis", "mongodb+srv", "amqp"]), ODD, AROUND)
@settings(max_examples=examples(150), deadline=None)
def test_any_password_in_an_address_goes_and_the_address_stays(scheme: str, secret: str, around: str) -> None:
    said = around.replace("{}", f"{scheme}://maya:{secret}@db.example.com:5432/app")
    assert ALL.redact(said) == around.replace("{}", f"{scheme}://maya:[redacted: password]@db.example.com:5432/app")


@given(st.sampled_from(["password", "token", "api_key", "pw", "passwort", "secret"]), SECRET, st.data())
@settings(max_examples=examples(150), deadline=None)
def test_a_label_in_letters_that_look_alike_is_read(label: str, secret: str, data: st.DataObject) -> None:
    looks: dict[str, list[str]] = {}
    for code, read in ALIKE.items():
        looks.setdefault(chr(read), []).append(chr(code))
    written = "".join(
        data.draw(st.sampled_from([each, *looks.get(each, [])])) + data.draw(st.sampled_from(["", "", "\u200b", "\u00ad", "\u2060"]))
        for each in label
    )  # fmt: skip
    before = data.draw(st.sampled_from(["", "Это ", "ｅｈ ", "é\u200b "]))
    assert ALL.redact(f"{before}{written}={secret} é") == f"{before}{written}=[redacted: secret] é"


PIECES = st.sampled_from(
    [*EXACTLY, *(each for listed in VARIANTS.values() for each in listed), *ORDINARY, "[redacted: secret]", "[redacted: ", "'", '"', "`", "\\", ":", "=", "\n", "@", ""]
)  # fmt: skip


@given(st.lists(PIECES, max_size=5), st.sampled_from(["", " ", ", ", "\n", " = "]))
@settings(max_examples=examples(250), deadline=None)
def test_what_was_redacted_stays_as_it_is_in_any_company(pieces: list[str], between: str) -> None:
    once = ALL.redact(between.join(pieces))
    assert ALL.redact(once) == once


def test_every_letter_that_looks_alike_stands_for_one() -> None:
    assert {chr(read) for read in ALIKE.values()} >= set("abcdeghijklmnopqrstuvwxyzACEHIMOPSTX:=")
    assert all(code > 127 for code in ALIKE)
    assert all(read < 128 for read in ALIKE.values())


@given(st.sampled_from(["4", "51", "55", "34", "37", "6011", "65", "2221"]), st.integers(0, 10**18), st.integers(1, 6), st.sampled_from([" ", "-", ".", "/", "_", "  ", " - ", "\u2009", "·"]))  # fmt: skip
@settings(max_examples=examples(200), deadline=None)
def test_a_card_is_found_in_any_grouping(issuer: str, rest: int, size: int, sign: str) -> None:
    length = 15 if issuer in ("34", "37") else 16
    digits = (issuer + f"{rest:018}")[: length - 1]
    checks = [digits + str(last) for last in range(10)]
    (card,) = (each for each in checks if is_card(each)) if len(set(digits)) > 1 else (checks[0],)
    if not is_card(card) or (size == 3 and length % 3 == 0 and sign != "-"):
        return  # in threes it is an amount
    grouped = sign.join(card[at : at + size] for at in range(0, length, size))
    assert ALL.redact(f"Card: {grouped}, ok") == "Card: [redacted: card], ok"
    if size < 4:  # in others other numbers are looked for
        wrong = grouped[:-1] + str((int(grouped[-1]) + 1) % 10)
        assert Redactor([rule for rule in PERSONAL_DATA if rule.name == "card"]).redact(wrong) == wrong


RESERVED = ["10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "127.0.0.0/8", "169.254.0.0/16", "192.0.2.0/24", "198.51.100.0/24",
            "203.0.113.0/24", "100.64.0.0/10", "224.0.0.0/4", "240.0.0.0/4", "0.0.0.0/8", "fe80::/10", "fc00::/7", "2001:db8::/32", "ff00::/8"]  # fmt: skip


def test_addresses_that_lead_to_nobody_stay_and_others_go() -> None:
    chance = random.Random(7)
    for each in RESERVED:
        network = ipaddress.ip_network(each)
        for _ in range(20):
            address = network[chance.randrange(network.num_addresses)]
            for text in (f"{address}", f"ip={address}", f"from {address}."):
                assert "ip address" not in ALL.redact(text), text
    for _ in range(200):
        public = ".".join(str(chance.choice([*range(11, 100), *range(130, 169)])) for _ in range(4))
        assert ALL.redact(f"from {public}.") == "from [redacted: ip address]."
        assert ALL.redact(public) == "[redacted: ip address]"


# -- any length

UNITS = ["password:", "password is ", "pass: ", "pw", "pin: ", "cookie: a=b;", "Cookie: ", "authorization: ", "Authorization: Digest a=", "curl -u ", "curl ",
         "mysql -p", "login a ", "machine a login b ", "eyJ", "/eyJ", "ZXlK", "aA/", "41 ", "4-", "://a:b/", "://a:@", "postgres://a:b@c?d=",
         "passphrase: a ", "seed phrase: word word word ", "password for x ", "auth: ", "passwort lautet ", "mdp ", "senha é ", "а", "\\\n",
         "curl \\\n -u a:", 'authorization: "digest a=\\"', "YWFh" * 16 + "\n", "1.", "-- pass", "123456789:A"]  # fmt: skip


# 50,000 characters each, for which a rule that is quadratic takes half a minute.
@pytest.mark.timeout(10)
@pytest.mark.parametrize("unit", UNITS)
def test_a_long_text_of_one_form_has_an_end(unit: str) -> None:
    assert ALL.redact(unit * (50_000 // len(unit)))


# -- in the tables


def test_none_of_it_is_in_any_table(conn_string: str, user_id: str) -> None:
    said = [each for listed in VARIANTS.values() for each in listed]
    with SupabaseMemory.from_conn_string(conn_string, user_id=user_id, redactor=[*SECRETS, *PERSONAL_DATA]) as memory:
        messages = [CARRIERS[carrier](text).model_copy(update={"id": f"{carrier} {at}"}) for carrier in ("content", "call") for at, text in enumerate(said)]  # fmt: skip
        assert memory.conversation("t").append(messages).appended == len(messages)
        assert memory.conversation("t").append(messages).updated == []
        memory.conversation("t").index()
    with psycopg.connect(conn_string) as connection:
        tables = connection.execute(
            "select format('%I.%I', schemaname, tablename) from pg_tables where schemaname in ('memory', 'memory_private')"
        ).fetchall()
        rows = [str(row) for (name,) in tables for row in connection.execute(f"select t::text from {name} t".encode())]
    assert any("[redacted: secret]" in row for row in rows)
    assert not any("hunter2" in row for row in rows)
