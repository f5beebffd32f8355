"""The schemas of the tools, as a model receives them."""

from langchain_supabase_memory.mcp.schemas import compact_schema


def test_a_slim_schema_says_the_same() -> None:
    item = {"title": "Item", "type": "object", "properties": {"title": {"type": "string", "title": "Title"}}}
    schema = {
        "$defs": {"Item": item},
        "title": "All",
        "type": "object",
        "properties": {
            "one": {"anyOf": [{"$ref": "#/$defs/Item"}, {"type": "null"}], "default": None, "title": "One"},
            "two": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        },
    }
    slimmed = {"type": "object", "properties": {"title": {"type": "string"}}}
    assert compact_schema(schema) == {
        "type": "object",
        "properties": {"one": slimmed, "two": {"anyOf": [{"type": "string"}, {"type": "null"}]}},
    }
