"""From the user's words to a task: its type, its target and its first message."""
