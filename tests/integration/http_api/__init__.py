"""The HTTP API of a real daemon."""
