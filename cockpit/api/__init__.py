"""RFC-003 §12.1's routes over HTTP, for programs that hold a token. Source: design of the faces."""
