"""Many daemons, one relay: the shared log, the seat, and the links between hosts. Imported only with `--cluster`."""
