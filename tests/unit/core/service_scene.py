"""The service over a core in a test's hands: promises are kept, and turns begin and end, when the test says so."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

from agent_relay.core.service import Service
from agent_relay.protocol.errors import RelayError
from tests.support.harness import OWNER_TOKEN, UID, RelayHarness

T = TypeVar("T")


class Kept(Generic[T]):
    """`ports.Promise`, to be looked at."""

    def __init__(self) -> None:
        self._outcome: list[Any] = []
        self._callbacks: list[Callable[[Any], object]] = []

    def set_result(self, result: T) -> None:
        self._keep(result)

    def set_exception(self, exception: BaseException) -> None:
        self._keep(exception)

    def cancel(self) -> None:
        """Whoever asked has hung up."""
        self._keep(None)

    def _keep(self, outcome: Any) -> None:
        assert not self._outcome, "A promise is kept once."
        self._outcome.append(outcome)
        for callback in self._callbacks:
            callback(self)

    def done(self) -> bool:
        return bool(self._outcome)

    def add_done_callback(self, callback: Callable[[Any], object]) -> None:
        self._callbacks.append(callback)

    @property
    def result(self) -> T:
        assert self._outcome, "Nothing has come of it yet."
        found: T = self._outcome[0]
        if isinstance(found, BaseException):
            raise found
        return found

    @property
    def error(self) -> RelayError:
        assert self._outcome, "Nothing has come of it yet."
        assert isinstance(self._outcome[0], RelayError)
        return self._outcome[0]


class Turns:
    """`ports.Turns`."""

    def __init__(self) -> None:
        self.later: list[Callable[[], None]] = []

    def begin_turn(self) -> None: ...

    def run_later(self, callback: Callable[[], None]) -> None:
        self.later.append(callback)

    def promise(self) -> Kept[Any]:
        return Kept()


class Scene:
    def __init__(self, harness: RelayHarness | None = None, **limits: Any) -> None:
        self.relay = harness or RelayHarness(owner="Anna", **limits)
        self.turns = Turns()
        self.service = Service(self.relay.relay, self.turns, UID, OWNER_TOKEN)  # type: ignore[arg-type]

    def ask(self, call: Callable[[], Any]) -> Kept[Any]:
        """What was promised, when everything that follows at once has happened."""
        found: list[Kept[Any]] = []
        self.relay.turn(lambda: found.append(call()))
        self.settle()
        return found[0]

    def settle(self) -> None:
        while self.turns.later:
            callbacks, self.turns.later = self.turns.later, []
            for callback in callbacks:
                self.relay.turn(callback)

    def pass_time(self, ms: int) -> None:
        self.relay.advance(ms)
        self.relay.turn(self.service.clock_says)
        self.settle()
