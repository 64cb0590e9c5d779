"""One command a file. Each is a function the command-line library calls, and prints through `cli.screen`."""
