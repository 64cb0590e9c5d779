"""Agents that the daemon starts: who may ask for one, where it runs, and what becomes of it."""
