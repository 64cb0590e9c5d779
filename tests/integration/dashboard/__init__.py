"""What the dashboard gets of the server, over a real daemon."""
