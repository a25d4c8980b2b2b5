"""One short process per hook event of an external agent."""
