"""Tools that cockpit does not bring, in sessions: which are usable, offered to whom, called how."""
