"""The HTTP API: orientation profiles, packets and feedback, for programs that have a token."""
