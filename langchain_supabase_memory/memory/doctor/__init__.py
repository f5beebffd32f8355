"""The doctor: how a memory stands, line by line, with the next action. Each module judges what one party can tell."""
