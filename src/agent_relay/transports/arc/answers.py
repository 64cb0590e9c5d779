"""Answers of the desk, as structs: the JSON has their names."""

from __future__ import annotations

from msgspec import UNSET, Struct, UnsetType


class Registered(Struct):
    agent_id: str
    token: str
    expires_at: int | UnsetType = UNSET  # where tokens expire


class Revoked(Struct):
    agent_id: str
    revoked: bool = True


class Freed(Struct):
    agent_id: str
    freed: bool = True


class Invitation(Struct):
    id: str
    agent_id: str | None
    uses_left: int
    made_at: int
    expires_at: int


class NewInvitation(Invitation):
    invite: str  # the code, shown this once


class InvitationList(Struct):
    invitations: list[Invitation]
    next_cursor: str | None = None


class Withdrawn(Struct):
    id: str
    withdrawn: bool = True


class ArcAgent(Struct):
    agent_id: str
    connected: bool
    registered_at: int
    expires_at: int | None
    revoked_at: int | None
    subscriptions: list[str]
    trusted: bool


class ArcAgentList(Struct):
    agents: list[ArcAgent]
    next_cursor: str | None = None
