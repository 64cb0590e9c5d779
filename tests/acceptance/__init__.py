"""The acceptance lists of the first version's specification: `boxes.toml` says which tests prove each point."""
