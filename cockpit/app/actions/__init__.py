"""What the user can do: each action with its title, keys, condition and function."""
