"""The screen's views as a fold of journal rows."""
