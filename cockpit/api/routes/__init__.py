"""The routes of the HTTP API, a module for each topic. Each calls one service in one transaction."""
