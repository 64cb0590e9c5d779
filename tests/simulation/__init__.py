"""The core under a seeded world: a network that drops, a store that fails, a clock that jumps, a daemon that is killed.

`python -m tests.simulation --seeds 5000` runs many worlds; `--seed N` replays one. Everything random comes from the
seed, so a failure is reproduced by its number.
"""
