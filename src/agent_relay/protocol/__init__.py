"""The language of the wire: bytes and text in, values out.

Nothing in this room does I/O, reads a clock, draws a random number or knows asyncio, so every rule of the
protocol can be tested without a socket. Both sides of a connection use it: the daemon's core and the SDK.
"""
