"""Typed events: their types and encoding, filters, and the feed that replays and then follows them.

Nothing here waits, reads a clock or touches a file. Both sides of a connection share it.
"""
