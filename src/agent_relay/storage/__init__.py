"""Stores of messages: `sqlite`, `postgres`, and `memory` for tests and throw-away runs. All implement `ports.store`."""
