"""The relay itself: who is who, who gets what, what is still owed to whom.

Nothing in this room awaits, reads a clock or touches a file. It is told "this arrived", "that is durable", "the clock
says", and calls its ports. So the same code runs under the daemon and under the simulation.
"""
