"""Recordings of terminals: written, replayed, and used to describe a program."""
