"""Patterns of the user's decisions: evidence for a rule, and how far both inner loops have collapsed."""
