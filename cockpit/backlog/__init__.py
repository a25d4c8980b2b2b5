"""The backlog as a service: epics, stories, tasks, dependencies, plans."""
