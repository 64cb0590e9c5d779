"""Errors that the ARC clients raise.

ArcError
├── ArcRefused    the relay refused a request over HTTP, or the connection before the upgrade
├── ArcRejected   the relay answered a frame with an error
├── ArcClosed     the connection is gone and will not come back by itself
└── ArcTimeout    no answer came in time; also a TimeoutError

`code` is the relay's own word (`agent_id_taken`, `rate_limit`, `invalid_message`, …) where it gave one.
"""

from __future__ import annotations


class ArcError(Exception):
    code = "error"

    def __init__(self, message: str, *, code: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.code = code or self.code


class ArcRefused(ArcError):  # noqa: N818 - named by the condition
    code = "refused"

    def __init__(self, message: str, *, code: str = "", status: int = 0, retry_after_s: float | None = None) -> None:
        super().__init__(message, code=code)
        self.status = status
        self.retry_after_s = retry_after_s


class ArcRejected(ArcError):  # noqa: N818 - named by the condition
    code = "rejected"


class ArcClosed(ArcError):  # noqa: N818 - named by the condition
    """`close_code` is the WebSocket's, 0 where there was none."""

    code = "closed"

    def __init__(
        self, message: str, *, code: str = "", close_code: int = 0, final: bool = False, retry_after_s: float | None = None
    ) -> None:
        super().__init__(message, code=code)
        self.close_code = close_code
        self.final = final
        self.retry_after_s = retry_after_s


class ArcTimeout(ArcError, TimeoutError):  # noqa: N818 - named by the condition
    code = "timeout"
