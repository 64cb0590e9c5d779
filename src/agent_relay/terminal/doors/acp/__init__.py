"""The door of an agent that speaks the Agent Client Protocol: it leads to the console that runs it (`terminal.acp`)."""
