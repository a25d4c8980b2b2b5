"""Estimates in the loop: made when a session begins, revised after its waves, learned from at its end."""
