"""Models without a provider: the rule-based reviewer and scripted scenarios."""
