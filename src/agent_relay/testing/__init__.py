"""Parts for testing the relay and what is built on it: suites any implementation of a port can be held to."""
