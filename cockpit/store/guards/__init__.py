"""Guards of the user and of projects that the user approved."""
