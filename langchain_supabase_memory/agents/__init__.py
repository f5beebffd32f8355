"""Building blocks for LangChain agents and LangGraph graphs."""
