"""The output streams of external agents as typed events and journal rows."""
