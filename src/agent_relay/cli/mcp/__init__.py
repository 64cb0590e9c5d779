"""Speakers of the MCP server: who calls its tools, as the environment says."""
