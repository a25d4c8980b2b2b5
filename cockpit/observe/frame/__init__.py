"""The frame of a session's first wave: where the task is."""
