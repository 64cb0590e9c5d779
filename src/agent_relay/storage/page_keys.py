"""The hashes of the page's keys, in a file that only the daemon's user can read."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from contextlib import suppress

import msgspec

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
        temporary = f"{self._path}.{os.getpid()}.tmp"
        try:
            with os.fdopen(os.open(temporary, os.O_CREAT | os.O_WRONLY | os.O_TRUNC | os.O_CLOEXEC, 0o600), "wb") as file:
                file.write(msgspec.json.encode(keys))
            os.replace(temporary, self._path)
        except OSError as error:
            with suppress(OSError):
                os.unlink(temporary)
            log.warning("page_keys_not_saved", extra={"relay_fields": {"error": str(error)}})
