"""The details of journal events: one record type for each event type, grouped by topic."""
