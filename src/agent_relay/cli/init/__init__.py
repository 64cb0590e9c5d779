"""`init`: what a CLI needs to know of the relay, written into its own configuration and taken out again.

Files are edited as text, by inserting: whatever a person wrote stays as it is, comments and odd formatting included.
"""
