"""A small Supabase project at one address: a fake issuer for Auth, and PostgREST behind it."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from urllib.parse import urlsplit

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

from tests.services.data_api import SECRET, DataApi
from tests.services.postgres import Cluster

PUBLISHABLE = "sb_publishable_of-the-tests"
_AUTH, _REST = "/auth/v1", "/rest/v1"
_KEYS = f"{_AUTH}/.well-known/jwks.json"
_SIGN_IN = f"{_AUTH}/token?grant_type=password"


_MAKING: dict[str, Callable[[], Any]] = {
    "ES256": lambda: ec.generate_private_key(ec.SECP256R1()),
    "RS256": lambda: rsa.generate_private_key(65_537, 2_048),
    "EdDSA": ed25519.Ed25519PrivateKey.generate,
}


class Key:
    """A key pair that signs tokens.

    Args:
        key_id: Its id.
        algorithm: The signing algorithm.
    """

    def __init__(self, key_id: str, algorithm: str = "ES256") -> None:
        self.key_id = key_id
        self.algorithm = algorithm
        self.private = _MAKING[algorithm]()

    @property
    def public(self) -> dict[str, Any]:
        algorithm: Any = jwt.get_algorithm_by_name(self.algorithm)
        document: dict[str, Any] = algorithm.to_jwk(self.private.public_key(), as_dict=True)
        return {**document, "kid": self.key_id, "alg": self.algorithm, "use": "sig"}


class Project:
    """`with Project(cluster, database) as project` provides `project.url`.

    Attributes:
        keys: All keys; PostgREST knows all of them.
        published: The keys that the issuer publishes.
        status: The status of the issuer's answer to requests for its keys.
        fetched: The number of these requests.
        answering: Whether the issuer answers them; while it is cleared, the issuer hangs.
        pause: How long the issuer waits before each byte of an answer, in seconds.
        passwords: The users who can sign in: id and password, by email address.
    """

    def __init__(self, cluster: Cluster, database: str) -> None:
        self.keys = [Key("first"), Key("second"), *(Key(f"only {each}", each) for each in _MAKING)]
        self.published: list[dict[str, Any]] = [self.keys[0].public]
        self.status = 200
        self.fetched = 0
        self.pause = 0.0
        self.passwords: dict[str, tuple[str, str]] = {}
        self.answering = threading.Event()
        self.answering.set()
        known = [each.public for each in self.keys]
        # Supabase also accepts its legacy secret; the verifying server must not.
        known.append(json.loads(_oct(SECRET)))
        self._data_api = DataApi(cluster, database, secret=json.dumps({"keys": known}))
        handler = type("Handler", (_Handler,), {"project": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    @property
    def issuer(self) -> str:
        return f"{self.url}{_AUTH}"

    @property
    def upstream(self) -> str:
        return self._data_api.url

    def claims(self, user_id: str | None, expires_in: float = 3600.0) -> dict[str, Any]:
        """Return Auth's claims for a signed-in user."""
        now = int(time.time())
        said = {"iss": self.issuer, "aud": "authenticated", "role": "authenticated", "iat": now}
        return {**said, "exp": int(now + expires_in), **({} if user_id is None else {"sub": user_id})}

    def token(self, user_id: str | None, *, key: int = 0, expires_in: float = 3600.0, **more: Any) -> str:
        """Return a user's access token."""
        signer = self.keys[key]
        claims = {**self.claims(user_id, expires_in), **more}
        return jwt.encode(claims, signer.private, signer.algorithm, headers={"kid": signer.key_id})

    def session(self, email: str, password: str) -> dict[str, Any] | None:
        """Return Auth's answer to a sign-in; `None` for wrong credentials."""
        user_id, known = self.passwords.get(email, ("", None))
        if password != known:
            return None
        user = {"id": user_id, "email": email, "aud": "authenticated", "role": "authenticated"}
        claims = self.claims(user_id)
        times = {"expires_in": claims["exp"] - claims["iat"], "expires_at": claims["exp"]}
        return {
            "access_token": self.token(user_id),
            "token_type": "bearer",
            "refresh_token": "x",
            "user": user,
            **times,
        }

    def rotate(self) -> None:
        """Publish only the second key from now on."""
        self.published = [self.keys[1].public]

    def stop_data_api(self) -> None:
        """Let PostgREST be away from now on; the issuer still answers."""
        self._data_api.stop()

    def __enter__(self) -> Self:
        self._data_api.start()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.answering.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
        self._data_api.stop()


class _Handler(BaseHTTPRequestHandler):
    project: Project
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # head and body of an answer are two packets; the second was delayed by 40 ms

    def do_GET(self) -> None:
        if self.path != _KEYS:
            self._answer(404, b"{}")
            return
        self.project.fetched += 1
        self.project.answering.wait(30)
        if self.project.pause:
            self._trickle()
            return
        self._answer(self.project.status, json.dumps({"keys": self.project.published}).encode())

    def _trickle(self) -> None:
        self.close_connection = True
        while self.project.pause:
            time.sleep(self.project.pause)
            try:
                self.wfile.write(b"H")
            except OSError:
                return

    def do_OPTIONS(self) -> None:
        """Answer a browser's CORS preflight request."""
        self._answer(200, b"")

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.path == _SIGN_IN:
            said = json.loads(body)
            session = self.project.session(said["email"], said["password"])
            refusal = {"code": 400, "error_code": "invalid_credentials", "msg": "Invalid login credentials"}
            self._answer(400 if session is None else 200, json.dumps(session or refusal).encode())
            return
        address = urlsplit(self.project.upstream)
        connection = HTTPConnection(address.hostname or "", address.port, timeout=30)
        kept = {name: value for name, value in self.headers.items() if name.lower() not in ("host", "content-length")}
        try:
            connection.request("POST", self.path.removeprefix(_REST), body, kept)
        except ConnectionRefusedError:
            self._answer(502, b"{}")  # what the gateway says where PostgREST is away
            return
        response = connection.getresponse()
        self._answer(response.status, response.read(), response.headers["Content-Type"] or "application/json")
        connection.close()

    def _answer(self, status: int, body: bytes, kind: str = "application/json") -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Access-Control-Allow-Origin", "*")
        self.send_header("Access-Control-Allow-Headers", self.headers.get("Access-Control-Request-Headers", "*"))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Log nothing."""


def _oct(secret: str) -> str:
    key: str = jwt.algorithms.HMACAlgorithm.to_jwk(secret)
    return key
