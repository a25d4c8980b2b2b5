"""The models without a network: the offline rules, and scripted scenarios for demos and tests."""
