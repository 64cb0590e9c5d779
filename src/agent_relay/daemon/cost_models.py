"""The user's own prices, from `cost-models.json` in AGENT_RELAY_HOME.

A file that cannot be used costs nobody their report: the built-in prices are used, and a sentence says why.
"""

from __future__ import annotations

import os
from typing import NamedTuple

from agent_relay.events.prices import COST_MODELS_FILE, Prices, parse_prices

_MAX_BYTES = 4 * 1024 * 1024  # thousands of models; anything larger is some other file


class LoadedPrices(NamedTuple):
    prices: Prices
    path: str
    warning: str = ""


def load_prices(home: str) -> LoadedPrices:
    path = os.path.join(home, COST_MODELS_FILE)
    try:
        with open(path, "rb") as file:
            content = file.read(_MAX_BYTES + 1)
        if len(content) > _MAX_BYTES:
            raise ValueError(f"it is larger than {_MAX_BYTES} bytes")
        return LoadedPrices(Prices(parse_prices(content)), path)
    except (FileNotFoundError, NotADirectoryError):
        return LoadedPrices(Prices(), path)
    except (OSError, ValueError) as error:
        reason = (error.strerror or str(error)) if isinstance(error, OSError) else str(error)
        return LoadedPrices(Prices(), path, f"{path} is ignored, and the built-in prices are used: {reason.rstrip('.')}.")
