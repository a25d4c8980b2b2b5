"""Commands that set a project up and check it."""
