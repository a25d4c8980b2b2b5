"""Collections: each kind of rows that a user lists, shows and decides about, described once."""
