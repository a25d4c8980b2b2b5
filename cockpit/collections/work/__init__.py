"""Collections of what is under way: sessions, proposals, tasks and chains."""
