"""Commands that only read, and the scope items that read the same."""
