"""A bridge joins agents of one project to a remote ARC relay.

Each agent that was opted in (`Alice=alice-acme`) is on the remote relay under an id of its own, and each remote agent it talks
with stands in the project as an agent too. `plan` says who is joined, `bridge` runs it, `incoming` and `outgoing` are its two
directions, `journal` is what it remembers over restarts.
"""
