"""The hashes of the page's keys, in a file that only the daemon's user can read."""

from __future__ import annotations

import logging
from collections.abc import Mapping

import msgspec

from agent_relay.private_files import replace_private

log = logging.getLogger(__name__)


class PageKeyFile:
    """`ports.KeyShelf`. Without the file, or where it cannot be read, every browser has to come in anew: no harm is done."""

    def __init__(self, path: str) -> None:
        self._path = path

    def load(self) -> dict[str, int]:
        try:
            with open(self._path, "rb") as file:
                return msgspec.json.decode(file.read(), type=dict[str, int])
        except FileNotFoundError:
            return {}
        except (OSError, msgspec.MsgspecError, UnicodeDecodeError) as error:
            log.warning("page_keys_unreadable", extra={"relay_fields": {"error": str(error)}})
            return {}

    def save(self, keys: Mapping[str, int]) -> None:
        try:
            replace_private(self._path, msgspec.json.encode(keys))
        except OSError as error:
            log.warning("page_keys_not_saved", extra={"relay_fields": {"error": str(error)}})
