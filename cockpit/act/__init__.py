"""Act: what the agent may do, shown before, done once, with a receipt."""
