"""Marks: what the owner has seen and put aside."""

from __future__ import annotations

from agent_relay.transports.http.api import Api
from agent_relay.transports.http.bodies import NewMarks
from agent_relay.transports.http.marks import Mark
from agent_relay.transports.http.route import Call, Route
from agent_relay.transports.http.views import MarkList, MarkView, build


async def list_marks(api: Api, call: Call) -> MarkList:
    del call
    return MarkList({name: build(MarkView, mark) for name, mark in api.marks.all().items()}, api.marks.version)


async def change_marks(api: Api, call: Call) -> MarkList:
    asked: NewMarks = call.body
    api.marks.change({name: Mark(each.at, each.until) for name, each in asked.set.items()}, asked.remove)
    return await list_marks(api, call)


_TAG = "server"
_MARKS = "/api/v1/marks"
ROUTES = (
    Route("GET", _MARKS, list_marks, "What you have seen and put aside.", _TAG, MarkList),
    Route("POST", _MARKS, change_marks, "Say what you have seen or put aside.", _TAG, MarkList, body=NewMarks, errors=(503,),
          description="Marks are names with a moment, the same in each of your browsers: of two of one name the later counts. "
          "The oldest are forgotten when there are more than 5,000."),
)  # fmt: skip
