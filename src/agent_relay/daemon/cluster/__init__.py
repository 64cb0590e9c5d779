"""A daemon of a cluster, put together: the process of a host, the seat inside it, and the commands that look at the engine."""
