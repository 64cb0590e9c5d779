"""The demonstration of several hosts, `make demo-cluster`: three hosts, three NATS servers, agents in real terminals on each.

`counting` has the agents' scripts, `show` is what happens, `__main__` runs it.
"""
