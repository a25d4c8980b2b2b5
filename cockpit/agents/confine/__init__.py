"""External agents in the sandbox: their home, their gate to servers and to ours."""
