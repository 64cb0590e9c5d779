"""Doors: how the CLIs that offer one take messages, tell what they do and are answered, one module a CLI.

Nothing here imports another CLI's module; what they share is in `hooks`, `launching` and `port`.
"""
