"""Answers to whoever looks: who is there, what was said, what became of it."""
