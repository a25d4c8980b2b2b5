"""The guard against redundant reads for agents that cockpit does not run."""
