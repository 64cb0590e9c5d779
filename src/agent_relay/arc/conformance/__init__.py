"""A suite that checks whether a relay keeps to the ARC protocol, whoever wrote it.

    agent-relay arc conformance --url ws://127.0.0.1:3888/arc

`cases` lists the rules, each a plain async function; `runner` runs them against an address; `report` shows what was found, by
section of the protocol; `pytest_cases` offers the same to pytest.
"""
