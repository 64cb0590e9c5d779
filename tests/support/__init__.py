"""Parts that only our own tests need: the core over a store that waits or fails on demand, and drivers for any store."""
