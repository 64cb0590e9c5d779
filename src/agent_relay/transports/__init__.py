"""How bytes come in and go out. What they mean is the relay's business."""
