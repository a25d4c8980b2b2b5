"""Commands that run and watch chains."""
