"""The inspector: access, the contents of each page, user actions, and all of it in a real browser."""
