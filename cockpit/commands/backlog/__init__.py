"""Commands about tasks, stories, epics, plans, work in progress and handoffs."""
