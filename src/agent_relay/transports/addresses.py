"""Who counts as one: a person has many addresses, and a limit for each of them would be none."""

from __future__ import annotations

import ipaddress

LOOPBACK = "loopback"
_IPV6_NETWORK = 64  # bits; the rest a machine chooses as it likes


def neighbourhood(address: str) -> str:
    """What limits are counted by: all of this machine, one IPv4 address, or one IPv6 network."""
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(found, ipaddress.IPv6Address):
        if found.ipv4_mapped is None:
            return LOOPBACK if found.is_loopback else str(ipaddress.ip_network((found, _IPV6_NETWORK), strict=False))
        found = found.ipv4_mapped
    return LOOPBACK if found.is_loopback else str(found)
