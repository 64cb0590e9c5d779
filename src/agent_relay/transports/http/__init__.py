"""The HTTP API: one table of routes, from which the server and the OpenAPI description are both made."""
