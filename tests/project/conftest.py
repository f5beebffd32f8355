"""A project on Supabase, for the examples."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.services.data_api import DataApi
from tests.services.postgres import Cluster
from tests.services.project import Project


@pytest.fixture(scope="module")
def project(cluster: Cluster, database: str, data_api: DataApi) -> Iterator[Project]:
    """An issuer and a Data API under one address."""
    del data_api  # so that these tests are known to need PostgREST
    with Project(cluster, database) as project:
        yield project
