"""Import and export: conversations that come from elsewhere, and those that leave."""
