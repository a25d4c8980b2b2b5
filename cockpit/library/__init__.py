"""cockpit from a Python program: the loop without a screen or a command line."""
