"""Agents of the relay in an editor that speaks the Agent Client Protocol: prompts are messages to them, and answers come back."""
