"""Claude Code: its inbox socket and its hooks."""
