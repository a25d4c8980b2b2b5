"""Chains: batches of tasks done by one worker process after another."""
