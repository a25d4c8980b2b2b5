"""cockpit: one person in command of LLM coding agents, with two keys."""

__version__ = "0.1.0"
