"""A team that the owner confirmed: its rules, and its shadows."""
