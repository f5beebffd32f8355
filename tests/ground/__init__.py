"""What everything stands on."""
