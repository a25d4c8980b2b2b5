"""The proposals pane: context requests, diffs, fields."""
