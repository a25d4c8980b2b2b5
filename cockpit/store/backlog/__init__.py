"""Epics, stories and tasks, their dependencies, work in progress, handoffs and the work queue."""
