"""Another user listens where our daemon is looked for: whoever comes says not a byte to them."""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_relay.cli.project.daemon_process import Answer, knock
from agent_relay.sdk.client import RelayClient
from agent_relay.sdk.errors import StrangerAtSocket
from agent_relay.terminal.doors.claude import inbox as claude_inbox
from agent_relay.terminal.doors.hooks import hook_words
from agent_relay.testing.daemon import DaemonProcess
from tests.integration.stage import until
from tests.security.stranger import STRANGER_UID, a_stranger_does, needs_root, run_as_stranger

pytestmark = needs_root

PROGRAM = str(Path(sys.executable).with_name("agent-relay"))
DEADLINE_S = 60.0
FAKE = """
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(sys.argv[1])
    os.chmod(sys.argv[1], 0o666)
    listener.listen()
    print("ready")
    with open(sys.argv[2], "ab", buffering=0) as heard:
        while True:
            connection = listener.accept()[0]
            heard.write(b"<")
            while data := connection.recv(65_536):
                heard.write(data)
            heard.write(b">")
"""


class Fake:
    """A stranger's daemon in a folder that everybody can write to, as the temporary directory is."""

    def __init__(self, folder: Path) -> None:
        self.socket = str(folder / "relay.sock")
        self.file = folder / "heard"
        self.file.touch()
        self.file.chmod(0o666)

    @property
    def heard(self) -> bytes:
        return self.file.read_bytes().replace(b"<", b"").replace(b">", b"")

    def wait_until_all_have_gone(self, visitors: int = 1) -> None:
        until(lambda: self.file.read_bytes().count(b">") >= visitors, "the stranger has seen them go")


@pytest.fixture
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="ar-", dir="/tmp", ignore_cleanup_errors=True) as found:
        os.chmod(found, 0o1777)
        yield Path(found)


@pytest.fixture
def fake(folder: Path) -> Iterator[Fake]:
    fake = Fake(folder)
    with a_stranger_does(FAKE, fake.socket, str(fake.file)):
        yield fake


def test_the_stranger_hears_what_is_said(fake: Fake) -> None:
    """Else the rest shows nothing."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(fake.socket)
        connection.sendall(b"hi")
    fake.wait_until_all_have_gone()
    assert fake.heard == b"hi"


def test_the_sdk_says_nothing(fake: Fake) -> None:
    async def connect() -> None:
        async with RelayClient("Alice", socket=fake.socket):
            pass

    with pytest.raises(StrangerAtSocket, match=f"belongs to another user \\(uid {STRANGER_UID}\\)"):
        asyncio.run(connect())
    fake.wait_until_all_have_gone()
    assert fake.heard == b""


def test_nobody_who_knocks_says_anything(fake: Fake) -> None:
    found = knock(fake.socket, 5.0)
    assert found.answer is Answer.STRANGER
    assert "Nothing was sent to it" in found.why
    fake.wait_until_all_have_gone()
    assert fake.heard == b""


@pytest.mark.parametrize(
    "words",
    [
        ["send", "Bob", "secret", "--from", "Alice"], ["status"], ["up"], ["down"], ["agents"], ["inbox", "--as", "Bob"],
        ["doctor"], ["wrap", "-n", "Bob", "--backend", "pty", "sleep", "1"], ["permissions"], ["history"],
        ["spawn", "Bob", "claude"],
    ],
    ids=lambda words: words[0],
)  # fmt: skip
def test_no_command_says_anything(fake: Fake, folder: Path, words: list[str]) -> None:
    environ = {name: value for name, value in os.environ.items() if not name.startswith("AGENT_RELAY_")}
    command = [PROGRAM, words[0], "--socket", fake.socket, "--state-dir", str(folder / "state"), *words[1:]]
    environ["AGENT_RELAY_HOME"] = str(folder / "home")
    done = subprocess.run(
        command,
        env=environ,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )
    assert done.returncode != 0
    assert f"(uid {STRANGER_UID})" in done.stderr + done.stdout
    assert fake.heard == b""
    assert not (folder / "state" / "relay.pid").exists()


def test_a_hook_tells_neither_its_token_nor_what_the_cli_said(fake: Fake) -> None:
    Path(f"{fake.socket}.token").write_text("secret")
    done = subprocess.run(hook_words(fake.socket, "Stop", 5.0), input=b"{}", capture_output=True, check=False, timeout=DEADLINE_S)
    assert (done.returncode, done.stdout) == (0, b"")
    fake.wait_until_all_have_gone()
    assert fake.heard == b""


def test_a_message_for_claude_is_not_handed_to_them(fake: Fake) -> None:
    with pytest.raises(PermissionError):
        asyncio.run(claude_inbox._hand_over(fake.socket, b"secret\n"))
    fake.wait_until_all_have_gone()
    assert fake.heard == b""


def test_a_client_that_was_connected_does_not_resume_with_them(folder: Path) -> None:
    """The daemon dies and a stranger takes its place: the client waits for the daemon, and its token stays its own."""

    async def outlive(daemon: DaemonProcess, fake: Fake) -> None:
        async with RelayClient("Alice", socket=daemon.socket) as alice:
            daemon.kill()
            shutil.rmtree(daemon.state_dir)
            daemon.state_dir.mkdir()
            daemon.state_dir.chmod(0o1777)
            with a_stranger_does(FAKE, daemon.socket, str(fake.file)):
                await asyncio.to_thread(fake.wait_until_all_have_gone)
                assert fake.heard == b""
            await alice.close()

    with DaemonProcess() as daemon:
        daemon.directory.chmod(0o755)
        asyncio.run(outlive(daemon, Fake(folder)))


def test_a_folder_of_theirs_is_not_even_looked_into(folder: Path) -> None:
    theirs = folder / "theirs"
    theirs.mkdir()
    os.chown(theirs, STRANGER_UID, STRANGER_UID)
    found = knock(str(theirs / "relay.sock"), 5.0)
    assert (found.answer, f"belongs to another user (uid {STRANGER_UID})" in found.why) == (Answer.STRANGER, True)


def test_whoever_means_to_use_another_user_s_daemon_says_so(monkeypatch: pytest.MonkeyPatch, fake: Fake) -> None:
    monkeypatch.setenv("AGENT_RELAY_PEER_UIDS", str(STRANGER_UID))
    assert knock(fake.socket, 0.5).answer is Answer.SILENCE
    assert fake.heard != b""


def test_the_short_place_of_a_user_is_not_used_once_somebody_else_has_made_it(folder: Path) -> None:
    """Neither by the daemon, nor by a client, nor by tmux: the stranger was first."""
    code = """
        os.umask(0)
        os.makedirs(sys.argv[1], mode=0o777)
    """
    short = folder / "agent-relay-0"
    run_as_stranger(code, str(short / "abc"))
    code = f"""
import sys
from agent_relay.protocol import places
places.short_socket_directory = lambda uid: {str(short)!r}
from agent_relay.cli.project.daemon_process import knock
from agent_relay.daemon.directories import PlaceUnusable, prepare_socket_directory
from agent_relay.terminal.files.private_files import NotPrivate, make_private_folder
path = {str(short / "abc" / "relay.sock")!r}
print(knock(path, 1.0).why)
for make in (lambda: prepare_socket_directory(path, 0), lambda: make_private_folder({str(short / "abc")!r})):
    try:
        make()
    except (PlaceUnusable, NotPrivate) as error:
        print(error)
"""
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.splitlines()
    assert len(said) == 3
    assert "is not a directory that you own" in said[0]
    assert "belongs to another user" in said[1]
    assert "is not a directory that you own" in said[2]


@pytest.mark.parametrize("words", [["attach", "Bob"], ["logs", "Bob"], ["wrap", "-n", "Bob", "--backend", "tmux", "sleep", "1"]])
def test_no_tmux_of_theirs_is_talked_to(folder: Path, words: list[str]) -> None:
    """It could have a client run what it likes."""
    state = folder / "state"
    state.mkdir()
    os.chown(state, STRANGER_UID, STRANGER_UID)
    fake = Fake(folder)
    with a_stranger_does(FAKE, str(state / "tmux.sock"), str(fake.file)):
        command = [PROGRAM, words[0], "--state-dir", str(state), *words[1:]]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=DEADLINE_S, check=False)
    assert done.returncode != 0
    assert f"belongs to another user (uid {STRANGER_UID})" in done.stderr
    assert fake.file.read_bytes() == b""
