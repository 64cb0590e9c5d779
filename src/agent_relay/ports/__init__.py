"""Interfaces only: what the core asks of the world. The rooms that implement them never import each other."""
