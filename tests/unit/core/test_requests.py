"""What agents ask people: who may answer, who was first, and what everybody is told."""

from __future__ import annotations

from typing import Any

import pytest

from agent_relay.core.policy import Policy, Rule, Ruling
from agent_relay.core.requests import ANSWER_MS, FORGET_MS, MAX_OPEN, MAX_OVER, SHOWN_TEXT
from tests.support.harness import HarnessClient, RelayHarness

CONTROL = {"control": True}
ASKS = {"requestId": "p1", "description": "Run make?", "tool": "Bash", "command": "make", "options": ["Yes", "No"]}
LOOKS = {"requestId": "p1", "description": "Show the folder?", "tool": "Bash", "command": "ls", "isExact": True}
WONDERS = {"questionId": "q1", "question": "Which colour?", "options": ["red", "blue"], "defaultAnswer": "red"}


class Scene:
    """Bob's wrapper, and a person who watches."""

    def __init__(self, policy: Policy | None = None) -> None:
        self.relay = RelayHarness(policy=policy)
        self.bob = self.relay.connect("Bob", capabilities=CONTROL)
        self.person = self.relay.connect("Watcher", mode="observer")

    def report(self, kind: str, **fields: Any) -> None:
        self.bob.say("AGENT_EVENT", {"type": kind, "fields": fields})

    def answer(self, command: str, id_: str = "p1", *, by: HarnessClient | None = None, **more: Any) -> str:
        return (by or self.person).say("CONTROL", {"command": command, "agent": "bob", "id": id_, **more})

    def refusal(self, request: str, by: HarnessClient | None = None) -> dict[str, Any]:
        error = (by or self.person).payload("ERROR")
        assert (error["reply_to"], error["fatal"]) == (request, False)
        return error

    def open(self) -> list[dict[str, Any]]:
        self.person.say("LIST_AGENTS", {})
        agents = self.person.payload("AGENTS")["agents"]
        return [request for agent in agents for request in agent["requests"]]

    def changes(self) -> list[tuple[object, object]]:
        return [(note["change"], note["by"]) for note in self.relay.log.named("request")]


@pytest.fixture
def scene() -> Scene:
    return Scene()


# --- open requests ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("more", [{"description": "Run rm -rf build?"}, {"options": ["Yes", "Yes, and always rm"]}])
def test_what_destroys_is_critical_in_the_text_and_in_the_options_of_a_dialog(scene: Scene, more: dict[str, Any]) -> None:
    asked = {"requestId": "p1", "description": "Go on?", "tool": "", "options": ["Yes", "No"], "isExact": False} | more
    scene.report("permission.requested", **asked)
    assert [shown["risk"] for shown in scene.open()] == ["critical"]


def test_a_permission_is_shown_until_it_ends(scene: Scene) -> None:
    scene.report("permission.requested", **ASKS)
    (shown,) = scene.open()
    assert shown == {
        "kind": "permission", "id": "p1", "agent": "Bob", "at": scene.relay.wall_ms, "options": ["Yes", "No"], "tool": "Bash",
        "risk": shown["risk"], "can_allow": True, "command": "make", "file": None, "description": "Run make?", "shortened": False,
    }  # fmt: skip
    assert shown["risk"] in {"medium", "high"}
    scene.report("permission.resolved", requestId="p1", resolution="denied", resolvedBy="person")
    assert scene.open() == []
    assert scene.changes() == [("requested", ""), ("denied", "human")]


def test_a_question_is_shown_until_it_ends(scene: Scene) -> None:
    scene.report("question.requested", **WONDERS)
    assert scene.open() == [
        {
            "kind": "question", "id": "q1", "agent": "Bob", "at": scene.relay.wall_ms, "options": ["red", "blue"],
            "can_allow": True,
            "default_answer": "red", "question": "Which colour?", "shortened": False,
        }
    ]  # fmt: skip
    scene.report("question.resolved", questionId="q1", answer="blue", resolvedBy="person")
    assert scene.open() == []
    assert scene.changes() == [("requested", ""), ("answered", "human")]


def test_long_texts_are_shortened_in_the_list_and_it_says_so(scene: Scene) -> None:
    scene.report("permission.requested", **ASKS | {"command": "x" * (SHOWN_TEXT + 1)})
    (shown,) = scene.open()
    assert (len(shown["command"]), shown["shortened"]) == (SHOWN_TEXT, True)
    (request,) = scene.relay.relay.requests.all()
    assert len(request.asked.command) == SHOWN_TEXT + 1


def test_nobody_has_too_many(scene: Scene) -> None:
    for number in range(MAX_OPEN):
        scene.report("question.requested", questionId=f"q{number}", question="?")
    assert scene.bob.take("ERROR") == []
    scene.report("question.requested", questionId="one more", question="?")
    assert scene.bob.payload("ERROR")["code"] == "QUEUE_FULL"
    assert len(scene.open()) == MAX_OPEN
    carol = scene.relay.connect("Carol")
    carol.say("AGENT_EVENT", {"type": "question.requested", "fields": {"questionId": "q0", "question": "?"}})
    assert carol.take("ERROR") == []


# --- answers ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("command", "resolution"), [("approve", "approved"), ("deny", "denied")])
def test_an_answer_counts_once_the_wrapper_has_carried_it_out(scene: Scene, command: str, resolution: str) -> None:
    scene.report("permission.requested", **ASKS)
    request = scene.answer(command, text="as you like")
    assert scene.bob.payload("CONTROL") == {"command": command, "id": "p1", "text": "as you like", "by": "human"}
    assert scene.person.take() == []
    scene.report("permission.resolved", requestId="p1", resolution=resolution, resolvedBy="door")
    assert scene.person.payload("ACK") == {"ack_id": request, "stage": "controlled", "by": "Bob"}
    assert scene.changes() == [("requested", ""), (resolution, "human")]
    late = scene.refusal(scene.answer(command))
    assert (late["code"], late["details"]) == ("PERMISSION_DENIED", {"reason": "already_answered", "id": "p1"})
    assert late["message"] == f"It is already closed ({resolution} by human)."


def test_an_option_that_allows_more_is_passed_on_only_where_its_dialog_has_it(scene: Scene) -> None:
    always = "Yes, and don't ask again"
    scene.report("permission.requested", **ASKS, widerOptions=[always], canAllow=False)
    for command, option in (("approve", "Yes, always"), ("deny", always)):
        refused = scene.refusal(scene.answer(command, option=option))
        assert refused["details"]["reason"] == "no_such_option"
    assert scene.refusal(scene.answer("approve"))["details"]["reason"] == "deny_only"
    assert scene.bob.take("CONTROL") == []
    scene.answer("approve", option=always)
    said = {"command": "approve", "id": "p1", "text": "", "by": "human", "option": always}
    assert scene.bob.payload("CONTROL") == said
    scene.report("permission.resolved", requestId="p1", resolution="approved", resolvedBy="door")
    assert scene.person.payload("ACK")["by"] == "Bob"


def test_of_so_many_it_is_known_that_they_are_over(scene: Scene) -> None:
    for number in range(MAX_OVER + 1):
        scene.report("permission.requested", **ASKS | {"requestId": f"p{number}"})
        scene.report("permission.resolved", requestId=f"p{number}", resolution="gone")
    assert scene.refusal(scene.answer("approve", "p0"))["code"] == "ROUTE_NOT_FOUND"
    assert scene.refusal(scene.answer("approve", "p1"))["message"] == "It is already closed (gone)."
    scene.report("permission.requested", **ASKS)
    scene.answer("approve")
    assert scene.bob.take("CONTROL")[-1]["payload"]["id"] == "p1"


def test_another_agent_may_answer_and_is_named(scene: Scene) -> None:
    lead = scene.relay.connect("Lead")
    scene.report("question.requested", **WONDERS)
    heard: list[str] = []
    scene.relay.relay.requests._on_change = lambda request, change, by, words: heard.append(f"{change} by {by}: {words}")
    scene.answer("answer", "q1", by=lead, text="blue")
    assert scene.bob.payload("CONTROL") == {"command": "answer", "id": "q1", "text": "blue", "by": "Lead"}
    scene.report("question.resolved", questionId="q1", resolvedBy="door")
    assert lead.payload("ACK")["stage"] == "controlled"
    assert heard == ["answered by Lead: blue"]


def test_the_first_answer_wins(scene: Scene) -> None:
    other = scene.relay.connect("Other", mode="observer")
    scene.report("permission.requested", **ASKS)
    scene.answer("approve")
    error = scene.refusal(scene.answer("deny", by=other), by=other)
    assert (error["code"], error["details"]) == ("PERMISSION_DENIED", {"reason": "being_answered", "id": "p1"})
    assert scene.bob.payload("CONTROL")["command"] == "approve"
    scene.report("permission.resolved", requestId="p1", resolution="approved", resolvedBy="door")
    assert scene.person.take_one("ACK")
    assert other.take() == []


def test_the_person_at_the_terminal_may_be_faster(scene: Scene) -> None:
    scene.report("permission.requested", **ASKS)
    request = scene.answer("approve")
    scene.report("permission.resolved", requestId="p1", resolution="denied", resolvedBy="person")
    error = scene.refusal(request)
    assert (error["code"], error["details"]["reason"]) == ("PERMISSION_DENIED", "already_answered")
    assert scene.changes()[-1] == ("denied", "human")


def test_that_it_changed_is_said_only_when_it_did(scene: Scene) -> None:
    scene.report("permission.requested", **ASKS)
    request = scene.answer("approve")
    scene.report("request.failed", requestId="p1", reason="A person is at the terminal.")
    error = scene.refusal(request)
    assert (error["message"], error["details"]["reason"]) == ("A person is at the terminal.", "not_done")


def test_a_question_that_cannot_be_answered_here_says_so(scene: Scene) -> None:
    scene.report("question.requested", questionId="p1", question="Which hooks?", canAllow=False)
    assert scene.refusal(scene.answer("answer", text="all"))["details"]["reason"] == "deny_only"


def test_what_fails_leaves_it_open_for_another_try(scene: Scene) -> None:
    scene.report("permission.requested", **ASKS)
    request = scene.answer("approve")
    scene.report("request.failed", requestId="p1", reason="The dialog is another one.", changed=True)
    error = scene.refusal(request)
    assert (error["message"], error["details"]["reason"]) == ("The dialog is another one.", "changed")
    scene.answer("deny")
    assert [frame["payload"]["command"] for frame in scene.bob.take("CONTROL")] == ["approve", "deny"]
    scene.report("request.failed", requestId="unknown", reason="?")  # nobody waits for it
    assert scene.person.take() == []


def test_a_wrapper_that_says_nothing_is_not_waited_for_for_ever(scene: Scene) -> None:
    scene.report("permission.requested", **ASKS)
    request = scene.answer("approve")
    scene.relay.advance(ANSWER_MS - 100)
    assert scene.person.take() == []
    scene.relay.advance(100)
    assert scene.refusal(request)["code"] == "DELIVERY_TIMEOUT"
    scene.answer("deny")
    assert len(scene.bob.take("CONTROL")) == 2


@pytest.mark.parametrize(
    ("payload", "code", "field"),
    [
        ({"command": "approve", "agent": "Bob"}, "INVALID_FORMAT", "payload.id"),
        ({"command": "approve", "id": "p1"}, "INVALID_FORMAT", "payload.agent"),
        ({"command": "answer", "agent": "Bob", "id": "q1"}, "INVALID_FORMAT", "payload.text"),
        ({"command": "answer", "agent": "Bob", "id": "p1", "text": "x"}, "INVALID_FORMAT", "payload.command"),
        ({"command": "approve", "agent": "Bob", "id": "q1"}, "INVALID_FORMAT", "payload.command"),
        ({"command": "approve", "agent": "Bob", "id": "p2"}, "ROUTE_NOT_FOUND", None),
        ({"command": "deny", "agent": "Nobody", "id": "p1"}, "AGENT_NOT_FOUND", None),
    ],
)
def test_what_cannot_be_answered_is_refused(scene: Scene, payload: dict[str, Any], code: str, field: str | None) -> None:
    scene.report("permission.requested", **ASKS)
    scene.report("question.requested", **WONDERS)
    error = scene.refusal(scene.person.say("CONTROL", payload))
    assert (error["code"], error["details"].get("field")) == (code, field)
    assert scene.bob.take("CONTROL") == []


def test_nobody_answers_for_itself(scene: Scene) -> None:
    scene.report("permission.requested", **ASKS)
    error = scene.refusal(scene.answer("approve", by=scene.bob), by=scene.bob)
    assert (error["code"], error["details"]["reason"]) == ("PERMISSION_DENIED", "own_request")


def test_what_can_only_be_denied_is_not_approved(scene: Scene) -> None:
    scene.report("permission.requested", **ASKS | {"canAllow": False})
    assert scene.open()[0]["can_allow"] is False
    assert scene.refusal(scene.answer("approve"))["details"]["reason"] == "deny_only"
    scene.answer("deny")
    assert scene.bob.payload("CONTROL")["command"] == "deny"


# --- away and back ------------------------------------------------------------------------------------------------------


def come_back(scene: Scene) -> None:
    token = scene.bob.token
    scene.bob.drop()
    scene.bob = scene.relay.connect("Bob", capabilities=CONTROL, token=token)


def test_whoever_answered_hears_that_the_wrapper_is_gone(scene: Scene) -> None:
    scene.report("permission.requested", **ASKS)
    request = scene.answer("approve")
    scene.bob.drop()
    assert scene.refusal(request)["code"] == "AGENT_OFFLINE"
    assert scene.open() == []
    assert scene.refusal(scene.answer("approve"))["code"] == "AGENT_OFFLINE"


def test_what_is_said_again_is_the_same_request(scene: Scene) -> None:
    scene.report("permission.requested", **ASKS)
    asked_at = scene.relay.wall_ms
    scene.report("permission.requested", **ASKS)
    scene.relay.advance(5_000)
    come_back(scene)
    assert scene.open() == []
    assert scene.refusal(scene.answer("approve"))["code"] == "ROUTE_NOT_FOUND"
    scene.report("permission.requested", **ASKS)
    assert [shown["at"] for shown in scene.open()] == [asked_at]
    assert scene.changes() == [("requested", "")]
    scene.answer("approve")
    assert scene.bob.payload("CONTROL")["id"] == "p1"


def test_how_it_ended_meanwhile_is_told_afterwards(scene: Scene) -> None:
    scene.report("permission.requested", **ASKS)
    come_back(scene)
    scene.report("permission.resolved", requestId="p1", resolution="approved", resolvedBy="person")
    assert scene.changes() == [("requested", ""), ("approved", "human")]


def test_an_end_that_is_said_again_is_told_once(scene: Scene) -> None:
    for _ in range(2):
        scene.report("permission.requested", **ASKS)
        for _ in range(3):
            scene.report("permission.resolved", requestId="p1", resolution="approved", resolvedBy="person")
    assert [change for change, _ in scene.changes()] == ["requested", "approved"] * 2


def test_how_it_ended_is_told_even_after_it_was_given_up(scene: Scene) -> None:
    scene.report("permission.requested", **ASKS)
    scene.bob.drop()
    scene.relay.advance(FORGET_MS)
    scene.bob = scene.relay.connect("Bob", capabilities=CONTROL, token=scene.bob.token)
    scene.report("permission.resolved", requestId="p1", resolution="approved", resolvedBy="person")
    assert [change for change, _ in scene.changes()] == ["requested", "gone", "approved"]


def test_what_is_not_said_again_is_gone(scene: Scene) -> None:
    scene.report("permission.requested", **ASKS)
    scene.bob.drop()
    scene.relay.advance(FORGET_MS - 100)
    assert scene.changes() == [("requested", "")]
    scene.relay.advance(100)
    assert scene.changes() == [("requested", ""), ("gone", "abandoned")]


def test_a_request_that_was_given_up_is_nobodys(scene: Scene) -> None:
    scene.report("permission.requested", **ASKS)
    scene.report("permission.resolved", requestId="p1", resolution="gone", resolvedBy="")
    assert scene.changes() == [("requested", ""), ("gone", "abandoned")]


def test_other_words_under_the_same_id_are_another_request(scene: Scene) -> None:
    scene.report("permission.requested", **ASKS)
    request = scene.answer("approve")
    scene.report("permission.requested", **ASKS | {"command": "make clean"})
    assert scene.refusal(request)["details"]["reason"] == "changed"
    assert [shown["command"] for shown in scene.open()] == ["make clean"]
    assert [change for change, _ in scene.changes()] == ["requested", "gone", "requested"]


def test_a_new_daemon_hears_of_it_from_the_wrapper(scene: Scene) -> None:
    scene.report("permission.requested", **ASKS)
    token = scene.bob.token
    scene.relay.restart()
    scene.person = scene.relay.connect("Watcher", mode="observer")
    scene.bob = scene.relay.connect("Bob", capabilities=CONTROL, token=token)
    assert scene.open() == []
    scene.report("permission.resolved", requestId="p0", resolution="denied", resolvedBy="person")  # asked before, ended since
    scene.report("permission.requested", **ASKS)
    request = scene.answer("approve")
    scene.report("permission.resolved", requestId="p1", resolution="approved", resolvedBy="door")
    assert scene.person.payload("ACK")["ack_id"] == request
    assert [change for change, _ in scene.changes()] == ["requested", "denied", "requested", "approved"]


# --- the policy ---------------------------------------------------------------------------------------------------------


def test_what_only_looks_needs_nobody(scene: Scene) -> None:
    scene.report("permission.requested", **LOOKS)
    passed_on = scene.bob.payload("CONTROL")
    assert (passed_on["command"], passed_on["by"]) == ("approve", "policy")
    assert scene.refusal(scene.answer("deny"))["details"]["reason"] == "being_answered"
    scene.report("permission.resolved", requestId="p1", resolution="approved", resolvedBy="door")
    assert scene.changes() == [("requested", ""), ("approved", "policy")]


@pytest.mark.parametrize("more", [{"isExact": False}, {"canAllow": False}, {"command": "ls; rm -rf x"}, {"command": "ls\nmake"}])
def test_what_is_in_doubt_is_left_to_a_person(scene: Scene, more: dict[str, Any]) -> None:
    scene.report("permission.requested", **LOOKS | more)
    assert scene.bob.take("CONTROL") == []
    assert len(scene.open()) == 1


def test_what_the_policy_could_not_do_is_left_to_a_person(scene: Scene) -> None:
    scene.report("permission.requested", **LOOKS)
    scene.report("request.failed", requestId="p1", reason="It is not there.")
    scene.answer("approve")
    assert [frame["payload"]["by"] for frame in scene.bob.take("CONTROL")] == ["policy", "human"]


def test_the_policy_decides_again_for_a_wrapper_that_came_back(scene: Scene) -> None:
    scene.report("permission.requested", **LOOKS)
    come_back(scene)
    scene.report("permission.requested", **LOOKS)
    assert scene.bob.payload("CONTROL")["by"] == "policy"


def test_a_rule_denies(scene: Scene) -> None:
    scene = Scene(Policy([Rule(Ruling.DENY, words=("sudo",), reason="Not here.")]))
    scene.report("permission.requested", **ASKS | {"command": "sudo make", "canAllow": False})
    assert scene.bob.payload("CONTROL") == {"command": "deny", "id": "p1", "text": "Not here.", "by": "policy"}
    scene.report("permission.resolved", requestId="p1", resolution="denied", resolvedBy="door")
    assert scene.changes() == [("requested", ""), ("denied", "policy")]


def test_what_nobody_decides_in_time_is_denied() -> None:
    scene = Scene(Policy(timeout_ms=60_000))
    scene.report("permission.requested", **ASKS)
    scene.report("question.requested", **WONDERS)
    scene.relay.advance(59_900)
    assert scene.bob.take("CONTROL") == []
    scene.relay.advance(100)
    assert scene.bob.payload("CONTROL")["command"] == "deny"
    scene.report("request.failed", requestId="p1", reason="Not now.")
    scene.relay.advance(ANSWER_MS)
    assert scene.bob.payload("CONTROL")["command"] == "deny"
    scene.report("permission.resolved", requestId="p1", resolution="denied", resolvedBy="door")
    assert scene.changes()[-1] == ("timeout", "policy")
    assert [shown["kind"] for shown in scene.open()] == ["question"]


def test_time_goes_on_while_the_wrapper_is_away() -> None:
    scene = Scene(Policy(timeout_ms=10_000))
    scene.report("permission.requested", **ASKS)
    token = scene.bob.token
    scene.bob.drop()
    scene.relay.advance(20_000)
    scene.bob = scene.relay.connect("Bob", capabilities=CONTROL, token=token)
    scene.relay.advance(1_000)
    assert scene.bob.take("CONTROL") == []
    scene.report("permission.requested", **ASKS)
    scene.relay.advance(100)
    assert scene.bob.payload("CONTROL")["command"] == "deny"


def test_eight_characters_of_an_id_will_do_and_fewer_or_two_that_begin_so_will_not(scene: Scene) -> None:
    for id_ in ("3f9c2a11-one", "77777777-one", "77777777-two"):
        scene.report("permission.requested", **ASKS | {"requestId": id_})
    scene.answer("deny", "3f9c2a11")
    assert scene.bob.payload("CONTROL")["id"] == "3f9c2a11-one"
    assert scene.refusal(scene.answer("deny", "3f9c2a1"))["code"] == "ROUTE_NOT_FOUND"
    error = scene.refusal(scene.answer("deny", "77777777"))
    assert (error["code"], error["message"]) == ("INVALID_FORMAT", "Ambiguous id; type more characters.")
    assert error["details"]["ids"] == ["77777777-one", "77777777-two"]
