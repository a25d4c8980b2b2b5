"""What passes without asking: one place that answers whether a rule of the user covers a request."""
