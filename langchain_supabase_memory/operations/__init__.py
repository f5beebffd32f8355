"""What is done with each noun: one module, one SQL file."""
