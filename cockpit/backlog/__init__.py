"""Epics, stories, tasks, dependencies and plans, as one service."""
