"""Stores of messages: `memory` for tests and throw-away runs, `sqlite` for everything else. Both implement `ports.store`."""
