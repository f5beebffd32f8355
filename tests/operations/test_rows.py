"""A value made of a row is the one that its class would make."""

from __future__ import annotations

from dataclasses import MISSING, FrozenInstanceError, fields, replace
from typing import Any

import pytest

from langchain_supabase_memory.operations.boards.board import BoardItem
from langchain_supabase_memory.operations.rows import frozen_value
from langchain_supabase_memory.values import Chunk

pytestmark = pytest.mark.pure


@pytest.mark.parametrize("kind", [BoardItem, Chunk])
def test_it_has_every_field_and_defaults_of_its_own(kind: Any) -> None:
    needed = {
        each.name: f"the {each.name}"
        for each in fields(kind)
        if each.default is MISSING and each.default_factory is MISSING
    }
    value, other = frozen_value(kind, needed), frozen_value(kind, needed)
    assert value == other == kind(**needed)
    assert repr(value) == repr(kind(**needed))
    assert replace(value) == value
    made_anew = [each.name for each in fields(kind) if each.default_factory is not MISSING]
    assert all(getattr(value, name) is not getattr(other, name) for name in made_anew)
    with pytest.raises(FrozenInstanceError):
        value.id = "another"
