"""What a project brings, and what of it is trusted: older state in its checkout, and its own files."""
