"""What the daemon costs and how fast it is, measured from outside and next to peers that do the same work.

`python -m bench` runs everything; `bench/README.md` says what is measured and how. Nothing in here imports the
product: the load generator speaks the bytes of the wire contract, so a mistake in the product cannot hide itself.
"""
