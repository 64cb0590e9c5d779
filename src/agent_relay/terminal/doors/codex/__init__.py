"""Codex: its app-server, its queue and its hooks."""
