"""Tools that cockpit does not bring: which are approved, and which a session was offered."""
