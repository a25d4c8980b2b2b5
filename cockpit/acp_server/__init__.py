"""The Agent Client Protocol: cockpit's own agent for editors."""
