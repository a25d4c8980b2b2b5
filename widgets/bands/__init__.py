"""The context pane: bands, facts, profile changes."""
