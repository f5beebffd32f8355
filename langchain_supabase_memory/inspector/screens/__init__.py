"""The pages of the inspector, a module for each; `conversation_header` is shared by the pages of one conversation."""
