"""Paths, programs, shell syntax, ``gh``, tokens: everything that touches the outside, checked."""
