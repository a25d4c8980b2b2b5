"""The offline reviewer's rules: each a small function from a change to findings with places."""
