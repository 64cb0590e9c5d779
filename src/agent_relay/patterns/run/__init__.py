"""Patterns declared in a file: what it says (`document`, `schema`, `plan`), its references (`references`), how it is carried out
(`steps`, `runner`), and what is kept of it for the next attempt (`journal`)."""
