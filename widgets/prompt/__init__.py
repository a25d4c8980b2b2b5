"""The prompt and its completions."""
