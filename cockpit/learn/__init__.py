"""Learn: feedback on waves, capture of work in progress."""
