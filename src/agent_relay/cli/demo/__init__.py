"""The demonstration: real agents on a real daemon, a crash in the middle, and a count at the end.

`stage` is the place and the daemon's process, `players` are the agents, `ledger` counts, `script` is what happens,
`show` is how it looks.
"""
