"""cockpit: mission control for coding agents in the terminal."""

__version__ = "0.1.0"
