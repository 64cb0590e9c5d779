"""Channels: which there are, and who is in them."""

from __future__ import annotations

from agent_relay.protocol.names import CHANNEL_MARK, check_channel
from agent_relay.transports.http.api import Api
from agent_relay.transports.http.bodies import MemberBody, TopicLineBody
from agent_relay.transports.http.route import Call, Handler, Route
from agent_relay.transports.http.views import ChannelList, ChannelView, Membership, TopicLine


async def list_channels(api: Api, call: Call) -> ChannelList:
    del call
    found = await api.service.channels()
    return ChannelList(
        [ChannelView(each.name, list(each.members), each.messages, each.last_at, each.topic_line) for each in found]
    )


def changer(command: str) -> Handler:
    async def change(api: Api, call: Call) -> Membership:
        channel = _find_channel(call)
        at_leisure = call.body.at_leisure if command == "join" else None
        agent = await api.service.change_membership(command, channel, call.body.agent, at_leisure, call.caller)
        return Membership(channel, agent)

    return change


async def set_topic_line(api: Api, call: Call) -> TopicLine:
    return TopicLine(await api.service.set_topic_line(_find_channel(call), call.body.text, call.caller), call.body.text)


def _find_channel(call: Call) -> str:
    channel = CHANNEL_MARK + call.names["channel"].removeprefix(CHANNEL_MARK)
    check_channel(channel)
    return channel


_TAG = "channels"
_ALL = "/api/v1/channels"
_FAILS = (404, 409, 429, 503)
_CHANGES = {
    "join": "Let an agent join the channel. The first one makes it.",
    "leave": "Let an agent leave the channel.",
}
_WHICH = "The channel's `#` may be left out of the path (`/api/v1/channels/dev/join`); written, it is `%23`."
ROUTES = (
    Route("GET", _ALL, list_channels, "Every channel with its members.", _TAG, ChannelList, errors=(503,)),
    *(
        Route("POST", f"{_ALL}/{{channel}}/{command}", changer(command), summary, _TAG, Membership, body=MemberBody,
              needs_body=False, errors=_FAILS, right="control", takes_key=True, description=_WHICH)
        for command, summary in _CHANGES.items()
    ),
    Route("POST", f"{_ALL}/{{channel}}/topic", set_topic_line, "Say what the channel is for, in one line.", _TAG, TopicLine,
          body=TopicLineBody, errors=_FAILS, right="control", takes_key=True, description=_WHICH),
)  # fmt: skip
