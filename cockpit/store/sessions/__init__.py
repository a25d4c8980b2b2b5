"""Sessions and what they consist of: waves, messages, plans, proposals, events, the outbox."""
