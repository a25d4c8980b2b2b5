"""What masking looks for: the shapes of the tokens of many services, and secrets in other forms."""
