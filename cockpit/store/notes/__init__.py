"""Notes: what sessions taught, as the user keeps it."""
