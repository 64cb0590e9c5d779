"""A message by the eight digits that an agent is shown."""

from __future__ import annotations

import asyncio
import json
from itertools import count
from typing import Any

import pytest

from agent_relay.cli.failures import Failure
from agent_relay.cli.find_message import SEARCHED_MESSAGES, find_message
from agent_relay.cli.main import main
from agent_relay.protocol.errors import RelayError
from agent_relay.sdk.views import HistoryPage, MessageView
from agent_relay.terminal.message_text import short_id
from agent_relay.testing.daemon import DaemonProcess


class Shelf:
    """Messages of which there are more than a daemon could be given in a test, newest first."""

    def __init__(self, *ids: str, older: int = 0) -> None:
        self.ids = [*ids, *(f"old_{number}" for number in range(older))]
        self.asked = 0

    async def history(self, *, limit: int, cursor: str | None) -> HistoryPage:
        self.asked += limit
        start = int(cursor or 0)
        end = start + limit
        messages: list[dict[str, Any]] = [
            {"message_id": id_, "from": "Al\x1bice", "to": "Bob", "ts": 1} for id_ in self.ids[start:end]
        ]
        return HistoryPage(messages, str(end) if end < len(self.ids) else None)

    async def message(self, message_id: str) -> MessageView:
        return MessageView({"message_id": message_id}, [])

    def find(self, wanted: str) -> str:
        return str(asyncio.run(find_message(self, wanted)).message["message_id"])


def two_of_the_same_digits() -> tuple[str, str]:
    seen: dict[str, str] = {}
    for number in count():
        id_ = f"msg_{number}"
        other = seen.setdefault(short_id(id_), id_)
        if other != id_:
            return other, id_
    raise AssertionError


@pytest.mark.parametrize("spelling", ["{}", "[{}]", " [{}]", "[{}"])
def test_by_its_digits_however_they_were_copied(spelling: str) -> None:
    shelf = Shelf("msg_1", "msg_2", older=1_200)
    assert shelf.find(spelling.format(short_id("msg_2"))) == "msg_2"
    assert shelf.find(spelling.format(short_id("msg_2").upper())) == "msg_2"
    assert shelf.find(short_id("old_1199")) == "old_1199"


@pytest.mark.parametrize("id_", ["msg_01KA2V8Z5T7Q4M9C3XKJ0000A1", "abc1234", "abc123456", "xbc12345", ""])
def test_anything_else_is_an_id(id_: str) -> None:
    shelf = Shelf("msg_1")
    assert shelf.find(id_) == id_
    assert shelf.asked == 0


def test_several_are_named() -> None:
    one, other = two_of_the_same_digits()
    with pytest.raises(Failure) as failure:
        Shelf(one, other, older=10).find(short_id(one))
    assert "2 messages" in failure.value.sentence
    assert f"{one} (" in failure.value.sentence
    assert f"{other} (" in failure.value.sentence
    assert "\x1b" not in failure.value.sentence


def test_none_is_said_and_the_search_has_an_end() -> None:
    shelf = Shelf(older=3 * SEARCHED_MESSAGES)
    last = f"old_{SEARCHED_MESSAGES - 1}"
    assert shelf.find(short_id(last)) == last
    shelf.asked = 0
    with pytest.raises(Failure, match="newest 10,000"):
        shelf.find(short_id(f"old_{SEARCHED_MESSAGES}"))
    assert shelf.asked == SEARCHED_MESSAGES
    with pytest.raises(Failure, match="newest"):
        Shelf().find("00000000")


def test_read_and_explain_take_them(capsys: pytest.CaptureFixture[str]) -> None:
    with DaemonProcess() as daemon:
        with daemon.connect_sync("Alice") as alice, daemon.connect_sync("Bob"):
            sent = [alice.send("Bob", f"body {number}").message_id for number in range(3)]
        place = ["--socket", daemon.socket]
        assert main(["read", short_id(sent[1]), "--json", *place]) == 0
        assert json.loads(capsys.readouterr().out)["message_id"] == sent[1]
        assert main(["explain", f"[{short_id(sent[2])}]", *place]) == 0
        assert sent[2] in capsys.readouterr().out
        assert main(["read", "00000000", *place]) == 1
        assert "[00000000]" in capsys.readouterr().err
        assert main(["read", "msg_01KA2V8Z5T7Q4M9C3XKJ0000A1", *place]) == 1
        assert "There is no message" in capsys.readouterr().err

        async def ask() -> None:
            async with daemon.connect(observer=True) as relay:
                with pytest.raises(RelayError):
                    await find_message(relay, "msg_01KA2V8Z5T7Q4M9C3XKJ0000A1")

        asyncio.run(ask())
