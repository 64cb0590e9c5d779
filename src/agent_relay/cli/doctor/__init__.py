"""`agent-relay doctor`: what is there, what is not, and how to mend it. One module for each kind of thing."""
