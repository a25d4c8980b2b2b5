"""The proposal pane: requests, diffs, fields."""
