"""Rules that remove secrets and personal data before anything is stored."""

from langchain_supabase_memory.language.messages.redaction.personal import PERSONAL_DATA
from langchain_supabase_memory.language.messages.redaction.redactor import Redactor
from langchain_supabase_memory.language.messages.redaction.rules import RedactionRule, pattern_rule
from langchain_supabase_memory.language.messages.redaction.secrets import SECRETS

__all__ = [
    "PERSONAL_DATA",
    "SECRETS",
    "RedactionRule",
    "Redactor",
    "pattern_rule",
]
