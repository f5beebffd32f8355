"""The database: its catalog, its plans, its access rules."""
