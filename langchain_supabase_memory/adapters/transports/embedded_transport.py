"""The transport of the embedded database, which does not verify tokens."""

from __future__ import annotations

import logging
from functools import cache

from langchain_supabase_memory.adapters.transports.credentials import claims, token_claims
from langchain_supabase_memory.adapters.transports.postgres import PostgresTransport

_logger = logging.getLogger(__name__)


@cache
def _warn() -> None:
    _logger.warning(
        "The embedded database does not check the signatures of access tokens. It is for development: let no stranger "
        "choose a token."
    )


class EmbeddedTransport(PostgresTransport):
    """Performs calls on the embedded database, and accepts access tokens like the Data API transport."""

    is_identity_verified = False

    def _check_identity(self, identity: object) -> tuple[str, str]:
        if isinstance(identity, str):
            _warn()
            identity = token_claims(identity)
        return claims(identity)
