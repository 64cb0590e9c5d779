"""The places a program can run in, behind the port `Terminal`: tmux and a PTY of our own. `choice` picks one.

Pure parts: `tmux_control` (the control mode protocol), `modes`, `paste` and `keyboard` (what passes through a PTY). The rest
talks to tmux, to processes and to terminals.
"""
