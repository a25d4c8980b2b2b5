"""The work pane and the screens over the backlog."""
