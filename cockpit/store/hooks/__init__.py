"""Hook events of external agents, kept until they are ingested."""
