"""Errors, clock and ids, canonical JSON, secret masking, project paths."""
