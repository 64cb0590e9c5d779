"""opencode: its HTTP server."""
