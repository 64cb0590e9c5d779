"""The wire contract, kept at an edge: clients of a host without the seat see what clients of a daemon alone see."""
