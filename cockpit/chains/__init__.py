"""Chains: batches of tasks, worker processes, supervision, reports."""
