"""Claude Code driven over its own standard streams: it asks cockpit for each permission."""
