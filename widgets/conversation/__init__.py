"""The conversation pane: turns, Markdown, scrollback."""
