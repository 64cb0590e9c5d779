"""The transports over real sockets and real loops."""
