"""The database: its catalog, its plans, who sees what."""
