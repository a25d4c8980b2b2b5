"""What every module may use and that uses none of ours: errors, clock, canonical JSON, secrets, paths."""
