"""Tools that a task lacks: its agent asks, one grows with the user's approval, and the task goes on."""
