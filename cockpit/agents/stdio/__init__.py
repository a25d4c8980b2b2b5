"""Agents that are driven over their standard streams: they ask cockpit for each permission."""
