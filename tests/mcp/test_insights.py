"""What a person's conversations come to, over MCP: counted, theirs alone, and with nothing of what is hidden."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from langchain_core.messages import AIMessage, HumanMessage

from langchain_supabase_memory import SupabaseMemory
from tests.mcp.conftest import MODES, client, count_insights, result_text

pytestmark = pytest.mark.parametrize("mode", MODES)


async def test_topics_signals_and_usage_are_counted_over_the_days_that_are_asked_for(
    memory: SupabaseMemory, conn_string: str, user_id: str, mode: str
) -> None:
    said = {
        "kiln": ("The porcelain glaze in the kiln cracked.", "Thanks, that worked."),
        "pot": ("A porcelain bowl needs a slow kiln and thin glaze.", "That's wrong, I meant the lid."),
    }
    for thread, texts in said.items():
        for text in texts:
            await memory.conversation(thread).aappend([HumanMessage(text), AIMessage("Noted.")])
        await memory.conversation(thread).aindex()
    old = datetime.now(UTC) - timedelta(days=40)
    await memory.conversation("run").aappend([HumanMessage("The marathon needs a training plan.")], created_at=old)
    await memory.conversation("run").aindex()
    await count_insights(conn_string, user_id)
    async with client(memory, mode) as made:
        result = await made.call_tool("get_insights", {})
        text = result_text(result)
        longer = result_text(await made.call_tool("get_insights", {"days": 90}))
    assert '<topics days="30">' in text
    assert "glaze" in text
    assert ": 2 episodes, last on " in text
    assert "conversation kiln, message" in text or "conversation pot, message" in text
    assert "correction: 1" in text
    assert "thanks: 1" in text
    assert "messages of the person: 4" in text
    assert "marathon" not in text
    assert "marathon" in longer
    assert "messages of the person: 5" in longer
    assert result.structured_content is not None
    assert {each["conversation_id"] for each in result.structured_content["sources"]} <= {"kiln", "pot"}
    assert result.structured_content["sources"]
    await memory.aclose()


async def test_what_is_hidden_or_somebody_elses_is_not_told(
    studio: SupabaseMemory, conn_string: str, user_id: str, mode: str
) -> None:
    other = f"{user_id} other"
    async with SupabaseMemory.from_conn_string(conn_string, user_id=other, model=None) as theirs:
        await theirs.conversation("studio").aappend([HumanMessage("My accordion lessons are on Mondays.")])
        await theirs.conversation("studio").aindex()
    await count_insights(conn_string, other)
    async with client(studio, mode) as made:
        before = result_text(await made.call_tool("get_insights", {}))
        (topic,) = await studio.topics.aread()
        await studio.topics.ahide(topic, actor="maya")
        after = result_text(await made.call_tool("get_insights", {}))
    assert topic.words[0] in before
    assert "accordion" not in before
    assert "<topics" not in after
    assert "messages of the person: 1" in after
