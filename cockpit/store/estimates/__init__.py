"""Estimates of sessions and tasks, and what they took in the end."""
