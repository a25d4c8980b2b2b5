"""Whether what was read is still what is there."""
