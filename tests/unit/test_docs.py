"""The documentation: its generated parts are current, its examples run, and what it lists is what there is."""

from __future__ import annotations

import ast
import dataclasses
import json
import re
import shutil
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agent_relay.core.limits import Limits
from agent_relay.daemon.config import ConfigError, load_config
from agent_relay.daemon.settings import SETTINGS, Setting
from agent_relay.protocol import places
from agent_relay.protocol.decode import decode_client_frame
from agent_relay.protocol.errors import ErrorCode
from agent_relay.protocol.framing import FrameDecoder
from agent_relay.protocol.headers import parse_headers
from agent_relay.testing.daemon import DaemonProcess
from agent_relay.testing.raw_client import RawClient, encode, envelope
from scripts import docs
from tests.acceptance.test_boxes import is_there

ROOT = Path(__file__).parents[2]
PROTOCOL = (ROOT / "docs/protocol.md").read_text("utf-8")
CONFIGURATION = (ROOT / "docs/configuration.md").read_text("utf-8")
ERRORS = (ROOT / "docs/errors.md").read_text("utf-8")
CLI = (ROOT / "docs/cli.md").read_text("utf-8")
DEADLINE_S = 60.0


def section(page: str, heading: str) -> str:
    """What stands under a heading, up to the next of its rank or above."""
    start = re.search(rf"^(#+) {re.escape(heading)}$", page, re.MULTILINE)
    assert start is not None, heading
    end = re.search(rf"^#{{1,{len(start[1])}}} ", page[start.end() :], re.MULTILINE)
    return page[start.end() :] if end is None else page[start.end() : start.end() + end.start()]


def code_blocks(text: str, language: str = "") -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


def tables(text: str) -> list[list[list[str]]]:
    """The cells of each table, without its head."""
    found = re.findall(r"(?:^\|.*\|\n)+", text, re.MULTILINE)
    return [[re.split(r"(?<!\\)\|", line.strip("|"))[:] for line in table.splitlines()[2:]] for table in found]


def first_column(table: list[list[str]]) -> set[str]:
    return {name for row in table for name in re.findall(r"`([^`]+)`", row[0])}


@pytest.fixture(scope="module")
def daemon() -> Iterator[DaemonProcess]:
    with DaemonProcess() as process:
        yield process


# --- generated parts ----------------------------------------------------------------------------------------------------


def run_generator(*arguments: str, root: Path = ROOT) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(root / "scripts/docs.py"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """The pages and their generator, to be spoilt."""
    shutil.copytree(ROOT / "docs", tmp_path / "docs")
    (tmp_path / "scripts").mkdir()
    for name in ("docs.py", "docs.toml"):
        shutil.copy(ROOT / "scripts" / name, tmp_path / "scripts" / name)
    return tmp_path


def test_the_generated_parts_are_current() -> None:
    done = run_generator("--check")
    assert (done.returncode, done.stderr) == (0, "")


def test_a_stale_page_is_caught_and_mended(copy: Path) -> None:
    page = copy / "docs/configuration.md"
    good = page.read_text("utf-8")
    page.write_text(good.replace("| `--max-attempts` |", "| `--max-tries` |"), "utf-8")
    assert run_generator("--check", root=copy).returncode == 1
    assert "--max-tries" in page.read_text("utf-8"), "--check changes nothing"
    assert run_generator(root=copy).returncode == 0
    assert page.read_text("utf-8") == good


def test_what_is_written_by_hand_is_left_alone(copy: Path) -> None:
    page = copy / "docs/errors.md"
    page.write_text(page.read_text("utf-8").replace("# Errors", "# Errors, by hand"), "utf-8")
    assert run_generator("--check", root=copy).returncode == 0


def test_a_missing_block_is_caught(copy: Path) -> None:
    page = copy / "docs/errors.md"
    page.write_text(page.read_text("utf-8").replace("<!-- generated: codes -->", ""), "utf-8")
    done = run_generator("--check", root=copy)
    assert (done.returncode, "codes" in done.stderr) == (1, True)


def test_an_unexplained_field_and_an_unneeded_explanation_are_caught(copy: Path) -> None:
    words = copy / "scripts/docs.toml"
    good = words.read_text("utf-8")
    words.write_text(good.replace('"payload.agent" = "The agent\'s name."\n', "", 1), "utf-8")
    assert "payload.agent" in run_generator("--check", root=copy).stderr
    words.write_text(good.replace("[envelope]\n", '[envelope]\ncolour = "Blue."\n'), "utf-8")
    assert "colour" in run_generator("--check", root=copy).stderr


def test_another_setting_makes_another_page() -> None:
    more = (*SETTINGS, Setting("colour", str, "blue", "what the daemon wears"))
    blocks = {"settings": lambda: docs.settings_table(more)}
    assert docs.fill(CONFIGURATION, {"settings": docs.settings_table}) == CONFIGURATION
    assert "| `--colour` | `AGENT_RELAY_COLOUR` |" in docs.fill(CONFIGURATION, blocks)


def test_every_type_code_and_setting_has_its_place() -> None:
    documented = set(re.findall(r"^#### (\w+)", PROTOCOL, re.MULTILINE))
    assert documented == {kind.tag for kind in docs.kinds()}
    assert first_column(tables(section(ERRORS, "Codes"))[0]) == set(ErrorCode)
    assert {row[0].strip(" `") for row in tables(section(CONFIGURATION, "Settings"))[0]} == {s.flag for s in SETTINGS}


# --- configuration ------------------------------------------------------------------------------------------------------


def settle(folder: Path, flags: dict[str, str | None] | None = None, **environ: str) -> Limits:
    home, project = folder / "home", folder / "project"
    return load_config(
        flags or {}, environ, project_root=str(project), home=str(home), state_dir=str(folder), socket=str(folder / "s")
    ).limits


def write_config(folder: Path, text: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / places.CONFIG_FILE).write_text(text, "utf-8")


def test_the_defaults_in_the_table_of_limits_are_those_of_the_core(tmp_path: Path) -> None:
    assert dataclasses.asdict(settle(tmp_path)) == dataclasses.asdict(Limits())


def test_the_example_file_is_taken(tmp_path: Path) -> None:
    (example,) = code_blocks(CONFIGURATION, "toml")
    write_config(tmp_path / "home", example)
    limits = settle(tmp_path)
    assert limits.queue_capacity == tomllib.loads(example)["queue_capacity"] != Limits().queue_capacity
    assert limits.allowed_uids == {1001, 1002}


def test_the_order_of_precedence_is_as_documented(tmp_path: Path) -> None:
    assert settle(tmp_path).max_attempts == 5
    write_config(tmp_path / "home", "max_attempts = 6\nmax_agents = 6")
    assert settle(tmp_path).max_attempts == 6
    write_config(tmp_path / "project" / places.PROJECT_DIRECTORY, "max_attempts = 4\nmax_agents = 4")
    assert (settle(tmp_path).max_attempts, settle(tmp_path).max_agents) == (6, 4)  # the one says "lower" in the table
    assert settle(tmp_path, AGENT_RELAY_MAX_ATTEMPTS="8").max_attempts == 8
    assert settle(tmp_path, {"max_attempts": "9"}, AGENT_RELAY_MAX_ATTEMPTS="8").max_attempts == 9


@pytest.mark.parametrize("text", ["colour = 1", "max_attempts = 0", "no toml"])
def test_a_file_that_cannot_be_used_is_refused(tmp_path: Path, text: str) -> None:
    write_config(tmp_path / "home", text)
    with pytest.raises(ConfigError, match=str(tmp_path / "home")):
        settle(tmp_path)


def test_every_flag_that_is_mentioned_exists() -> None:
    command = [sys.executable, "-m", "agent_relay.daemon", "--help"]
    offered = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout
    known = {setting.flag for setting in SETTINGS} | {"--socket", "--state-dir"}
    assert known <= set(re.findall(r"--[a-z-]+", offered))
    of_commands = set(re.findall(r"--[a-z-]+", CLI))
    for page in (CONFIGURATION, PROTOCOL, ERRORS):
        assert set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", page)) <= known | of_commands


def test_every_variable_is_documented_and_exists() -> None:
    others = {value for name, value in vars(places).items() if name.startswith("ENV_") and name != "ENV_PREFIX"}
    mentioned = set(re.findall(r"AGENT_RELAY_[A-Z_]+", CONFIGURATION))
    assert mentioned == others | {setting.env for setting in SETTINGS}


def test_the_files_of_a_running_daemon_are_the_documented_ones(daemon: DaemonProcess) -> None:
    documented = {row[0].strip(" `"): row[1].strip()[:4] for row in tables(section(CONFIGURATION, "Places"))[1]}
    documented |= {"messages.sqlite-wal": "0600", "messages.sqlite-shm": "0600"}
    with RawClient(daemon.socket) as client:
        client.hello("Someone")
    found = {path.name: f"{path.lstat().st_mode & 0o7777:04o}" for path in daemon.state_dir.iterdir()}
    assert {name: mode for name, mode in found.items() if not name.endswith(".tmp")} == documented
    assert f"{daemon.state_dir.stat().st_mode & 0o7777:04o}" == "0700"


# --- errors -------------------------------------------------------------------------------------------------------------


def details_in(source: str) -> set[str]:
    """The keys that `details` are given: keywords of errors, and keys of what is assigned to `.details`."""
    found: set[str | None] = set()
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Call(func=ast.Name(id="RelayError" | "BadFrame" | "_Stale"), keywords=keywords):
                found |= {keyword.arg for keyword in keywords}
            case ast.Assign(targets=[ast.Attribute(attr="details") | ast.Name(id="details")], value=ast.Dict(keys=keys)):
                found |= {str(key.value) for key in keys if isinstance(key, ast.Constant)}
    return {name for name in found if name not in (None, "retry_after_ms", "fatal")}


def test_every_key_of_details_is_documented() -> None:
    rooms = (ROOT / "src/agent_relay" / room for room in ("protocol", "core", "transports", "daemon"))
    used = set().union(*(details_in(path.read_text("utf-8")) for room in rooms for path in room.rglob("*.py")))
    assert first_column([row[:1] for row in tables(section(ERRORS, "Details"))[0]]) == used


def test_a_new_key_of_details_is_noticed() -> None:
    assert details_in("raise RelayError(code, 'x', fatal=True, colour=1)\nerror.details = {'shape': 2}") == {"colour", "shape"}


def test_the_examples_of_errors_are_what_the_daemon_says() -> None:
    nack, error = map(json.loads, code_blocks(ERRORS, "json"))
    with DaemonProcess() as process, RawClient(process.socket) as client, RawClient(process.socket) as bob:
        bob.hello("Bob")
        client.hello("Alice")
        client.write_frame(client.message("Bop", "Hello.") | {"id": nack["payload"]["nack_id"]})
        compare(nack, client.next_frame(), {})
        client.write_frame(envelope("SUBSCRIBE", {}) | {"id": error["payload"]["reply_to"]})
        compare(error, client.next_frame(), {})


def test_every_code_that_is_mentioned_exists() -> None:
    words = set(re.findall(r"`([A-Z]+_[A-Z_]+)`", ERRORS + PROTOCOL))
    v1 = {code.v1_code for code in ErrorCode}
    assert words <= set(ErrorCode) | v1 | {kind.tag for kind in docs.kinds()} | {"SOCK_STREAM"}


# --- the protocol's examples ----------------------------------------------------------------------------------------------


def hex_example() -> bytes:
    dump = code_blocks(section(PROTOCOL, "An exchange"))[0]
    return bytes.fromhex("".join(line[:47] for line in dump.splitlines()))


def exchange() -> list[tuple[str, str, dict[str, Any]]]:
    lines = code_blocks(section(PROTOCOL, "An exchange"))[1].splitlines()
    found = [re.fullmatch(r"(\w+) +([→←]) (\{.*\})", line) for line in lines]
    return [(match[1], match[2], json.loads(match[3])) for match in found if match is not None]


def test_the_bytes_of_the_example_are_its_first_line() -> None:
    (frame,) = FrameDecoder().feed(hex_example())
    assert json.loads(frame) == exchange()[0][2]
    assert f"{len(frame)} bytes (`{len(frame):02x}`)" in section(PROTOCOL, "An exchange")


def compare(shown: Any, real: Any, renamed: dict[str, str]) -> None:
    """The same but for times, ids and tokens; `renamed` learns which id of the page is which real one."""
    if isinstance(shown, dict):
        assert isinstance(real, dict)
        assert list(shown) == list(real)
        for key in shown:
            if key not in {"ts", "queued_ms", "version", "heartbeat_ms"}:
                compare(shown[key], real[key], renamed)
    elif isinstance(shown, str) and re.match(r"(f_|a_|d_|msg_|ses_|…)", shown):
        assert shown == "…" or real.startswith(shown.partition("_")[0] + "_")
        assert shown == "…" or renamed.setdefault(shown, real) == real
    else:
        assert shown == real


def test_the_exchange_goes_as_it_is_shown() -> None:
    steps, renamed = exchange(), dict[str, str]()
    assert len(steps) == len(code_blocks(section(PROTOCOL, "An exchange"))[1].splitlines()) > 8
    with DaemonProcess() as process, RawClient(process.socket) as alice, RawClient(process.socket) as bob:
        for name, arrow, frame in steps:
            client = {"Alice": alice, "Bob": bob}[name]
            if arrow == "←":
                compare(frame, client.next_frame(), renamed)
                continue
            text = json.dumps(frame)
            for shown, real in renamed.items():
                text = text.replace(shown, real)
            client.write(encode(text.encode()))
        alice.wait_closed()


def test_every_other_example_is_a_frame() -> None:
    examples = code_blocks(PROTOCOL, "json")
    assert len(examples) >= 5
    for example in examples:
        decode_client_frame(example.encode())


def test_the_header_example_is_read() -> None:
    (example,) = code_blocks(section(PROTOCOL, "The header format"))
    message = parse_headers(example)
    assert (message.to, message.priority, message.ttl_ms, message.body) == (("Bob",), 2, 600_000, "Please review auth.py.")


# --- the example client ---------------------------------------------------------------------------------------------------


class Example:
    """The client of the page as a process, of an interpreter that has nothing but its standard library."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        (source,) = code_blocks(section(PROTOCOL, "A client"), "python")
        path = folder / "client.py"
        path.write_text(source, "utf-8")
        command = [sys.executable, "-I", "-S", str(path), *arguments]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def __enter__(self) -> Example:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.communicate()

    def finish(self) -> tuple[int, str, str]:
        output, errors = self.process.communicate(timeout=DEADLINE_S)
        return self.process.returncode, output, errors


def wait_until_connected(observer: RawClient, name: str) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while time.monotonic() < deadline:
        agents = observer.request("LIST_AGENTS", {})["agents"]
        if any(agent["name"] == name and agent["connected"] for agent in agents):
            return
    raise AssertionError(f"{name} does not connect")


@pytest.fixture
def impatient() -> Iterator[DaemonProcess]:
    with DaemonProcess("--heartbeat-ms=1500") as process:  # on a busy machine a process may say nothing for a second or two
        yield process


def test_the_example_client_works(impatient: DaemonProcess, tmp_path: Path) -> None:
    with RawClient(impatient.socket) as observer, Example(tmp_path, impatient.socket, "Bob") as bob:
        observer.hello("watcher", mode="observer")
        wait_until_connected(observer, "Bob")
        observer.auto_pong = False
        for _ in range(3):  # three heartbeats: a client that did not answer them would be gone after two
            observer.say("PONG", observer.expect("PING")["payload"])
        observer.auto_pong = True
        with Example(tmp_path, impatient.socket, "Alice", "bob", "Grüße, 世界") as alice:
            status, output, errors = alice.finish()
        assert (status, errors) == (0, "")
        stored, delivered = (line.split() for line in output.splitlines())
        assert (stored[0], delivered[0], stored[1]) == ("stored", "delivered", delivered[1])
        assert bob.finish() == (0, "Alice says: Grüße, 世界\n", "")
        trail = observer.request("HISTORY", {"view": "message", "id": stored[1]})["trail"]
        assert [step["event"] for step in trail] == ["sent", "acknowledged"]


def test_the_example_client_says_what_went_wrong(daemon: DaemonProcess, tmp_path: Path) -> None:
    with Example(tmp_path, daemon.socket, "Carol", "Nobody", "Hello?") as carol:
        status, _, errors = carol.finish()
    assert (status, errors.startswith("AGENT_NOT_FOUND: ")) == (1, True)


# --- what the page lists is what the daemon says ----------------------------------------------------------------------------


def test_what_is_shown_of_agents_and_messages_is_documented(daemon: DaemonProcess) -> None:
    agent_table, server_table = tables(section(PROTOCOL, "Looking around"))
    message_table, trail_table = tables(section(PROTOCOL, "Looking back"))
    with RawClient(daemon.socket) as dora, RawClient(daemon.socket) as emil:
        dora.hello("Dora")
        emil.hello("Emil")
        message_id = dora.send_stored("Emil", meta={"requires_ack": True})["message_id"]
        emil.deliveries(1)
        dora.expect("ACK", where=lambda frame: frame["payload"].get("stage") == "delivered")
        emil.say("BYE", {})
        emil.wait_closed()
        lost = dora.send("Emil", meta={"ttl_ms": 1})
        dora.expect("NACK", where=lambda frame: frame["payload"]["nack_id"] == lost)
        found = dora.request("LIST_AGENTS", {})
        (dead,) = dora.request("HISTORY", {"view": "dead_letters"})["messages"]
        shown = dora.request("HISTORY", {"view": "message", "id": message_id})
    assert all(set(agent) == first_column([row[:1] for row in agent_table]) for agent in found["agents"])
    assert set(found["server"]) == first_column([row[:1] for row in server_table])
    described = {row[0].strip(" `"): set(re.findall(r"`(\w+)`", row[1])) for row in server_table}
    assert set(found["server"]["storage"]) == described["storage"]
    assert set(found["server"]["events"]) == described["events"]
    assert set(dead) == first_column([row[:1] for row in message_table])
    assert set(dead["dead"]) == {"to", "at", "code"}
    assert set(shown["messages"][0]) == set(dead) - {"dead"}
    assert set(shown["messages"][0]["recipients"][0]) == {"name", "seq", "status"}
    assert all(set(step) == {"at", "event", "to", "detail"} for step in shown["trail"])
    assert {step["event"] for step in shown["trail"]} == {"sent", "acknowledged"} <= first_column(trail_table)


def test_every_event_of_a_trail_is_documented() -> None:
    sources = "".join(path.read_text("utf-8") for path in (ROOT / "src/agent_relay/core").rglob("*.py"))
    calls = r"(?:noted|ended|bury|give_up)\([a-z]+, |_ranges\(|_take_step\((?:[a-z_.]+, )+"
    events = set(re.findall(rf'(?:{calls})"([a-z]+)"', sources))
    assert events == first_column(tables(section(PROTOCOL, "Looking back"))[1])


# --- the threat model --------------------------------------------------------------------------------------------------------


def test_every_attack_names_a_test_that_is_there() -> None:
    named = re.findall(r"`(tests/[^`]+?::[^`]+)`", (ROOT / "docs" / "security.md").read_text("utf-8"))
    assert len(named) > 80
    assert [node_id for node_id in named if not is_there(node_id)] == []


def test_every_file_of_attacks_is_in_the_threat_model() -> None:
    page = (ROOT / "docs" / "security.md").read_text("utf-8")
    attacks = {path.name for path in (ROOT / "tests" / "security").glob("test_*.py")} - {"test_stranger.py"}
    assert [name for name in sorted(attacks) if name not in page] == []
