"""Forms, pick lists and key-value sheets."""
