"""What tests ask of a database as a whole: what it is set up with, and single lines of the doctor's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from langchain_supabase_memory.adapters.schema.script import Installed
from langchain_supabase_memory.operations import doctor

if TYPE_CHECKING:
    from langchain_supabase_memory import SupabaseMemory
    from langchain_supabase_memory.memory.doctor.finding import Finding


def installed(memory: SupabaseMemory) -> Installed:
    """What a database is set up with, as it says itself."""
    return Installed(**memory._services.run(doctor.schema_report()))


def found(memory: SupabaseMemory) -> dict[str, Finding]:
    """The doctor's lines by their names."""
    findings = memory.doctor()
    named = {each.name: each for each in findings}
    assert len(named) == len(findings)
    assert all((each.state == "green") is (each.next_action is None) for each in findings)
    return named
