"""The ways for bytes to come in and go out. What they mean is the relay's business."""
