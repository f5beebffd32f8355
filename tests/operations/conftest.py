"""Fixtures for erasure and controls: a database of one file, and a text that stands nowhere else."""

from __future__ import annotations

from uuid import uuid4

import pytest

from tests.services.postgres import Cluster


@pytest.fixture(scope="module")
def own(cluster: Cluster) -> str:
    """A database of the file's own, to be dumped whole or changed."""
    return cluster.migrated_database()


@pytest.fixture
def canary() -> str:
    return f"canary{uuid4().hex}"
