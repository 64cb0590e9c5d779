"""Sources of connections and attempts: limits hold for a source, not for every address it can take on.

Any program of a machine can come from any address of 127.0.0.0/8, and whoever has one IPv6 address has 2^64 of them.
"""

from __future__ import annotations

import functools
import ipaddress

LOOPBACK = "loopback"
_IPV6_NETWORK_BITS = 64  # what a provider gives to one customer at the least


@functools.lru_cache(maxsize=4_096)
def source_of(address: str) -> str:
    """The key that limits are counted under. `host/address` is an address of another host of the cluster. What is no address
    stands for itself."""
    host, slash, there = address.partition("/")
    if slash:
        return f"{host}/{source_of(there)}"
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(found, ipaddress.IPv6Address):
        mapped = found.ipv4_mapped
        if mapped is None:
            network = ipaddress.ip_network((int(found), _IPV6_NETWORK_BITS), strict=False)
            return LOOPBACK if found.is_loopback else str(network)
        found = mapped
    return LOOPBACK if found.is_loopback else str(found)
