"""Reflecting on a session: what it taught, as notes for later ones."""
