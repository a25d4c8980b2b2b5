"""cockpit from a Python program: the loop without a screen."""
