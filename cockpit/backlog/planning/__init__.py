"""Turning a written plan into epics, stories, tasks and dependencies, approved as a whole."""
