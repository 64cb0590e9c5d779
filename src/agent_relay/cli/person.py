"""The person at this command line: the name that what they send is from, and where "you" stands for it."""

from __future__ import annotations

from functools import cache

from agent_relay.protocol.names import OWN_PREFIX, fold_name, spare_names

YOU = "you"


@cache
def person() -> str:
    from agent_relay.daemon.system import owner_name

    return owner_name()


def is_you(name: str) -> bool:
    """Also the names that stand in for yours, and those that earlier versions sent under for you."""
    mine = {*spare_names(person()), OWN_PREFIX + person(), "http"}
    return fold_name(name) in {fold_name(each) for each in mine}


def show_name(name: str) -> str:
    return YOU if is_you(name) else name
