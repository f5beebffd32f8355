"""What stays for good."""
