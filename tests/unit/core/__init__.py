"""The core, module by module: no loop, no socket, no file; a clock that moves when the test says so."""
