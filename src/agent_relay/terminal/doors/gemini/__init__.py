"""Gemini CLI: its hooks."""
