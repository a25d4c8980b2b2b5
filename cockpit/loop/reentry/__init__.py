"""Re-entry: an action that lacks context is kept, and the session goes back to Orient for it."""
