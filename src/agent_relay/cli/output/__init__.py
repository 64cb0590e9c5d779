"""The output of commands: lines and tables on a screen, text of others made harmless, messages, agents, reasons."""
