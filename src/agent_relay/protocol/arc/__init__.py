"""ARC, the protocol of agents over WebSocket: ids, codes, envelopes, and how they become messages of the relay and back."""
