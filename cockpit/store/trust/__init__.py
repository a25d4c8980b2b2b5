"""Learned trust as rows: the user's decisions by shape, and the rules that came of them."""
