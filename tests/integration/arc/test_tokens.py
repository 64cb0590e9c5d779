"""Tokens: how long they are good, how they are renewed, and how they end."""

from __future__ import annotations

from collections.abc import Callable

from tests.integration.arc.stage import FREE, Member, Stage


def bearer(token: str) -> dict[str, str]:
    return {"authorization": f"Bearer {token}"}


def test_a_refreshed_token_is_new_and_the_old_one_is_good_for_a_while(stage: Stage) -> None:
    member = stage.register()
    with stage.connect(member) as client:
        answer = stage.http.post("/token/refresh", headers=bearer(member.token))
        assert answer.status_code == 200
        fresh = Member(answer.json()["agent_id"], answer.json()["token"])
        assert fresh.id == member.id
        assert fresh.token != member.token
        assert client.ask("ping")["type"] == "pong"
    for one in (member, fresh):
        with stage.connect(one):
            pass
    assert stage.http.post("/token/refresh", headers=bearer(member.token)).status_code == 401  # it only connects
    assert stage.http.request("DELETE", "/register", headers=bearer(member.token)).status_code == 401
    again = stage.http.post("/token/refresh", headers=bearer(fresh.token)).json()["token"]
    assert stage.try_upgrade(Authorization=f"Bearer {member.token}")[0] == 401  # two behind
    assert stage.try_upgrade(Authorization=f"Bearer {again}")[0] == 101


def test_only_the_agents_own_token_opens_its_registration(stage: Stage) -> None:
    for method, path in (("POST", "/token/refresh"), ("DELETE", "/register")):
        answer = stage.http.request(method, path, headers=bearer("tok_nobodys"))
        assert (answer.status_code, answer.json()["error"]) == (401, "unauthorized")
        assert stage.http.request(method, path).status_code == 401


def test_who_signs_off_is_disconnected_and_cannot_be_written_to(stage: Stage) -> None:
    member = stage.register()
    with stage.connect() as alice, stage.connect(member) as client:
        assert stage.http.request("DELETE", "/register", headers=bearer(member.token)).status_code == 200
        assert client.next()["error"] == "token_expired"
        assert client.expect_close() == 4001
        alice.send([member.id], "into the void")
        assert alice.ask("ping")["type"] == "pong"
    assert stage.try_upgrade(Authorization=f"Bearer {member.token}")[0] == 401
    assert stage.http.request("DELETE", "/register", headers=bearer(member.token)).status_code == 401


def test_an_expired_token_ends_the_connection(make_stage: Callable[..., Stage]) -> None:
    stage = make_stage(*FREE, "--token-ttl=3s")
    answer = stage.http.post("/register", json={"agent_id": "brief-1"}).json()
    assert answer["expires_at"] > 0
    member = Member(answer["agent_id"], answer["token"])
    with stage.connect(member) as client:
        refused = client.next()
        assert (refused["type"], refused["error"]) == ("error", "token_expired")
        assert client.expect_close() == 4001
    status, said = stage.try_upgrade(Authorization=f"Bearer {member.token}")
    assert (status, said["error"]) == (401, "token_expired")
    assert stage.http.post("/token/refresh", headers=bearer(member.token)).status_code == 401


def test_an_administrator_sees_and_revokes(stage: Stage) -> None:
    member = stage.register()
    with stage.connect(member) as client:
        client.ask("subscribe", {"agents": ["zoe-1"]})
        listed = {one["agent_id"]: one for one in stage.http.get("/api/v1/arc/agents").json()["agents"]}
        mine = listed[member.id]
        assert (mine["connected"], mine["subscriptions"], mine["revoked_at"]) == (True, ["zoe-1"], None)
        answer = stage.http.delete(f"/api/v1/arc/agents/{member.id}")
        assert (answer.status_code, answer.json()) == (200, {"agent_id": member.id, "revoked": True})
        assert client.expect_close() == 4001
    assert stage.http.delete(f"/api/v1/arc/agents/{member.id}").status_code == 409
    assert stage.http.delete("/api/v1/arc/agents/never-there").status_code == 404
    assert member.token not in stage.http.get("/api/v1/arc/agents").text
