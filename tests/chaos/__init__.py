"""Chaos: real daemons under load and faults, watched by clients and a checker that share no code with the project.

`python -m tests.chaos` runs it, `rules.py` says what it holds a daemon to. See CONTRIBUTING.md, "Chaos".
"""
