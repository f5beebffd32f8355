"""What is done with each noun."""
