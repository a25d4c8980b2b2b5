"""What a wave may know: facts, packets, profiles, pins and feedback."""
