"""Doors: the ways in that CLIs offer, to hand them messages, hear what they do and answer what they ask.

`door` is the port that the wrapper knows. Each CLI has a folder: how it is started (`launch`), what it writes down (`record`,
`sessions`), what it asks (`requests`), and its doors. No CLI's module imports another's; all use the parts beside this file.
"""
