"""What is known of external agents, as data."""
