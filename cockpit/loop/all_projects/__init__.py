"""All projects of this user: their stores, read only, and what waits in each."""
