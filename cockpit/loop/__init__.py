"""Sessions: phases, decisions, permissions, trust, and the runtime that every surface asks."""
