"""Outside runners: a role's session done by an agent of somebody else's, as a program of its own."""
