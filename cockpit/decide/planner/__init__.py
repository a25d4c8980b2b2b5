"""The planner: how many waves, tokens and dollars a task takes, from tasks of its kind. Pure."""
