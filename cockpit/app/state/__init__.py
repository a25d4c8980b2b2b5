"""What the screens show: read from the tables, and one session folded from its rows."""
