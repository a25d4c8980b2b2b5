"""Decide: packets as prompts, model providers, the offline rules."""
