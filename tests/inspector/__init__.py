"""The inspector: who is let in, what each page shows, what people do on it; and all of it in a real browser."""
