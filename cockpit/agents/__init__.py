"""External agents: known ones, their sessions and runs, their streams, their sandbox."""
