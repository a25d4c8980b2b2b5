"""Commands of agents that only read the project."""
