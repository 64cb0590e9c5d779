"""A message by its id, or by the eight digits that stand for it where people and agents are shown it: `[3f9c2a11]`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from agent_relay.sdk.locate import Place
    from agent_relay.sdk.views import MessageView

MessageId = Annotated[
    str, typer.Argument(metavar="ID", help="The message's id, or the eight digits that send, history and inbox show.")
]


def ask_for_message(place: Place, wanted: str) -> MessageView:
    from agent_relay.cli.link import observe, run

    async def ask() -> MessageView:
        async with observe(place) as relay:
            return await relay.message(wanted)

    return run(ask())
