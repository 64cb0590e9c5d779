"""Delivery of messages to an agent: their text, the choice between a door and typing, and the evidence that it has them."""
