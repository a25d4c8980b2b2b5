"""Terminals: what is said to those of other machines."""
