"""The session files that CLIs keep of themselves: what was said, verbatim, with ids, usage and tool calls.

`records` is what comes out of them, `claude`, `codex` and `gemini` read one record each, `find` knows where the files
are, `tail` reads a growing file exactly once, `follow` keeps at it while an agent lives.
"""
