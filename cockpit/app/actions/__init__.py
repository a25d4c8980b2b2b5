"""The actions of the user: each with its title, keys, condition and function."""
