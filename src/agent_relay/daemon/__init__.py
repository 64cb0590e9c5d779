"""The process: configuration, composition, lifecycle. The only room that wires core, storage and transports together."""
