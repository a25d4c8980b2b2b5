"""The HTTP API for holders of tokens, and the screen in a browser."""
