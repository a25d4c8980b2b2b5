"""Commands about packets, profiles and feedback."""
