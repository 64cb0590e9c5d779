"""Chaos over several hosts: the agents, the history and the rules of `tests.chaos`, on three hosts and three NATS servers.

`python -m tests.cluster.chaos` runs it. See CONTRIBUTING.md, "Chaos".
"""
