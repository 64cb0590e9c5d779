"""The client's side of the relay: connect, send, receive, and come back by itself when the connection is lost.

`client.py` is what programs use, `sync.py` is its blocking twin; the other modules are their parts. Nothing here
imports the server's side.
"""
