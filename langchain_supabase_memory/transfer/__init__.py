"""Import and export of conversations."""

from langchain_supabase_memory.transfer.export_conversations import aexport_conversations, export_conversations
from langchain_supabase_memory.transfer.import_conversations import aimport_conversations, import_conversations
from langchain_supabase_memory.transfer.values import ExportReceipt, ImportReceipt

__all__ = [
    "ExportReceipt",
    "ImportReceipt",
    "aexport_conversations",
    "aimport_conversations",
    "export_conversations",
    "import_conversations",
]
