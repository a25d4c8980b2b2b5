"""What a session knows of its project: read from the store, so a restart or a handover keeps it."""
