"""ARC: agents over WebSocket, on the same port as the HTTP API, as peers of the relay like those of the Unix socket."""
