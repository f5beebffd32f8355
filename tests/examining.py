"""Queries about a database as a whole: its installation, and single findings of the doctor."""

from __future__ import annotations

from typing import TYPE_CHECKING

from langchain_supabase_memory.adapters.schema.script import Installed
from langchain_supabase_memory.operations import doctor

if TYPE_CHECKING:
    from langchain_supabase_memory import SupabaseMemory
    from langchain_supabase_memory.memory.doctor.finding import Finding


def installed(memory: SupabaseMemory) -> Installed:
    """Return the installation that a database reports."""
    return Installed(**memory._services.run(doctor.schema_report()))


def findings_by_name(memory: SupabaseMemory) -> dict[str, Finding]:
    """Return the doctor's findings by name."""
    findings = memory.doctor()
    named = {each.name: each for each in findings}
    assert len(named) == len(findings)
    assert all((each.state == "green") is (each.next_action is None) for each in findings)
    return named
