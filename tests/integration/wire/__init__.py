"""The daemon as a process, spoken to in raw frames: what the wire contract promises, section by section."""
