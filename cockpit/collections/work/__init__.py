"""Collections of what is under way: sessions, proposals, tasks, chains and handoffs."""
