"""Guards: refuse a model's call before the user is asked."""
