"""Every verb of a memory, once, as a flow with its docstring; `tools/colors.py` writes both colors from it."""
