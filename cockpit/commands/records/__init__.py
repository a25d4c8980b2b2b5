"""Commands that read, count and prune the records."""
