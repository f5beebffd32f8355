"""What stood in earlier prompts: kept with the answers in numbers, listed, and compared. Never a word."""
