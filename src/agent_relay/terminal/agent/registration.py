"""Joining the relay under a name: the one that was asked for, or a readable one that is free."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

from agent_relay.protocol.errors import ErrorCode, RelayError
from agent_relay.protocol.names import fold_name
from agent_relay.protocol.retry import RetryPolicy
from agent_relay.sdk.backoff import Backoff
from agent_relay.sdk.client import RelayClient

# A daemon that is restarted should be found again soon; the default waits up to half a minute.
RECONNECT = Backoff(RetryPolicy(base_ms=100, cap_ms=2_000, jitter=0.15))

NAMES = (
    "Ada", "Alan", "Amber", "Basil", "Bea", "Carlo", "Clara", "Dana", "Edgar", "Elsa", "Emil", "Fay", "Felix", "Flora",
    "Gala", "Grace", "Hugo", "Ida", "Igor", "Iris", "Ivo", "Jade", "Juno", "Kai", "Kira", "Lars", "Lena", "Leo", "Linus",
    "Luca", "Mae", "Marco", "Mina", "Nadia", "Nico", "Nora", "Olga", "Omar", "Otto", "Pia", "Quinn", "Ravi", "Rosa", "Ruth",
    "Sami", "Selma", "Tara", "Theo", "Uma", "Vera", "Viktor", "Wanda", "Xenia", "Yara", "Zeno", "Zoe",
)  # fmt: skip

MakeClient = Callable[[str], RelayClient]


async def join(make_client: MakeClient, wanted: str | None, known: list[str]) -> RelayClient:
    """Connected. `known`: names of agents the relay has, which are not taken unless they were asked for."""
    for name in [wanted] if wanted else free_names(known):
        client = make_client(name)
        try:
            await client.connect()
        except RelayError as error:
            await client.close(0)
            if wanted or not is_name_in_use(error):
                raise
        else:
            return client
    raise AssertionError


def free_names(known: list[str], draw: random.Random | None = None) -> Iterator[str]:
    """Without end: names as they are, then with numbers."""
    taken = {fold_name(name) for name in known}
    names = list(NAMES)
    (draw or random.Random()).shuffle(names)
    number = 1
    while True:
        for name in names:
            candidate = name if number == 1 else f"{name}{number}"
            if fold_name(candidate) not in taken:
                yield candidate
        number += 1


def is_name_in_use(error: RelayError) -> bool:
    return error.code is ErrorCode.PERMISSION_DENIED and error.details.get("reason") == "name_in_use"
