"""The terminal under the screen: its driver, its output, its loss, and what it can draw."""
