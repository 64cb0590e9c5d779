"""The wrapper of one agent: it starts the program, joins the relay, and connects all other parts."""
