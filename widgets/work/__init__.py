"""The work pane, and the widgets of the board, the queue, tasks and measures."""
