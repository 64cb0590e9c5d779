"""Agents and invitations of an ARC relay: registered, listed, revoked; at the project's own daemon as whoever runs it."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from agent_relay.arc import registration
from agent_relay.arc.addresses import parse_address
from agent_relay.arc.errors import ArcRefused
from agent_relay.arc.http_calls import expect
from agent_relay.arc.token_file import TokenFile
from agent_relay.cli.arc.identity import find_admission, find_url, own_api_token, run_arc
from agent_relay.cli.failures import Failure
from agent_relay.cli.output.formats import count, format_time, now_ms
from agent_relay.cli.output.safe_text import clean_line
from agent_relay.cli.output.screen import Column, Screen
from agent_relay.sdk.locate import Place

_AGENTS = "/api/v1/arc/agents"
_INVITATIONS = "/api/v1/arc/invitations"


def register_agent(place: Place, url: str | None, agent_id: str | None, invite: str | None, *, as_json: bool) -> int:
    address = find_url(place, url)
    code, api_token = find_admission(place, url, invite)
    kept = TokenFile(place.state_dir)

    async def work() -> registration.Registration:
        kept.all()  # a file that cannot be used is said before the id is taken
        given = await registration.register(address, agent_id, invite=code, api_token=api_token)
        kept.keep(address, given.agent_id, given.token, own=url is None)
        return given

    given = run_arc(work())
    screen = Screen()
    if as_json:
        screen.json({"agent_id": given.agent_id, "token": given.token, "url": address, "kept_in": kept.path})
        return 0
    screen.line(("registered", "bold green"), "  ", (clean_line(given.agent_id), "bold"), f" at {clean_line(address)}")
    screen.line("token       ", clean_line(given.token), ("  shown only once", "dim"))
    screen.line("saved in    ", clean_line(kept.path))
    return 0


def list_agents(place: Place, url: str | None, *, as_json: bool) -> int:
    async def work() -> tuple[list[dict[str, Any]], str]:
        address = parse_address(find_url(place, url)).http_url
        kept = {one.agent_id for one in TokenFile(place.state_dir).find(address, own=url is None)}
        found = [] if url is not None else (await _administer(place, address, "GET", _AGENTS)).get("agents", [])
        known = {str(agent.get("agent_id")): agent for agent in found}
        return [
            {**known.get(name, {"agent_id": name}), "kept_here": name in kept} for name in sorted(known.keys() | kept)
        ], address

    agents, address = run_arc(work())
    screen = Screen()
    if as_json:
        screen.json({"agents": agents, "next_cursor": None})
        return 0
    if not agents:
        screen.line((f"No agents are registered at {clean_line(address)}. Register one with: agent-relay arc register", "dim"))
        return 0
    columns = (Column("agent"), Column("state"), Column("token here"), Column("subscriptions", optional=True))
    rows = [
        [clean_line(str(agent["agent_id"])), _state(agent), "yes" if agent["kept_here"] else "",
         clean_line(", ".join(map(str, agent.get("subscriptions") or ())))]
        for agent in agents
    ]  # fmt: skip
    screen.table(columns, rows)
    return 0


def _state(agent: dict[str, Any]) -> tuple[str, str]:
    if "connected" not in agent:
        return ("", "")
    if agent.get("revoked_at") is not None:
        return ("revoked", "red")
    return ("connected", "green") if agent["connected"] else ("offline", "dim")


def revoke_agent(place: Place, url: str | None, agent_id: str, *, as_json: bool) -> int:
    address = find_url(place, url)
    run_arc(_revoke(place, address, agent_id, own_daemon=url is None))
    return _say_done("revoked", agent_id, as_json=as_json)


async def _revoke(place: Place, address: str, agent_id: str, *, own_daemon: bool) -> None:
    file = TokenFile(place.state_dir)
    kept = file.find(address, agent_id, own=own_daemon)
    if not kept and not own_daemon:
        raise Failure(clean_line(f"No saved token of {agent_id} for {address}; only its holder can revoke it there."))
    if kept:
        try:
            await registration.unregister(address, kept[0].token)
        except ArcRefused as refused:
            if refused.status != 401:
                raise
            kept = []  # it was not valid any more, which says nothing about another token of the same agent
        file.forget(address, agent_id, own=own_daemon)
    if not kept and own_daemon:
        await _administer(place, address, "DELETE", f"{_AGENTS}/{quote(agent_id, safe='')}")


def free_agent(place: Place, agent_id: str, *, as_json: bool) -> int:
    _ask_daemon(place, "POST", f"{_AGENTS}/{quote(agent_id, safe='')}/free")
    return _say_done("freed", agent_id, as_json=as_json)


def _say_done(word: str, agent_id: str, *, as_json: bool) -> int:
    screen = Screen()
    if as_json:
        screen.json({"agent_id": agent_id, word: True})
    else:
        screen.line((word, "bold green"), "  ", clean_line(agent_id))
    return 0


# --- invitations --------------------------------------------------------------------------------------------------------


def make_invitation(place: Place, agent_id: str | None, uses: int, lasts_ms: int, *, as_json: bool) -> int:
    body = {"uses": uses, "lasts_ms": lasts_ms} | ({"agent_id": agent_id} if agent_id else {})
    made = _ask_daemon(place, "POST", _INVITATIONS, body)
    screen = Screen()
    if as_json:
        screen.json(made)
        return 0
    screen.line(("invitation", "bold green"), "  ", clean_line(str(made["invite"])), ("  shown only once", "dim"))
    screen.line("valid for   ", f"{agent_id or count(uses, 'agent')}, until {format_time(int(made['expires_at']), now_ms())}")
    command = " ".join(["agent-relay arc register", *([agent_id] if agent_id else []), f"--invite {made['invite']}"])
    screen.line("used with   ", clean_line(f"{command} --url {find_url(place, None)}"))
    return 0


def withdraw_invitation(place: Place, wanted: str, *, as_json: bool) -> int:
    gone = _ask_daemon(place, "DELETE", f"{_INVITATIONS}/{quote(wanted, safe='')}")
    screen = Screen()
    if as_json:
        screen.json(gone)
    else:
        screen.line(("withdrawn", "bold green"), "  ", clean_line(wanted))
    return 0


def list_invitations(place: Place, *, as_json: bool) -> int:
    found = _ask_daemon(place, "GET", _INVITATIONS)
    screen = Screen()
    if as_json:
        screen.json(found)
        return 0
    rows = [
        [str(one["id"]), str(one["agent_id"] or "any"), str(one["uses_left"]), format_time(int(one["expires_at"]), now_ms())]
        for one in found.get("invitations", [])
    ]
    if rows:
        screen.table((Column("id"), Column("for"), Column("uses left"), Column("until")), rows)
    else:
        screen.line(("There are no open invitations. Create one with: agent-relay arc invite", "dim"))
    return 0


# --- the daemon's own API -----------------------------------------------------------------------------------------------


def _ask_daemon(place: Place, method: str, path: str, body: Any = None) -> dict[str, Any]:
    return run_arc(_administer(place, find_url(place, None), method, path, body))


async def _administer(place: Place, address: str, method: str, path: str, body: Any = None) -> dict[str, Any]:
    """As whoever runs the daemon."""
    return await expect(address, method, path, body=body, token=own_api_token(place))
