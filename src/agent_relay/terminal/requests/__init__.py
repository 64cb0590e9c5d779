"""Requests to a person: permissions and questions of the agent, and the answers given on its screen."""
