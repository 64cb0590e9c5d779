"""The console of an ACP agent: a program in a terminal that runs an agent without a screen, shows what it does, and takes input.

It speaks the Agent Client Protocol with the agent, keeps its prompts in order, and is the other end of the door `doors.acp`.
"""
