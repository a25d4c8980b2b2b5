"""The Agent Client Protocol: cockpit's own agent for Zed, JetBrains, Toad and any other client."""
