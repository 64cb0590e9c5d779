"""The command line: `agent-relay`, `relay`, `python -P -m agent_relay`.

`main.py` is the entry point, `app.py` lists the commands, `commands/` has one file each, `demo/` is the demonstration. The rest
is what they share: where the daemon is (`options`, `process`, `link`), and how things look (`screen`, `formats`,
`safe_text`, `message_view`).
"""
