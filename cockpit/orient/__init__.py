"""Orient: scores, bands, the compiler of packets, profile changes, skills."""
