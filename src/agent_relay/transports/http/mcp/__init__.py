"""MCP over HTTP: the tools of the owner, in requests of JSON-RPC at `/mcp`, over the same service as every other route."""
