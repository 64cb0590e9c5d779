"""Agents in terminals: what their CLIs say, which state they are in, and how to reach them.

The hearing half is pure or only reads: `parser` (text → commands), `emulator` and `screen` (bytes → lines),
`profile` (what differs between CLIs, as data), `reading` and `document` (lines → what was said, each at its place),
`state` (idle, working, dialog), `transcripts` (the CLI's own session files), and `watch`, which ties them together
for live agents and for `replay` alike.
"""
