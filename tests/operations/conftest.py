"""A fixture for erasure and controls: a text that stands nowhere else."""

from __future__ import annotations

from uuid import uuid4

import pytest


@pytest.fixture
def canary() -> str:
    return f"canary{uuid4().hex}"
