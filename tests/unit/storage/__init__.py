"""The storage room, module by module."""
