"""Profile changes: parsed, guarded, previewed and applied."""
