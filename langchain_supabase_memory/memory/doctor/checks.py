"""The doctor's checks: call the database, the embedder and the project once each, and report findings."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from langchain_supabase_memory.adapters.transports.endpoint_info import signing_keys
from langchain_supabase_memory.adapters.transports.response_shapes import has_other_shape
from langchain_supabase_memory.effects import INLINE_LIMIT, Flow, offload
from langchain_supabase_memory.errors import SchemaOutdatedError, SupabaseMemoryError
from langchain_supabase_memory.memory.doctor import connection, database, models, profiles, work
from langchain_supabase_memory.memory.doctor.migration import next_migration
from langchain_supabase_memory.operations.doctor import schema_report, worker_report

if TYPE_CHECKING:
    from collections.abc import Mapping

    from langchain_supabase_memory.memory.doctor.finding import Finding
    from langchain_supabase_memory.memory.doctor.migration import NextMigration
    from langchain_supabase_memory.memory.services import Services


def doctor(services: Services) -> Flow[list[Finding]]:
    """Check the whole setup and return findings with next actions: the report of `supabase-memory doctor`.

    It calls the database once and the embedder once. Over the Data API it also fetches the project's public
    signing keys. The cost does not depend on the number of conversations. With a user's own token the database
    reports less, and a finding says so.

    Args:
        services: The memory.

    Returns:
        The findings. A failed check is a finding, not an exception.

    Example:
        ```python
        broken = [finding for finding in memory.doctor() if finding.state == "red"]
        ```
    """
    transport = services.transport
    of_user = transport.acts_as_user
    sent = datetime.now(UTC)
    try:
        found = yield from (schema_report() if of_user else worker_report(services.embedder_name))
    except SupabaseMemoryError as error:
        return [*(yield from _explain(services, error)), *(yield from _check_models(services, {}))]
    received = datetime.now(UTC)
    here = transport.endpoint
    is_distributed = bool(found.get("distributed"))
    findings = [connection.address(here), connection.kind(here, is_distributed=is_distributed)]
    if of_user:
        findings += [connection.check_user(), database.schema((yield from next_migration(found)))]
        return [*findings, *(yield from _check_tokens(services)), *(yield from _check_models(services, {}))]
    due = yield from next_migration(found["installed"], is_replica=found["replay_lag_seconds"] is not None)
    findings += [
        connection.role(found["role"], sees_all=found["sees_all"]),
        connection.clock(_time(found["now"]), sent, received),
        *database.replica(found["replay_lag_seconds"]),
        connection.settings(found["settings"]),
        database.schema(due),
        database.pgvector(found["vector"], due, found["indexes"], found["broken_indexes"]),
        database.access(found["added"], found["missing"], due),
        database.checkpoints(found["open_checkpoint_tables"]),
        *(yield from _check_tokens(services)),
        *(yield from _check_models(services, found, due)),
    ]
    if services.embedder_name is not None:
        findings.append(models.vectors(services.embedder_name, found["vectors"]))
    return [*findings, *_check_work(services, found),
        database.realtime(found, due), database.nodes() if is_distributed else database.sizes(found["tables"]),
            database.vacuum(found["autovacuum"], found["tables"], is_distributed=is_distributed)]  # fmt: skip


def _explain(services: Services, error: SupabaseMemoryError) -> Flow[list[Finding]]:
    """Return why the database gave no report: a schema of another release, or the failure itself."""
    here = services.transport.endpoint
    if has_other_shape(error) or isinstance(error, SchemaOutdatedError):
        with suppress(SupabaseMemoryError):
            schema = database.schema((yield from next_migration((yield from schema_report()))))
            if schema.state == "red":
                return [connection.address(here), connection.kind(here), schema]
    return connection.connection_failed(here, error)


def _check_models(
    memory: Services, document: Mapping[str, Any], due: NextMigration | None = None
) -> Flow[list[Finding]]:
    """Check the memory's own models, even if the database did not answer."""
    widths = (document.get("vectors") or {}).get("widths", [])
    embedder = yield from models.embedder(memory, widths, document.get("indexes", []), due)
    return [models.summarizer(memory), embedder]


def _check_tokens(memory: Services) -> Flow[list[Finding]]:
    """Check how tokens are signed, if the transport is the Data API."""
    url = memory.transport.endpoint.keys_url
    if url is None:
        return []
    return [connection.tokens((yield from offload(partial(signing_keys, url), INLINE_LIMIT)))]


def _check_work(memory: Services, document: Mapping[str, Any]) -> list[Finding]:
    now, wait = _time(document["now"]), document["wait_seconds"]
    seen, expired = (_time(at) if (at := document[name]) else None for name in ("heartbeat_at", "expired_at"))
    return [
        work.worker(now, seen, wait),
        work.lag(wait, has_run=seen is not None),
        work.dead(document["dead"]),
        work.retention(memory.settings.retention, now, expired),
        profiles.profile(document["profile"]),
    ]


def _time(value: str) -> datetime:
    return datetime.fromisoformat(value)
