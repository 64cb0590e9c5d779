"""The demonstration: three scripted agents in real terminals play a game over a relay of their own, and it is checked.

`game` has their scripts, `scripted_agent` is the program that plays one, on its `agent_screen`, `cast` runs it under
`agent-relay wrap`, `stage` is the place and the daemon's process, `view` shows the terminals side by side, `script` is what
happens, `reports` and `evidence` are what is known at the end, `transcript` and `summary` are how it reads, `show` is the whole.
"""
